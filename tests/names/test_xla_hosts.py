"""Names of XLA's host events and of the Python frames around them, and what they must be read as."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.xla_hosts import (
    XlaRole,
    classify_xla_name,
    compiled_module,
    is_wait_edge,
    xla_execution,
)
from tests.kit.traces import real_trace

EVENTS = {
    XlaRole.GRAPH_BUILD: """
        trace_to_jaxpr_dynamic; trace_to_subjaxpr_dynamic; lower_sharding_computation; lower_xla_callable
        tf.function-graph_building; SyncTensorsGraph; SyncTensorsGraphInternal; SyncLiveTensorsGraph
        CollectSyncTensors; RunPostOrder; ExtractIRAndPrepareXlaData_; SetTensorData; LookupCachedCompile
        xla::add; build_graph""",
    XlaRole.COMPILE: """
        backend_compile; backend_compile_and_load; PjRtCpuClient::Compile; PjRtComputationClient::Compile
        PjRtStreamExecutorClient::CompileInternal; PJRT_Client_Compile; XLAGraphExecutor::Compile
        CpuCompiler::RunBackend; FusionCompiler::Compile; JitCompiler::Compile; Codegen; TaskDispatcher::dispatch
        HLO passes through layout assignment (jit_step); XlaCompile; XlaCompile:#module=jit_f,program_id=3#
        XlaPassPipeline:#name=fusion,module=jit_f,program_id=3#; PTX->CUBIN; cluster/_tpu:_TPUCompileMlir
        a/b:_XlaCompile; c:XRTCompile""",
    XlaRole.TRANSFER: """
        shard_args; cpp_pjit_shard_arg_fallback; DevicePut; DevicePutWithSharding; TransferToServer
        batched_copy_array_to_devices_with_sharding; BatchedCopyToDeviceWithSharding: dispatch
        PjRtComputationClient::TransferToDevice; PjRtComputationClient::CopyToDevice; EagerCopyToDevice
        PjRtStreamExecutorBuffer::CopyToDeviceHelper::async_copy_to_device; BufferFromHostBuffer(bf16[256,75968])
        CommonPjRtClient::BufferFromHostLiteral; TpuClient::LinearizeIntoImpl; tpu::System::TransferToDevice
        tpu::System::TransferToDevice=>IssueEvent; TransferPreprocessedH2DRequest; H2D Dispatch
        cpu_data_to_xla_device; t:XRTAllocateFromTensor""",
    XlaRole.FETCH: """
        np.asarray(jax.Array); ArrayImpl.copy_to_host_async; CommonPjRtBuffer::ToLiteral; D2H Dispatch
        PjRtComputationClient::TransferFromDevice; TransferFromServer; tpu::System::TransferFromDevice
        XlaDelinearize; TransferBufferFromDevice-FastPath; r:XRTReadLiteralAndRelease""",
    XlaRole.EXECUTE: """
        CommonPjRtLoadedExecutable::Execute (jit_step); [5] CommonPjRtLoadedExecutable::Execute (jit_step)
        PjRtStreamExecutorLoadedExecutable::EnqueueExecution; PjRtCpuExecutable::ExecuteHelper
        TpuLoadedExecutable::ExecuteLaunch; TfrtTpuLoadedExecutable::Execute; LocalExecutable::Execute#run_id=7#
        PJRT_LoadedExecutable_Execute; [0] GpuExecutable::ExecuteThunks; jit_step:XLA GPU module
        ExecuteReplicated.__call__; PjRtComputationClient::ExecuteComputation; ExecuteComputationWithBarrier
        PjRtComputationClient::ExecuteReplicated_execute; ScheduleSyncTensorsGraph; tpu::System::Execute
        TpuExecuteOp; TPUExecuteOp::Init; DoEnqueueProgram; RunProgramRequest; ThunkExecutor::Execute
        while/body:TPUExecuteAndUpdateVariables; cluster:_XlaRun; x:XRTExecute; XRTExecuteOp::LookupProto
        XlaModule:#hlo_module=jit_f,program_id=3#""",
    XlaRole.DISPATCH: """
        PjitFunction(step); PjitFunction(jit(wait)); JaxPmapFunction(f); JaxCompiledFunction(f)
        TFE_Py_FastPathExecute_C; EagerLocalExecute: MatMul; EagerExecute; KernelAndDeviceFunc::Run; c:XlaLaunch""",
    XlaRole.WAIT: """
        ThunkExecutor::Execute (wait for completion); Wait for LaunchOnDevice completion; Wait for donation holds
        Wait: pending_threads=2/8; Rendezvous; InvokeRendezvous; CommonPjRtBuffer::Await
        PyLocalBuffer::BlockHostUntilReady; CudaStream::BlockHostUntilDone; ComputeSemaphoreAcquire
        TensorCollectionBarrier; DeviceBarrier; PjRtComputationClient::WaitDeviceOps""",
    XlaRole.INFEED: "InfeedEnqueueTuple; input/enqueue/0:InfeedEnqueueTuple; TransferToInfeed",
    XlaRole.OUTFEED: "out:OutfeedDequeueTuple; PjRtStreamExecutorDevice::TransferFromOutfeed",
    XlaRole.STEP_MARKER: "StepMarker; MarkStep",
    XlaRole.INPUT: """
        Iterator::Root::Prefetch; IteratorGetNextOp::DoCompute; EagerLocalExecute: IteratorGetNext; PrefetchConsume
        MapAndBatchProduce; ParallelMapConsume; cpu_loader.next; get_batch_from_cpu_queue""",
    XlaRole.NOISE: """
        ThreadpoolListener::Record; ThreadpoolListener::StopRegion; end: all-reduce.3; MemoryAllocation
        PythonRefManager::CollectGarbage; PJRT_LoadedExecutable_Execute linkage; tpu::System::Execute=>Done""",
    None: """
        train; step; load; my Execute; Compile; dot.4; all-reduce.2; ynn_fusion.1; ParseArguments
        BufferSequencingEvent::Execute; XLAEigen; Wait for data; transfer; ExecutorState::Process; rebuild_graph
        Thunks::Prepare; jit_step(123)""",
}

FRAMES = {
    XlaRole.GRAPH_BUILD: """
        pjit.py(466): _trace_for_jit; partial_eval.py(2268): trace_to_jaxpr; pjit.py(1248): _pjit_lower
        jax/_src/interpreters/partial_eval.py(2200): trace_to_subjaxpr_dynamic; pxla.py(954): lower_sharding_computation
        /usr/lib/python3/site-packages/jax/_src/interpreters/mlir.py(1287): lower_jaxpr_to_module
        mlir.py(2075): jaxpr_subcomp; stages.py(937): lower
        tensorflow/python/framework/func_graph.py(921): func_graph_from_py_func
        torch_xla/_dynamo/dynamo_bridge.py(670): extract_compiled_graph""",
    XlaRole.COMPILE: """
        compiler.py(292): backend_compile_and_load; jax/_src/dispatch.py(900): backend_compile
        compiler.py(387): compile_or_get_cached; pxla.py(1209): compile; torch/utils/cpp_extension.py(9): load""",
    XlaRole.TRANSFER: """
        api.py(2035): device_put; dispatch.py(598): _batched_device_put_impl; pxla.py(86): shard_args
        torch_xla/core/xla_model.py(1268): send_cpu_data_to_device""",
    XlaRole.FETCH: "array.py(615): _value; jax/_src/api.py(2277): device_get; ops.py(416): numpy",
    XlaRole.WAIT: "api.py(2479): block_until_ready; torch_xla/core/xla_model.py(1084): wait_device_ops",
    XlaRole.DISPATCH: "pjit.py(250): cache_miss; dispatch.py(81): apply_primitive",
    XlaRole.STEP_MARKER: "torch_xla/core/xla_model.py(1031): mark_step; torch_xla.py(78): sync",
    XlaRole.INPUT: """
        torch_xla/distributed/parallel_loader.py(33): __next__; parallel_loader.py(139): next_item
        iterator_ops.py(800): __next__; torch/utils/data/dataloader.py(700): __next__""",
    None: """
        pjit.py(2): f; train.py(3): lower; my/pjit.py(9): cache_miss; compiler.py(3): parse; mlir.py; core.py(660): bind
        mycompiler.py(1): backend_compile; triton/compiler/mlir.py(2): lower_jaxpr_to_module; api.py(466): grad_f""",
}


def _cases(table: dict[XlaRole | None, str]) -> list[tuple[XlaRole | None, str]]:
    return [
        (role, name.strip())
        for role, names in table.items()
        for line in names.split("\n")
        for name in line.split("; ")
        if name.strip()
    ]


@pytest.mark.parametrize(("role", "name"), _cases(EVENTS))
def test_events(role: XlaRole | None, name: str) -> None:
    assert classify_xla_name(name) is role


@pytest.mark.parametrize(("role", "name"), _cases(FRAMES))
def test_frames(role: XlaRole | None, name: str) -> None:
    assert classify_xla_name(name, is_python=True) is role
    windows = name.replace("/", "\\")
    assert classify_xla_name(windows, is_python=True) is role


def test_frames_are_no_events_and_events_no_frames() -> None:
    assert classify_xla_name("pjit.py(250): cache_miss") is None
    assert classify_xla_name("PjitFunction(step)", is_python=True) is None


def test_finer_than_the_names_of_all_profiles() -> None:
    lowering = "jax/_src/interpreters/mlir.py(1287): lower_jaxpr_to_module"
    assert classify_host_name(lowering, True) is HostRole.COMPILE
    assert classify_xla_name(lowering, True) is XlaRole.GRAPH_BUILD
    assert classify_xla_name("SaveV2") is None, "checkpoints are left to classify_host_name"


@pytest.mark.parametrize(
    ("name", "execution"),
    [
        ("[5] CommonPjRtLoadedExecutable::Execute (jit_step)", (5, "jit_step")),
        ("CommonPjRtLoadedExecutable::Execute (jit__lambda_)", (None, "jit__lambda_")),
        ("jit_forward_3d_conv:XLA GPU module", (None, "jit_forward_3d_conv")),
        ("[0] GpuExecutable::ExecuteThunks", (0, None)),
        ("TpuExecuteOp#device_ordinal=3,id=9,iter_num=0#", (3, None)),
        ("XlaModule:#prefix=jit(f)/jit(main),hlo_module=jit_f,program_id=21#", (None, "jit_f")),
        ("PjRtComputationClient::ExecuteComputation", (None, None)),
        ("PjitFunction(step)", None),
        ("CommonPjRtBuffer::Await", None),
    ],
)
def test_execution(name: str, execution: tuple[int | None, str | None] | None) -> None:
    assert xla_execution(name) == execution


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("HLO passes after layout assignment (jit_step)", "jit_step"),
        ("CpuCompiler::RunBackend (jit_step)", "jit_step"),
        ("XlaCompile:#module=jit_f,program_id=3#", "jit_f"),
        ("XlaPass:#name=dce,module=SyncTensorsGraph.175,program_id=3#", "SyncTensorsGraph.175"),
        ("CpuCompiler::RunBackend", None),
        ("CommonPjRtLoadedExecutable::Execute (jit_step)", None),
    ],
)
def test_compiled_module(name: str, module: str | None) -> None:
    assert compiled_module(name) == module


def test_wait_edges() -> None:
    for name in ("CommonPjRtBuffer::Await", "CommonPjRtBuffer::ToLiteral", "[1] TfrtCpuBuffer::Await"):
        assert is_wait_edge(name)
    for name in ("Await", "PjRtBuffer::ToLiteralZeroCopyPath", "SyncTensorsGraph"):
        assert not is_wait_edge(name)


@given(st.text(), st.booleans())
def test_any_name(name: str, is_python: bool) -> None:
    assert classify_xla_name(name, is_python) in (None, *XlaRole)
    assert (xla_execution(name) is None) is (classify_xla_name(name) is not XlaRole.EXECUTE)


@given(st.sampled_from(_cases(EVENTS)), st.integers(0, 10**9 - 1))
def test_device_before_the_name(case: tuple[XlaRole | None, str], device: int) -> None:
    role, name = case
    if not name.startswith("["):
        assert classify_xla_name(f"[{device}] {name}") is role
        execution = xla_execution(f"[{device}] {name}")
        assert (None if execution is None else execution.device) == (device if role is XlaRole.EXECUTE else None)


@pytest.mark.parametrize("piece", ["a::", "(", "[1] ", "a/", "x:", "#module=", "_xla_"])
def test_long_names_take_no_time(piece: str) -> None:
    name = piece * 100_000
    for is_python in (False, True):
        assert classify_xla_name(name, is_python) in (None, *XlaRole)
    assert xla_execution(name) is None
    assert compiled_module(name) is None


@pytest.mark.real
def test_jax_profile() -> None:
    """Every event of the runtime on JAX's main thread has a role, and no user's annotation has."""
    path = real_trace("xplane/jax_cpu4_json/vm.trace.json.gz")
    events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    names = {
        e["name"]
        for e in events
        if e.get("ph") == "X" and threads.get((e["pid"], e["tid"])) == "python" and not e["name"].startswith("$")
    }
    unnamed = {"ParseArguments", "AllocateOutputBuffersWithInputReuse"}  # covered by the ranges around them
    roles = {name: classify_xla_name(name) for name in names - unnamed}
    assert {name for name, role in roles.items() if role is None} == {"train", "data"}
    assert roles["PjitFunction(train_step)"] is XlaRole.DISPATCH
    assert roles["Wait for LaunchOnDevice completion"] is XlaRole.WAIT
    modules = {e[1] for name in names if (e := xla_execution(name))}
    assert modules == {"jit_train_step"}
