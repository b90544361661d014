"""XPlane profiles (``.xplane.pb``, ``tensorflow.profiler.XSpace``): JAX, TensorFlow, PyTorch/XLA and others.

Read without generated protocol-buffer code: ``wire`` decodes, ``space`` holds the raw columns, ``convert`` makes the
trace, with a file for each concern beside it.
"""

from stepscope.readers.xplane.beyond import beyond_tables
from stepscope.readers.xplane.read import arguments, read
from stepscope.readers.xplane.recognise import recognise

__all__ = ["arguments", "beyond_tables", "read", "recognise"]
