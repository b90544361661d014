"""Readers: bytes to ``Trace``. One file per format, one explicit list, recognition by content and never by name."""
