"""Chrome-trace JSON of every dialect: one scan (``scan``), then the dialect that the events' content names."""
