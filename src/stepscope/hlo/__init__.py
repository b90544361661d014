"""Compiled XLA programs (``xla.HloProto``): their instructions, shapes, buffers and values."""
