"""What the small numbers of a trace's tables mean."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """What a slice is, in words that hold for every framework and vendor."""

    STEP = 0
    ANNOTATION = 1
    PYTHON_FRAME = 2
    HOST_OP = 3
    RUNTIME_CALL = 4
    SYNC = 5
    ALLOCATION = 6
    COMPILE = 7
    OVERHEAD = 8
    KERNEL = 9
    COLLECTIVE = 10
    COPY = 11
    MEMSET = 12
    DEVICE_WAIT = 13
    DEVICE_ANNOTATION = 14
    MODULE = 15
    OTHER = 16


DEVICE_BUSY_KINDS = (Kind.KERNEL, Kind.COLLECTIVE, Kind.COPY, Kind.MEMSET)
"""Slices that occupy a device. A wait, a record or an annotation drawn on a stream never does."""


class TrackKind(IntEnum):
    """What a track holds."""

    HOST_THREAD = 0
    DEVICE_STREAM = 1
    OTHER = 2
    DEVICE_LINE = 3
    """Steps, modules, scopes or other groups that a profile draws above a device's ops: never busy time."""


class Direction(IntEnum):
    """Which way a copy goes."""

    UNKNOWN = 0
    H2D = 1
    D2H = 2
    D2D = 3
    P2P = 4
    H2H = 5


class MemoryKind(IntEnum):
    """The kind of memory at one end of a copy."""

    UNKNOWN = 0
    PAGEABLE = 1
    PINNED = 2
    DEVICE = 3
    MANAGED = 4
    ON_CHIP = 5


class FlowKind(IntEnum):
    """Why two slices are connected."""

    FORWARD_BACKWARD = 0
    EVENT_WAIT = 1
    PRODUCER_CONSUMER = 2
    """A thread handed work to another (XLA's and TensorFlow's thread pools)."""
    DATAFLOW = 3
    """A tensor went from one op to another (TensorFlow's Timeline)."""
    ARROW = 4
    """Any other arrow the profile draws."""


class LaunchBasis(IntEnum):
    """How a device op was matched to the call that launched it."""

    CORRELATION = 0
    GRAPH = 1
    EXECUTION = 2
    """The call that executed the compiled module (XLA): one launch for all its ops."""
    NODE = 3
    """The execution of the graph's node that the op is named after (TensorFlow 1)."""


class MarkerSource(IntEnum):
    """What says that a slice is a step, where the reader knows and no name tells; preferred first."""

    STEP_NUM_ROOT = 0
    """Arguments ``_r`` and ``step_num`` (StepTraceAnnotation, tf.profiler.experimental.Trace)."""
    STEP_NUM = 1
    """Argument ``step_num`` alone (Keras)."""
    STEPS_LINE = 2
    """The Steps line of a TPU."""
    MODULES_LINE = 3
    """The XLA Modules line of a device, where its longest module repeats."""


class Begun(IntEnum):
    """Since when a Python frame ran."""

    CALLED = 0
    """It was called while the profiler recorded: the line in its name is that at which its function begins."""
    BEFORE = 1
    """It ran when recording began: the line in its name is the one that it was at then, and says nothing else."""
