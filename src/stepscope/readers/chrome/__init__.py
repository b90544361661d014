"""Chrome-trace JSON of every dialect: one scan (``readers.scan``), then the dialect that the events' content names."""

ANY = "Chrome trace JSON"
"""What the format is called of events that no dialect but the last one knows."""
