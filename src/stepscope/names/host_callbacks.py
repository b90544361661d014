"""Ops of compiled programs that call Python on the host, and wait until it returns (JAX's callbacks).

Targets of custom calls: jaxlib (``xla_python_cpu_callback`` before JAX 0.5, ``xla_ffi_python_cpu_callback`` and its
like since; ``xla_buffer_python_…`` of ``buffer_callback``). XLA names the op after JAX's primitive. The function in
which JAX wraps what the user gave is ``_wrapped_callback``, in ``mlir.py`` of old and ``callback.py`` since.
"""

from __future__ import annotations

from stepscope.regex import regex

HOST_CALLBACK = "host-callback"
"""The category of such an op: its opcode is only ``custom-call``."""

_LONGEST = 512
_TARGET = regex(r"xla_(?:ffi_|buffer_)?(?:partitioned_)?python_(?:cpu|gpu)_callback$")
_OP = regex(r"%?(?:(?:pure|io|debug|buffer)_callback|debug_print)(?:\.\d+)*$")
_WAY = regex(
    r"(?:^|/)(?:callback|debugging|mlir|api|pxla|dispatch|profiler|array|util|tree_util)\.py\(\d+\): "
    r"(?:_?callback(?:_impl)?|\w+_callback|\w+_callback_impl|_flat_callback|merge_callback_args|__call__|<\w+>|wrapper"
    r"|device_put|shard_args|_batched_device_put_impl|_shard_np_array|batched_device_put|__format__|__array__|_value"
    r"|tree_\w+)$"
)
_WRAPPER = regex(r"\(\d+\): _wrapped_callback$")


def calls_python(target: str) -> bool:
    """Whether a custom call's target calls Python on the host.

    >>> calls_python("xla_ffi_python_cpu_callback"), calls_python("__cublas$gemm")
    (True, False)
    """
    return _TARGET.match(target[:_LONGEST]) is not None


def is_host_callback(op: str) -> bool:
    """Whether an op's name is one that XLA makes of such a primitive.

    >>> is_host_callback("pure_callback.1"), is_host_callback("debug_print"), is_host_callback("callback_fusion")
    (True, True, False)
    """
    return _OP.match(op[:_LONGEST]) is not None


def hands_on(frame: str) -> bool:
    """Whether a Python frame is of JAX's own way from there to the user's function; XPlane files keep no folder.

    >>> hands_on("callback.py(224): _callback"), hands_on("callback.py(12): save_metrics")
    (True, False)
    """
    return _WAY.search(frame[:_LONGEST]) is not None


def wraps_callback(frame: str) -> bool:
    """Whether a Python frame is the one inside which the user's function runs.

    >>> wraps_callback("callback.py(815): _wrapped_callback")
    True
    """
    return _WRAPPER.search(frame[:_LONGEST]) is not None
