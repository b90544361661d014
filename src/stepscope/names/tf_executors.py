"""TensorFlow's executors, from the names of their events (tensorflow/core/common_runtime)."""

from __future__ import annotations

from stepscope.regex import regex

FUNCTION = "FunctionRun"
"""The thread of the program hands a function's graph to an executor (function.cc)."""

_LONGEST = 2_048
_TASK = regex(
    r"Executor(?:State::Process(?:Async::(?:Start|Done))?|DoneCallback|PropagateOutputs)$"  # executor.cc
    r"|RemoteCallOp(?:Done)?$"  # kernels/function_ops.cc: the graph goes on in another function
)
_TAKE = regex(r"\w*IteratorGetNext\w*Op::DoCompute$")  # kernels/data/iterator_ops.cc: the graph takes its batch
_OP = regex(r"[^\s:]+:_?[A-Z]\w*$")
_CALL = regex(r"KernelAndDeviceFunc::Run\w*$|SessionRun$")  # eager/kernel_and_device.cc, direct_session.cc
_PROGRAM = regex(r"TFE_Py_|EagerExecute$|SessionRun$|\$")


def is_executors(name: str) -> bool:
    """Whether only a thread that runs graphs holds this event: a task of an executor, or an op of a graph.

    >>> [is_executors(name) for name in ("ExecutorState::Process", "dense/MatMul:MatMul", "EagerLocalExecute: MatMul")]
    [True, True, False]
    """
    text = name[:_LONGEST]
    return any(pattern.match(text) for pattern in (_TASK, _TAKE, _OP))


def takes_batch(name: str) -> bool:
    """Whether in this event a graph takes a batch, or tf.data makes one: what it hands over is the pipeline's.

    >>> takes_batch("IteratorGetNextOp::DoCompute"), takes_batch("Iterator::Root::Map")
    (True, True)
    """
    return name.startswith("Iterator::") or _TAKE.match(name[:_LONGEST]) is not None


def calls_graph(name: str) -> bool:
    """Whether in this event a thread has a graph run by executors and waits for it.

    >>> calls_graph("KernelAndDeviceFunc::Run"), calls_graph("EagerExecute")
    (True, False)
    """
    return _CALL.match(name) is not None


def is_programs(name: str) -> bool:
    """Whether only a thread of the program itself holds this event: Python, or what Python calls."""
    return _PROGRAM.match(name) is not None
