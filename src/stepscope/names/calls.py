"""What a runtime or driver call does, from its name: CUDA, HIP, Level Zero and SYCL (XPU), MTIA.

Sources: the CUDA runtime and driver API references, the HIP API reference, the Unified Runtime and Level Zero
specifications, and the MTIA calls of public profiles.
"""

from __future__ import annotations

from enum import StrEnum

from stepscope.names.remembered import remembered
from stepscope.regex import regex

_LONGEST = 512


class CallRole(StrEnum):
    """What a call is for, in words that hold for every vendor."""

    LAUNCH = "launch"
    GRAPH_LAUNCH = "graph_launch"
    COPY = "copy"
    COPY_BLOCKING = "copy_blocking"
    MEMSET = "memset"
    SYNC = "sync"
    STREAM_WAIT = "stream_wait"
    EVENT_RECORD = "event_record"
    QUERY = "query"
    ALLOCATION = "allocation"
    FREE = "free"
    MODULE_LOAD = "module_load"
    CAPTURE_BEGIN = "capture_begin"
    """What is launched from here on is recorded into a graph and does not run."""
    CAPTURE_END = "capture_end"
    GRAPH_INSTANTIATE = "graph_instantiate"
    OTHER = "other"


@remembered
def call_role(name: str) -> CallRole:
    """The role of a runtime or driver call.

    Only the name is known here: an asynchronous copy of pageable memory also blocks its caller, and
    ``cudaFree`` waits for the device although its role is ``free``.

    >>> call_role("cudaStreamWaitEvent").value, call_role("cudaMemcpy").value
    ('stream_wait', 'copy_blocking')
    """
    text = _SUFFIX.sub("", name.strip()[:_LONGEST])
    for role, pattern in _ROLES:
        if pattern.search(text):
            return role
    return CallRole.OTHER


def is_graph_launch(name: str) -> bool:
    """Whether a call launches a whole graph."""
    return call_role(name) is CallRole.GRAPH_LAUNCH


def frees(name: str) -> bool:
    """Whether a call frees memory."""
    return call_role(name) is CallRole.FREE


def is_blocking_copy(name: str) -> bool:
    """Whether a call copies, and returns once that is done."""
    return call_role(name) is CallRole.COPY_BLOCKING


_SUFFIX = regex(r"(?:_(?:v\d+|ptsz|ptds|spt))+$")
"""CUPTI and the driver append the version and the kind of default stream."""


def without_version(name: str) -> str:
    """A call's name without those.

    >>> without_version("cudaStreamSynchronize_v3020")
    'cudaStreamSynchronize'
    """
    return _SUFFIX.sub("", name)


def sets_up(name: str) -> bool:
    """Whether a call, or a range named like one, does nothing but create what lasts: a library's handle, a
    communicator.

    >>> sets_up("cublasCreate_v2"), sets_up("ncclCommInitRankConfig"), sets_up("cudaMalloc")
    (True, True, False)
    """
    return _SETS_UP.search(name[:_LONGEST]) is not None


def is_runtime_call(name: str) -> bool:
    """Whether a name is of the runtime's or driver's own interface: CUDA's, HIP's, Level Zero's."""
    return _RUNTIME.match(name[:_LONGEST]) is not None and not _PROFILES.match(name[:_LONGEST])


_SETS_UP = regex(
    r"^(?:cublas(?:Lt|Xt)?|cudnn|cusolver[A-Z]\w|cusparse(?:Lt)?|hip(?:blas(?:Lt)?|solver\w*?|sparse|dnn)|miopen)"
    r"Create(?:WithStream)?(?:_v\d+)?$"
    r"|^rocblas_create_handle$|^p?ncclCommInit(?:Rank|All)\w*$"
    r"|(?:^|/)torch/(?:cuda|xpu)/__init__\.py\(\d+\): _lazy_init$"
)
_RUNTIME = regex(r"^(?:cuda|cu|hip|hsa_|ze|ur)(?:[A-Z]|(?<=_)[a-z])")
_PROFILES = regex(r"^(?:cuda|cu|hip)Profiler")

_R = CallRole
_ROLES = tuple((role, regex("|".join(patterns))) for role, *patterns in (
    (_R.GRAPH_LAUNCH, r"^(?:cuda|cu|hip)GraphLaunch", r"^urCommandBufferEnqueue|^urEnqueueCommandBuffer"),
    (_R.LAUNCH, r"^(?:cuda|cu|hip[A-Za-z]*?)Launch(?!HostFunc)[A-Za-z]*$", r"^runFunction\b",
     r"^(?:ur|pi)Enqueue(?:Cooperative)?KernelLaunch|^zeCommandListAppendLaunch\w*Kernel"),
    (_R.STREAM_WAIT, r"^(?:cuda|cu|hip)Stream(?:WaitEvent|WaitValue|BatchMemOp)", r"^enqueueCommand wait",
     r"^urEnqueueEventsWait|^zeCommandListAppend(?:WaitOnEvents|Barrier)"),
    (_R.SYNC, r"^(?:cuda|cu|hip)\w*Synchronize$", r"^synchronize(?:Stream)?$",
     r"^(?:ur|pi)(?:EventWait|EventsWait|QueueFinish)$|^ze\w*Synchronize$"),
    (_R.EVENT_RECORD, r"^(?:cuda|cu|hip)EventRecord", r"^recordEvent$", r"^zeCommandListAppendSignalEvent"),
    (_R.QUERY, r"^(?:cuda|cu|hip)(?:Event|Stream)(?:Query|ElapsedTime|IsCapturing|GetCaptureInfo)",
     r"^zeEventQueryStatus$"),
    (_R.CAPTURE_BEGIN, r"^(?:cuda|cu|hip)StreamBeginCapture"),
    (_R.CAPTURE_END, r"^(?:cuda|cu|hip)StreamEndCapture"),
    (_R.GRAPH_INSTANTIATE, r"^(?:cuda|cu|hip)GraphInstantiate"),
    # Copies between devices return at once even without "Async" (CUDA: API synchronization behavior).
    (_R.COPY, r"^(?:cuda|cu|hip)Memcpy(?:\w*Async|(?:3D)?Peer|DtoD)$", r"^(?:cuda|cu|hip)MemPrefetchAsync$",
     r"^enqueueCommand memcpy", r"^zeCommandListAppendMemoryCopy",
     r"^(?:urEnqueue|piEnqueue|piextUSMEnqueue)\w*(?:Memcpy|Copy|Read|Write)"),
    (_R.COPY_BLOCKING, r"^(?:cuda|cu|hip)Memcpy"),
    (_R.MEMSET, r"^(?:cuda|cu|hip)Memset", r"^(?:urEnqueue|piEnqueue|piextUSMEnqueue)\w*(?:Memset|Fill)",
     r"^zeCommandListAppendMemoryFill"),
    (_R.FREE, r"^(?:cuda|cu|hip)(?:Free|MemFree|MemRelease|MemUnmap|MemAddressFree|HostFree|HostUnregister)",
     r"^(?:ur|piext)USMFree|^zeMemFree"),
    (_R.ALLOCATION, r"^(?:cuda|hip)(?:Ext)?(?:Malloc|HostAlloc|HostMalloc|HostRegister)",
     r"^cu(?:MemAlloc|MemHostAlloc|MemHostRegister)", r"^(?:ur|piext)USM\w*Alloc|^zeMemAlloc",
     r"^(?:cu|hip)Mem(?:Create|Map|AddressReserve|SetAccess)$"),
    (_R.MODULE_LOAD, r"^(?:cu|hip)Module(?:Load|GetFunction)", r"^cu(?:Func|Kernel)(?:Load|GetFunction)",
     r"^(?:cuda|cu|hip)Library(?:Load|Get(?:Kernel|Module))",
     r"^(?:cu|hiprtc)Link(?:Create|Add|Complete)", r"^(?:nv|hip)rtcCompileProgram",
     r"^(?:ur|pi)Program(?:Build|Compile|Link|CreateWith)|^zeModuleCreate",
     r"^(?:Lazy Function Loading|Runtime Triggered Module Loading)$"),
))  # fmt: skip
