"""Trace -> files of other tools' formats, and stepscope's own."""
