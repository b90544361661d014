"""What kind of slice a host event is, from its name and the thread it lies on."""

from __future__ import annotations

from stepscope.names.calls import CallRole, call_role
from stepscope.names.xla_hosts import XlaRole, classify_xla_name, event_role
from stepscope.regex import regex
from stepscope.trace.tables import Kind

_CALL_KINDS = {
    CallRole.SYNC: Kind.SYNC,
    CallRole.ALLOCATION: Kind.ALLOCATION,
    CallRole.FREE: Kind.ALLOCATION,
    CallRole.MODULE_LOAD: Kind.COMPILE,
    CallRole.GRAPH_INSTANTIATE: Kind.COMPILE,
}

_FRAME = regex(r"(?P<file>.+):(?P<line>\d+) (?P<function>.+)$")
_BUILT_IN = regex(r"(?P<module>[\w.]+) (?P<function>\S+)$")

_LONGEST = 2_048
_OP = regex(
    r"::"  # a function of the framework: "ExecutorState::Process", "aten::mul"
    r"|^[\w.\-/]+:_?[A-Z]\w*$"  # a TensorFlow op: "dense/MatMul:MatMul"
    r"|^(?:TFE_|Eager|FunctionRun$|SessionRun$|RunGraph|ExecutorDoneCallback$|convert_to_tensor$|tf\.)"
    r"|^(?:ParseArguments|RecordUsage|ValidateInputTypeAndPlacement|detach|\w+Backward\d+)$"
    # tensorflow/core/common_runtime/executor.cc, xla/pjrt/local_device_state.cc, and one seen on a TPU's host
    r"|^(?:ExecutorPropagateOutputs|ThenExecuteCallback|AllocateDestinationBuffer)(?:$|:)"
)
_FROM_PYTHON = regex(
    r"PjitFunction\(|JaxPmapFunction\(|JaxCompiledFunction\(|ParseArguments$|PythonRefManager::|np\.asarray\(jax\.Array\)"
    r"|TFE_Py_|EagerExecute$|StepMarker$|SyncTensorsGraph$"
)
_PYTHON_LINE = regex(r"(?i)python|^MainThread|^Thread-\d|^ThreadPoolExecutor-|^asyncio")


def call_kind(name: str) -> Kind:
    """The kind of a runtime call."""
    return _CALL_KINDS.get(call_role(name), Kind.RUNTIME_CALL)


def host_kind(name: str, on_python: bool) -> Kind:
    """The kind of a host event.

    ``on_python`` says whether its thread runs Python: there a name no framework has is an annotation of the user's;
    on the threads of a framework's pools it is the framework's own.
    """
    text = name[:_LONGEST]
    if text.startswith("$"):
        return Kind.PYTHON_FRAME
    if call_role(text) is not CallRole.OTHER:
        return call_kind(text)
    role = event_role(text) if on_python else classify_xla_name(text)
    if role is XlaRole.EXECUTE:
        return Kind.RUNTIME_CALL
    return Kind.HOST_OP if role is not None or not on_python or _OP.search(text) else Kind.ANNOTATION


def frame_name(name: str) -> str:
    """A Python frame in the form the rest of stepscope reads.

    Python tracers of XPlane write ``$file.py:132 function`` and ``$module function``; PyTorch writes
    ``file.py(132): function`` and ``<built-in function name>``, and so do we. What fits neither loses the ``$``.

    >>> frame_name("$api.py:12 <lambda>"), frame_name("$builtins len"), frame_name("$<unknown> __exit__")
    ('api.py(12): <lambda>', '<built-in function len>', '<unknown> __exit__')
    """
    text = name[1:]
    match = _FRAME.match(text[:_LONGEST])
    if match:
        return f"{match['file']}({match['line']}): {text[match.start('function') :]}"
    match = _BUILT_IN.match(text[:_LONGEST])
    return f"<built-in function {match['function']}>" if match else text


def is_from_python(name: str) -> bool:
    """Whether an event is one that only a thread records which runs Python: a Python frame, or the outermost of what a
    framework does for its caller (the names of ``names.xla_hosts``). Threads are called after the program that was
    started, ``pytest`` as well as ``python``."""
    return name.startswith("$") or _FROM_PYTHON.match(name[:_LONGEST]) is not None


def runs_python(line_name: str) -> bool:
    """Whether a thread's name says that it runs Python."""
    return _PYTHON_LINE.search(line_name[:_LONGEST]) is not None
