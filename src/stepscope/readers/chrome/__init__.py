"""Chrome-trace JSON of every dialect: one scan (``readers.scan``), then the dialect that the events' content names."""
