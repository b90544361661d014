"""XPlane profiles (``.xplane.pb``, ``tensorflow.profiler.XSpace``): JAX, TensorFlow, PyTorch/XLA and others.

Read without generated protocol-buffer code: ``wire`` decodes, ``space`` holds the raw columns, ``convert`` makes the
trace, with a file for each concern beside it.
"""
