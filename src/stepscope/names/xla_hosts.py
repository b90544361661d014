"""What the host does in a profile of XLA (JAX, TensorFlow, PyTorch/XLA), from the names of its events.

A range counts as a whole and the innermost classified range wins, so inside a compilation the hundreds of compiler
passes need no names. Every row of the tables says where its strings come from: *seen* in a profile (JAX 0.10 on CPU,
JAX on MI300X, TensorFlow 2.21, PyTorch/XLA 2.9 on CPU), or *source*: only in the source, or quoted there from one.

A wait may be written as two instants instead of a range, see ``is_wait_edge``. Two things have no name at all: the
Python that builds the lazy graph of PyTorch/XLA (what lies between its classified ranges), and a ``tf.function``,
whose range has the user's name and the stat ``tf_function_call`` (``traced-nonXla`` when it was traced anew).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from stepscope.names.host_callbacks import is_host_callback, wraps_callback
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.remembered import remembered
from stepscope.regex import regex

_LONGEST = 2_048


class XlaRole(StrEnum):
    """What a stretch of host time is for."""

    GRAPH_BUILD = "graph_build"
    """Python is traced, or a graph lowered, collected or hashed."""
    COMPILE = "compile"
    """XLA compiles, or loads a compiled program from disk."""
    TRANSFER = "transfer"
    """Arrays are moved to a device, from the host or from another device."""
    FETCH = "fetch"
    """Arrays are read back: the host waits for the device."""
    EXECUTE = "execute"
    """A compiled program is started."""
    DISPATCH = "dispatch"
    """The wrapper around all of these (``PjitFunction(step)``), and the weakest role: inside a range of another role
    it adds nothing. What no other role covers in it is launching, unless it holds a range of ``MISS_EVIDENCE``: then
    the program was not in the cache and the rest is graph building."""
    WAIT = "wait"
    """The host is blocked until the device, or another host thread, is done."""
    INFEED = "infeed"
    OUTFEED = "outfeed"
    STEP_MARKER = "step_marker"
    """The end of a step of a lazy framework: what no other role covers in it is graph building."""
    LAZY_PHASE = "lazy_phase"
    """A lazy framework's range called forward or backward: what no other role covers in it is graph building."""
    CALLBACK = "callback"
    """A compiled program calls a Python function and waits for it."""
    INPUT = "input"
    NOISE = "noise"
    """To be left out: bookkeeping of profiler and runtime, completion marks, memory events."""


INPUT_THREAD = regex(r"tf_data_(?!iterator_get_next)")
"""Threads on which tf.data prepares batches ahead: their ops are its stages, not the step's (seen)."""
INPUT_WAIT = regex(r"(?:^|[:/])(?:\w*IteratorGetNext|QueueDequeue|\w*InfeedDequeue)")
"""Ops in which a step takes its batch, on whichever thread the graph runs them: it waits there for the pipeline."""

MISS_EVIDENCE = frozenset({XlaRole.GRAPH_BUILD, XlaRole.COMPILE})
"""Inside a DISPATCH range: its program had to be built, and DISPATCH ranges inside it are part of the tracing."""


@remembered
def classify_xla_name(name: str, is_python: bool = False) -> XlaRole | None:
    """The role of a host event or (``is_python``) Python frame in an XLA profile; None for ordinary work.

    To be asked before ``classify_host_name``, whose compile and input names it knows: that calls lowering compilation
    and InfeedEnqueue input. Frames are ``path(line): function``; where the path has no folder, as in an XPlane,
    the file's name must do.

    >>> classify_xla_name("[5] CommonPjRtLoadedExecutable::Execute (jit_step)")
    <XlaRole.EXECUTE: 'execute'>
    >>> classify_xla_name("mlir.py(1287): lower_jaxpr_to_module", is_python=True)
    <XlaRole.GRAPH_BUILD: 'graph_build'>
    """
    text = name[:_LONGEST]
    if is_python:
        frame = _FRAME.match(text)
        if wraps_callback(text):
            return XlaRole.CALLBACK
        role = _frame_role(frame["path"].replace("\\", "/"), frame["function"]) if frame else None
    else:
        text = _DEVICE.sub("", text)
        role = event_role(text)
    return role or _SHARED.get(classify_host_name(text, is_python))


@remembered
def event_role(name: str) -> XlaRole | None:
    """As ``classify_xla_name`` of a host event, but only by names that frameworks write: words that a user's own
    annotation may hold (``load_batch``) do not count."""
    text = _DEVICE.sub("", name[:_LONGEST])
    if is_host_callback(text):
        return XlaRole.CALLBACK
    return next((role for role, pattern in _EVENTS if pattern.match(text)), None)


_SHARED: dict[HostRole | None, XlaRole] = {HostRole.COMPILE: XlaRole.COMPILE, HostRole.INPUT: XlaRole.INPUT}
_DEVICE = regex(r"\[(?P<device>\d{1,9})\] ")
"""XLA_LOG_DEVICE (xla/pjrt): the ordinal before the event, "[5] CommonPjRtLoadedExecutable::Execute (jit_step)"."""


def sends_arrays(name: str) -> bool:
    """Whether a host event hands arrays to a device. A call looks at its arguments (``shard_args``) also where all of
    them are there already.

    >>> [sends_arrays(name) for name in ("DevicePutWithSharding", "shard_args", "api.py(2035): device_put")]
    [True, False, False]
    """
    return event_role(name) is XlaRole.TRANSFER and not name.endswith("shard_args")


def _rows(*rows: tuple[XlaRole, *tuple[str, ...]]) -> tuple[tuple[XlaRole, re.Pattern[str]], ...]:
    return tuple((role, regex("|".join(patterns))) for role, *patterns in rows)


_R = XlaRole
_EVENTS = _rows(
    (_R.NOISE,
     r"ThreadpoolListener::(?:Record|StartRegion|StopRegion)$",  # tsl/profiler threadpool_listener.cc, seen
     r"Memory(?:Allocation|Deallocation)$",  # tsl/framework/bfc_allocator.cc, seen
     r"PythonRefManager::CollectGarbage$",  # xla/python/python_ref_manager.cc, seen
     r"PJRT_LoadedExecutable_Execute linkage$",  # xla/pjrt/c, seen
     r"end: ",  # xla/backends/cpu/runtime: an async op was completed, seen
     r"tpu::System::\S+=>Done$|CompleteCallbacks$|ReadSyncFlag$"),  # libtpu: after the program, source
    (_R.WAIT,
     r"Thunk\w+::Execute \(wait for completion\)$",  # xla/pjrt/cpu/cpu_client.cc, seen
     r"Acquire semaphore$",  # until the device has done one of the programs that may be in flight (TPU), seen
     r"Wait for (?:LaunchOnDevice completion|(?:donation|usage) holds)$",  # xla/pjrt/common_pjrt_client.cc, seen
     r"Wait for (?:rendezvous callback|(?:send|recv) completion\b)|Wait: pending_threads=\d",  # rendezvous.h, seen
     r"(?:Invoke)?Rendezvous(?:AfterInitialization)?$",  # xla/service/rendezvous.h, seen
     r"(?:\w+::)+(?:Await|BlockHostUntil\w+|BlockUntilReady)$|PJRT_Event_Await$",  # xla/pjrt, xla/stream_executor
     r"ComputeSemaphoreAcquire$",  # xla/pjrt/pjrt_stream_executor_client.cc: too many programs in flight, seen
     r"(?:TensorCollection|Device)Barrier$",  # torch_xla/csrc/xla_graph_executor.cpp: the last step's launch, seen
     r"(?:\w+::)?WaitDeviceOps$",  # torch_xla/csrc/runtime, source
     r"CustomWait$|PjrtAsyncWait$",  # tsl/profiler/utils/xplane_schema.cc, source
     r"XlaDevice::Sync\b"),  # tensorflow/compiler/jit/xla_device.cc, source
    (_R.INFEED, r"(?:.*[:/])?InfeedEnqueue\w*$|(?:\w+::)*TransferToInfeed\w*"),  # tensorflow tpu ops, xla/pjrt: source
    (_R.OUTFEED, r"(?:.*[:/])?OutfeedDequeue\w*$|(?:\w+::)*TransferFromOutfeed\w*"),  # the same
    (_R.STEP_MARKER, r"(?:StepMarker|MarkStep)$"),  # torch_xla/csrc/init_python_bindings.cpp, first one seen
    (_R.INPUT,
     r"(?:Prefetch|MapAndBatch|Parallel\w+|ParseExample)(?:Produce|Consume)$",  # tensorflow/core/data, seen
     r"EagerLocalExecute(?:Async)?: \w*IteratorGetNext",  # tensorflow/core/common_runtime/eager/execute.cc, seen
     r"cpu_loader\.next$|get_batch_from_cpu_queue$"),  # torch_xla/distributed/parallel_loader.py, seen
    (_R.COMPILE,
     r"backend_compile(?:_and_load)?$",  # jax/_src/compiler.py (dispatch.py of old), seen
     r"\w+Client::(?:Compile|Load|Deserialize)\w*|PJRT_Client_Compile$",  # xla/pjrt, seen
     r"XLAGraphExecutor::Compile$",  # torch_xla/csrc/xla_graph_executor.cpp, seen
     r"(?:Codegen|SplitModule|TaskDispatcher::dispatch|ThunkEmitter::\w+)$",  # xla/service/cpu, xla/backends/cpu, seen
     r"HLO passes \w",  # xla/service, seen
     r"Xla(?:Compile|Pass|Create\w+Executable|OptimizeLlvmIr|EmitLlvmIr|EmitGpuAsm|Dump\w+|MemoryScheduler)\w*\b",
     r"PTX->CUBIN$",  # xla/service/gpu/nvptx_compiler.cc, source, as the line before
     r".*:(?:_?TPUCompile\w*|_?XlaCompile\w*|XRTCompile\w*)$"),  # tensorflow ops "<name>:<type>", source
    (_R.GRAPH_BUILD,
     r"trace_to_(?:sub)?jaxpr\w*$",  # jax/_src/interpreters/partial_eval.py, seen
     r"lower_(?:sharding|mesh)_computation$|lower_parallel_callable$",  # jax/_src/interpreters/pxla.py, first seen
     r"lower_xla_callable$|_?xla_callable(?:_uncached)?$",  # jax/_src/dispatch.py of old, source
     r"tf\.function-graph_building$",  # tensorflow/python/eager/polymorphic_function, seen
     r"Sync(?:Live)?Tensors(?:Graph(?:Internal)?|ToData)$|CollectSyncTensors$|RunPostOrder$",  # torch_xla/csrc, seen
     r"ExtractIRAndPrepareXlaData_$|SetTensorData$|update_placeholder$",  # the same, seen
     r"LookupCachedCompile$|CreateTensorsData$|ReshardData$|PrepareOutputShardingPropagation$",  # the same, source
     r"xla::\w+$|jax_to_xla_computation$",  # torch_xla/core/xla_builder.py, source
     r"build_graph$"),  # what the examples of torch_xla call the forward and backward pass, source
    (_R.FETCH,
     r"np\.asarray\(jax\.Array\)$|ArrayImpl\.copy_to_host_async$",  # jax/_src/array.py, seen
     r"(?:\w+::)*(?:TransferFrom(?:Device|Server)|ToLiteral|CopyRawToHost|CopyDeviceTensorToCPU)\w*",  # pjrt, seen
     r"D2H (?:Dispatch|Copy From Staging|Read Shape)",  # xla/pjrt/common_pjrt_client.cc, first seen
     r"TransferD2HRequest$|ReadHbm$|(?:Xla)?Delinearize$|TransferBufferFromDevice",  # xplane_schema.cc, libtpu: source
     r".*:XRTRead\w+$"),  # tensorflow/compiler/xrt, source
    (_R.TRANSFER,
     r"shard_args$|cpp_pjit_shard_arg\w*$",  # jax/_src/interpreters/pxla.py, jaxlib pjit.cc, seen
     r"DevicePut\w*$|(?:B|b)atched_?[Cc]opy\w+",  # jaxlib py_values.cc, py_array.cc, seen
     r"(?:\w+::)*(?:TransferTo(?:Device|Server)|TransferShardsToDevice|CopyTo(?:Device|MemorySpace)|BufferFromHost"
     r"|Linearize|CopyCPUTensorToDevice)\w*",  # xla/pjrt, torch_xla/csrc/runtime, tensorflow: seen
     r"H2D (?:Dispatch|Copy To Staging)",  # xla/pjrt/common_pjrt_client.cc, source
     r"Transfer(?:Preprocessed)?H2DRequest$|WriteHbm$|XlaLinearize$",  # xplane_schema.cc, libtpu: source
     r"EagerCopyToDevice$",  # tensorflow/core/common_runtime/eager, seen
     r"cpu_data_to_xla_device$",  # torch_xla/distributed/parallel_loader.py, seen
     r".*:XRTAllocate\w*$"),  # tensorflow/compiler/xrt, source
    (_R.EXECUTE,
     # xla/pjrt, xla/service, libtpu: PjRtCpuExecutable::ExecuteHelper, PjRtStreamExecutorLoadedExecutable::
     # EnqueueExecution, CommonPjRtLoadedExecutable::ExecutePrepare, TpuLoadedExecutable::ExecuteLaunch,
     # LocalExecutable::Execute, CpuExecutable::ExecuteAsyncOnStream, GpuExecutable::ExecuteThunks: seen but for libtpu
     r"\w*Executable::(?:Execute|EnqueueExecution)\w*|PJRT_LoadedExecutable_Execute$|RunExecutable$",
     r"ThunkExecutor::Execute$",  # xla/backends/cpu/runtime, seen
     r"[^:]+:XLA \w+ module$|XlaModule:#|Thunk:#",  # xla/service/gpu: seen; as NVTX ranges: source
     r"ExecuteReplicated\.__call__$",  # jax/_src/interpreters/pxla.py, seen
     r"(?:\w+ComputationClient::)?Execute(?:Computation|Replicated|Chained)\w*$",  # torch_xla/csrc/runtime, seen
     r"ScheduleSyncTensorsGraph$",  # torch_xla/csrc/xla_graph_executor.cpp, seen
     r"T[Pp][Uu]Execute\w*|XRTExecute\w*|TPUPartitionedCallOp-Execute\w+",  # tensorflow/core/tpu/kernels, xrt: source
     r"tpu::System::Execute|RunProgramRequest$|EnqueueRequest\w*$|DoEnqueue\w*Program$",  # libtpu: source
     r".*:(?:TPUExecute\w*|_?XlaRun|XRTExecute\w*)$"),  # tensorflow ops "<name>:<type>", source
    (_R.DISPATCH,
     r"(?:Pjit|JaxPmap|JaxCompiled)Function\(",  # jaxlib pjit.cc seen, pmap_lib.cc and jax_jit.cc of old: source
     r".*:_?XlaLaunch\w*$|XlaLocalLaunchOpBase::Compute",  # tensorflow/compiler/jit, source
     r"TFE_Py_(?:FastPathExecute_C|Execute\w*)$|EagerExecute$|EagerKernelExecute$",  # pywrap_tfe_src.cc, seen
     r"EagerLocalExecute(?:Async)?: |KernelAndDeviceFunc::Run\w*$"),  # tensorflow/core/common_runtime/eager, seen
)  # fmt: skip
"""Host events, in order: the first row that fits wins."""


_FRAME = regex(r"(?P<path>[^()]+)\(\d+\): (?P<function>.+)$")


def _frame(
    role: XlaRole, package: str, files: str, *functions: str
) -> tuple[XlaRole, re.Pattern[str], re.Pattern[str]]:
    path = regex(rf"(?:(?:.*/)?{package}/(?:.*/)?)?(?:{files})\.py$")
    return role, path, regex(rf"(?:{'|'.join(functions)})$")


_FRAMES = tuple(_frame(*row) for row in (
    # JAX 0.10, seen, with the names of releases since 0.2.
    (_R.COMPILE, "jax", "compiler|dispatch", r"backend_compile\w*|compile_or_get_cached|_compile_and_\w+",
     r"_cache_(?:read|write)|_resolve_compilation_strategy"),
    (_R.COMPILE, "jax", "pxla", r"compile|from_hlo|_cached_compilation"),
    (_R.COMPILE, "jax", "stages", r"compile"),
    (_R.GRAPH_BUILD, "jax", "stages", r"lower|trace"),
    (_R.GRAPH_BUILD, "jax", "pjit", r"_trace_for_jit|_create_pjit_jaxpr|_pjit_lower\w*|_resolve_and_lower",
     r"jit_(?:trace|lower)"),
    (_R.GRAPH_BUILD, "jax", "partial_eval", r"_?(?:cached_)?trace_to_(?:sub)?jaxpr\w*|lower_jaxpr\w*|dce_jaxpr\w*"),
    (_R.GRAPH_BUILD, "jax", "pxla", r"lower_\w+|_?cached_lowering\w*|stage_parallel_callable"),
    (_R.GRAPH_BUILD, "jax", "mlir", r"_?lower_(?:jaxpr|fun|per)\w*|jaxpr_subcomp|_cached_lowering\w*|make_ir_context",
     r"module_to_\w+"),
    (_R.GRAPH_BUILD, "jax", "dispatch", r"_?xla_callable\w*|lower_xla_callable|jaxpr_subcomp"),
    (_R.GRAPH_BUILD, "jax", "api", r"make_jaxpr\w*|eval_shape"),
    (_R.EXECUTE, "jax", "dispatch", r"_?execute_(?:compiled|replicated)\w*"),
    (_R.WAIT, "jax", "api|array|dispatch", r"block_until_ready|effects_barrier|wait_for_tokens"),
    (_R.WAIT, "jax", "multihost_utils", r"sync_global_devices"),
    (_R.FETCH, "jax", "api|array", r"_?device_get|_value|copy_to_host_async"),
    (_R.TRANSFER, "jax", "api|dispatch|pxla", r"_?(?:batched_)?device_put(?:_\w*impl)?|shard_args|shard_device_array"),
    (_R.DISPATCH, "jax", "pjit|api", r"cache_miss|_run_python_pjit|_python_pjit_helper"),
    (_R.DISPATCH, "jax", "dispatch", r"apply_primitive"),
    # PyTorch/XLA 2.9 and TensorFlow 2.21, source.
    (_R.STEP_MARKER, "torch_xla", "xla_model", r"mark_step"),
    (_R.STEP_MARKER, "torch_xla", "torch_xla", r"sync"),
    (_R.WAIT, "torch_xla", "xla_model", r"wait_device_ops|(?:xla_)?rendezvous"),
    (_R.TRANSFER, "torch_xla", "xla_model|parallel_loader", r"send_cpu_data_to_device"),
    (_R.INPUT, "torch_xla", "parallel_loader", r"__next__|next|next_item|_get_batch|_loader_worker"),
    (_R.GRAPH_BUILD, "torch_xla", "dynamo_bridge", r"extract_(?:compiled_graph|graph_helper|internal)\w*"),
    (_R.GRAPH_BUILD, "tensorflow", "polymorphic_function|def_function", r"_initialize|get_concrete_function",
     r"_get_concrete_function_\w+"),
    # trace_function and _maybe_define_function look the function up, in every call: only what they call then traces.
    (_R.GRAPH_BUILD, "tensorflow", "tracing_compilation", r"_create_concrete_function"),
    (_R.GRAPH_BUILD, "tensorflow", "function", r"_create_graph_function"),
    (_R.GRAPH_BUILD, "tensorflow", "func_graph", r"func_graph_from_py_func"),
    (_R.FETCH, "tensorflow", "ops", r"numpy|_numpy|_numpy_internal"),
    (_R.INPUT, "tensorflow", "iterator_ops", r"__next__|_next_internal"),
    (_R.INPUT, "torch", "dataloader", r"__next__|_next_data|_(?:try_)?get_data"),
))  # fmt: skip
"""Python frames: role, package, files, functions."""


def _frame_role(path: str, function: str) -> XlaRole | None:
    return next((role for role, where, functions in _FRAMES if where.match(path) and functions.match(function)), None)


def is_lazy_phase(name: str) -> bool:
    """Whether people call so a range that, in a lazy framework, holds the building of the graph.

    >>> [is_lazy_phase(name) for name in ("Backward pass", "train/forward_step", "fast-forwarding")]
    [True, True, False]
    """
    return _PHASE.search(name[:_LONGEST]) is not None


_PHASE = regex(r"(?<![a-z])(?:forward|backward)(?![a-z])", re.IGNORECASE)


class XlaExecution(NamedTuple):
    """The start of a compiled program: the device's ordinal and the module's name, None where not told."""

    device: int | None
    module: str | None


def xla_execution(name: str) -> XlaExecution | None:
    """What a host event that starts a program tells of it; None for other events. Such events nest: one start of a
    program is the outermost of them on its thread.

    >>> xla_execution("[5] CommonPjRtLoadedExecutable::Execute (jit_step)")
    XlaExecution(device=5, module='jit_step')
    >>> xla_execution("jit_conv:XLA GPU module")
    XlaExecution(device=None, module='jit_conv')
    """
    if classify_xla_name(name) is not XlaRole.EXECUTE:
        return None
    text = name[:_LONGEST]
    device = _DEVICE.match(text) or _ORDINAL.search(text)
    gpu = _GPU_MODULE.match(text)
    return XlaExecution(int(device["device"]) if device else None, gpu["module"] if gpu else _module(text))


_ORDINAL = regex(r"[#,]device_ordinal=(?P<device>\d{1,9})\b")
_GPU_MODULE = regex(r"(?:\[\d+\] )?(?P<module>[^:]+):XLA \w+ module$")
_MODULE = regex(r"[#,](?:hlo_)?module=(?P<module>[^,#]+)|\((?P<last>[^()]+)\)$")


@remembered
def compiled_module(name: str) -> str | None:
    """The module that a host event compiles, where its name tells; the stats ``name`` and ``module`` tell it elsewhere.

    >>> compiled_module("HLO passes through layout assignment (jit_step)")
    'jit_step'
    """
    module = _module(name[:_LONGEST])  # Asked first: few names hold one.
    return module if module is not None and classify_xla_name(name) is XlaRole.COMPILE else None


def _module(text: str) -> str | None:
    match = _MODULE.search(text)
    return (match["module"] or match["last"]) if match else None


def runs_program(name: str) -> bool:
    """Whether in this event a host thread is the device: XLA on the CPU runs a program's ops on it, so that what waits
    inside (a collective for its other participants) is no host waiting for the device."""
    return name == "ThunkExecutor::Execute"  # xla/backends/cpu/runtime/thunk_executor.cc, seen


def is_wait_edge(name: str) -> bool:
    """Whether the instants of a name bound a wait of their thread: it begins with the one that has a producer id
    (stat ``_p``) and ends with the one of the same consumer id (``_c``). Nothing else in an XPlane shows how long
    ``block_until_ready`` blocked (xla/pjrt/common_pjrt_client.cc CreateProfiledFuture, seen)."""
    return _EDGE.match(_DEVICE.sub("", name[:_LONGEST])) is not None


_EDGE = regex(r"\w+::(?:Await|ToLiteral|CopyRawToHost\w*)$")


_FRAMEWORKS = (
    ("PyTorch/XLA", regex(r"XLAGraphExecutor::|XLATensor::|SyncTensorsGraph|StepMarker$")),
    ("JAX", regex(r"PjitFunction\(|JaxCompiledFunction|np\.asarray\(jax\.Array\)")),
    (
        "TensorFlow",
        regex(
            r"ExecutorState::Process|Eager\w*Execute(?:Async)?(?:$|: )|KernelAndDevice\w+::Run|TFE_Py_"
            r"|(?:Function|Session)Run$"
        ),
    ),
    ("PyTorch", regex(r"aten::")),
)
"""Names that only one framework writes, in the order they count."""


def framework_of(names: Iterable[str]) -> str | None:
    """The framework whose host events these are; None where no name tells."""
    named = {framework for name in names for framework, pattern in _FRAMEWORKS if pattern.match(name)}
    return next((framework for framework, _ in _FRAMEWORKS if framework in named), None)
