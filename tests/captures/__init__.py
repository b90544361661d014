"""Profiles that the tests record themselves, with the real profilers of JAX, TensorFlow, PyTorch, PyTorch/XLA.

``scripts/`` are jobs with known causes planted in them: sleeps of known length, a recompilation in a known step, a
producer that is late. Each runs once per session in an environment of its own (``environments.py``) and leaves the
profile and ``truth.json``. What was planted must be found whole: lower bounds are hard. Upper bounds are what the job
itself measured around, so that a busy machine changes both sides.
"""
