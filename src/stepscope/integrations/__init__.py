"""Callbacks that record a few steps in the training loops of Lightning, Hugging Face and Keras.

Each is a module of its own, ``stepscope.integrations.lightning`` and so on, the only place that imports its library.
"""
