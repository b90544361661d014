"""Protocol-buffer messages without generated code."""
