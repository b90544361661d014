"""Names of runtime calls, annotations, host ops and Python frames, and what they must be read as."""

from __future__ import annotations

import gzip
import json

import pytest

from stepscope.names.calls import CallRole, call_role
from stepscope.names.hosts import (
    STEP_SOURCES,
    HostRole,
    StepMarker,
    classify_host_name,
    step_marker,
)
from stepscope.names.sync_hints import sync_hint
from tests.kit.some import some
from tests.kit.traces import real_trace

CALLS = {
    CallRole.LAUNCH: """
        cudaLaunchKernel cudaLaunchKernelExC cudaLaunchKernelExC_v11060 cudaLaunchKernel_ptsz cudaLaunch
        cudaLaunchCooperativeKernel cudaLaunchCooperativeKernelMultiDevice cuLaunchKernel cuLaunchKernelEx
        cuLaunchCooperativeKernel hipLaunchKernel hipExtLaunchKernel hipModuleLaunchKernel hipExtModuleLaunchKernel
        hipLaunchByPtr hipLaunchCooperativeKernel hipHccModuleLaunchKernel urEnqueueKernelLaunch
        piEnqueueKernelLaunch zeCommandListAppendLaunchKernel runFunction""",
    CallRole.GRAPH_LAUNCH: "cudaGraphLaunch cudaGraphLaunch_v10000 cuGraphLaunch hipGraphLaunch "
    "urCommandBufferEnqueueExp urEnqueueCommandBufferExp",
    CallRole.COPY: """
        cudaMemcpyAsync cudaMemcpyAsync_ptsz cudaMemcpy2DAsync cudaMemcpyPeerAsync cudaMemcpyPeer cudaMemcpy3DPeer
        cuMemcpyHtoDAsync_v2 cuMemcpyDtoD_v2 hipMemcpyAsync hipMemcpyDtoD hipMemcpyPeer cudaMemPrefetchAsync
        urEnqueueUSMMemcpy piextUSMEnqueueMemcpy urEnqueueMemBufferRead zeCommandListAppendMemoryCopy""",
    CallRole.COPY_BLOCKING: """
        cudaMemcpy cudaMemcpy_v3020 cudaMemcpy2D cudaMemcpyToSymbol cuMemcpyHtoD_v2 cuMemcpyDtoH_v2 hipMemcpy
        hipMemcpyWithStream""",
    CallRole.MEMSET: "cudaMemset cudaMemsetAsync cuMemsetD8Async hipMemsetAsync urEnqueueUSMFill "
    "zeCommandListAppendMemoryFill",
    CallRole.SYNC: """
        cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cudaStreamSynchronize_ptsz
        cudaThreadSynchronize cuCtxSynchronize cuStreamSynchronize hipDeviceSynchronize hipStreamSynchronize
        hipEventSynchronize synchronize synchronizeStream urQueueFinish urEventWait piEventsWait
        zeCommandQueueSynchronize zeEventHostSynchronize""",
    CallRole.STREAM_WAIT: "cudaStreamWaitEvent cudaStreamWaitEvent_ptsz cuStreamWaitEvent cuStreamWaitValue32_v2 "
    "hipStreamWaitEvent urEnqueueEventsWaitWithBarrier zeCommandListAppendWaitOnEvents",
    CallRole.EVENT_RECORD: "cudaEventRecord cudaEventRecordWithFlags cuEventRecord hipEventRecord recordEvent "
    "zeCommandListAppendSignalEvent",
    CallRole.QUERY: "cudaEventQuery cudaStreamQuery cudaEventElapsedTime cudaStreamIsCapturing hipEventQuery "
    "cudaStreamGetCaptureInfo_v2 zeEventQueryStatus",
    CallRole.ALLOCATION: """
        cudaMalloc cudaMallocAsync cudaMallocAsync_v11020 cudaMallocHost cudaMallocManaged cudaHostAlloc
        cudaHostRegister hipMalloc hipHostMalloc hipExtMallocWithFlags cuMemAlloc_v2 cuMemHostAlloc
        cuMemHostRegister_v2 cuMemCreate cuMemMap cuMemAddressReserve cuMemSetAccess hipMemCreate
        urUSMDeviceAlloc piextUSMDeviceAlloc zeMemAllocDevice""",
    CallRole.FREE: """
        cudaFree cudaFreeAsync cudaFreeHost cudaHostUnregister hipFree hipHostFree cuMemFree_v2 cuMemUnmap
        cuMemRelease cuMemAddressFree urUSMFree zeMemFree""",
    CallRole.CAPTURE_BEGIN: "cudaStreamBeginCapture cudaStreamBeginCapture_v10000 cudaStreamBeginCaptureToGraph "
    "cuStreamBeginCapture_v2_ptsz hipStreamBeginCapture",
    CallRole.CAPTURE_END: "cudaStreamEndCapture cuStreamEndCapture_ptsz hipStreamEndCapture",
    CallRole.GRAPH_INSTANTIATE: "cudaGraphInstantiate_v12000 cudaGraphInstantiateWithFlags hipGraphInstantiate "
    "cuGraphInstantiateWithParams",
    CallRole.MODULE_LOAD: """
        cuModuleLoadData cuModuleLoadDataEx cuModuleGetFunction cuLibraryLoadData cuLibraryGetKernel
        cudaLibraryLoadData hipModuleLoad hipModuleLoadData hipModuleGetFunction cuLinkCreate_v2 cuLinkAddData_v2
        hiprtcLinkComplete nvrtcCompileProgram hiprtcCompileProgram urProgramBuild zeModuleCreate""",
    CallRole.OTHER: """
        cudaGetDevice cudaLaunchHostFunc cuLaunchHostFunc cudaOccupancyMaxActiveBlocksPerMultiprocessor INVALID
        cudaFuncSetAttribute cudaStreamCreateWithFlags cudaGraphDestroy hipCtxGetCurrent
        cuMemGetInfo_v2 cudaPointerGetAttributes cudaMemGetInfo hipPointerGetAttribute gif_merge""",
}


@pytest.mark.parametrize(("role", "name"), [(role, n) for role, names in CALLS.items() for n in names.split()])
def test_role_of_a_call(role: CallRole, name: str) -> None:
    assert call_role(name) is role


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("enqueueCommand memcpyHtoDAsync", CallRole.COPY),
        ("enqueueCommand waitOnEvent", CallRole.STREAM_WAIT),
        ("runFunction - job_prep_and_submit_for_execution", CallRole.LAUNCH),
        ("predictor_executor::run gif_thread_id:1454", CallRole.OTHER),
        ("Lazy Function Loading", CallRole.MODULE_LOAD),
        ("Runtime Triggered Module Loading", CallRole.MODULE_LOAD),
        ("Activity Buffer Request", CallRole.OTHER),
        ("", CallRole.OTHER),
        ("_v1" * 100_000, CallRole.OTHER),
    ],
)
def test_role_of_a_call_whose_name_has_spaces(name: str, role: CallRole) -> None:
    assert call_role(name) is role


FRAMES = {
    HostRole.INPUT: """
        torch/utils/data/dataloader.py(628): __next__
        /usr/lib/python3.11/site-packages/torch/utils/data/dataloader.py(1327): _next_data
        C:\\env\\Lib\\site-packages\\torch\\utils\\data\\_utils\\collate.py(398): default_collate
        torch/utils/data/datapipes/_hook_iterator.py(144): __next__
        webdataset/pipeline.py(64): iterator
        streaming/base/dataloader.py(58): __iter__
        nvidia/dali/plugin/pytorch/__init__.py(212): __next__
        ffcv/loader/epoch_iterator.py(161): __next__
        datasets/arrow_dataset.py(2777): __getitem__
        accelerate/data_loader.py(550): __iter__
        lightning/pytorch/loops/fetchers.py(134): __next__
        pytorch_lightning/utilities/combined_loader.py(78): __next__
        tensorflow/python/data/ops/iterator_ops.py(826): __next__
        keras/src/trainers/data_adapters/array_data_adapter.py(80): get_numpy_iterator
        transformers/tokenization_utils_base.py(2900): __call__
        transformers/tokenization_utils_fast.py(539): _batch_encode_plus
        transformers/tokenization_utils_base.py(3300): pad
        transformers/tokenization_utils_base.py(1600): apply_chat_template
        transformers/image_processing_utils.py(50): __call__
        transformers/models/owlvit/image_processing_owlvit.py(290): preprocess
        transformers/models/owlvit/processing_owlvit.py(90): __call__
        transformers/image_utils.py(470): load_image
        transformers/video_utils.py(300): read_video_decord
        transformers/data/data_collator.py(80): torch_default_data_collator
        decord/video_reader.py(160): get_batch
        torchcodec/decoders/_video_decoder.py(200): get_frames_at
        torchvision/io/video.py(260): read_video
        torchvision/io/image.py(90): decode_jpeg
        torchvision/transforms/_functional_pil.py(240): resize
        torchaudio/_backend/utils.py(150): load
        imageio/v3.py(80): imread
        librosa/core/audio.py(50): load
        soundfile.py(180): read
        PIL/Image.py(3200): open
        PIL/Image.py(2400): resize
        PIL/JpegImagePlugin.py(420): load_read
        qwen_vl_utils/vision_process.py(300): fetch_video
        sentencepiece/__init__.py(500): Encode
        tiktoken/core.py(80): encode_ordinary
        vllm/multimodal/video.py(40): load_bytes
        diffusers/image_processor.py(500): preprocess
        src/data/faces.py(30): __getitem__
        my_dataset.py(12): __getitem__
        train.py(8): collate_fn
        <built-in function imread>
        <built-in method encode_batch of tokenizers.Tokenizer object at 0x7f>
        <built-in method read of cv2.VideoCapture object at 0x7f>
        <built-in method decode of av.container.input.InputContainer object at 0x7f>""",
    HostRole.COMPILE: """
        torch/_dynamo/convert_frame.py(1211): __call__
        torch/_dynamo/eval_frame.py(671): catch_errors
        torch/_inductor/compile_fx.py(1552): compile_fx
        torch/_inductor/compile_fx.py(700): _compile_fx_inner
        torch/_inductor/codecache.py(1500): load
        torch/_inductor/async_compile.py(320): wait
        torch/_inductor/runtime/triton_heuristics.py(280): precompile
        torch/_inductor/runtime/triton_heuristics.py(750): autotune_to_one_config
        torch/_functorch/aot_autograd.py(1000): aot_module_simplified
        torch/_functorch/aot_autograd.py(500): create_aot_dispatcher_function
        torch/_inductor/runtime/triton_heuristics.py(650): benchmark_all_configs
        torch/_inductor/runtime/triton_heuristics.py(800): coordinate_descent_tuning
        torch/utils/cpp_extension.py(1300): load_inline
        triton/compiler/compiler.py(226): compile
        triton/backends/nvidia/compiler.py(300): make_cubin
        triton/runtime/jit.py(800): _do_compile
        triton/runtime/autotuner.py(150): _bench
        triton/runtime/autotuner.py(190): benchmark
        jax/_src/compiler.py(400): compile_or_get_cached
        jax/_src/interpreters/pxla.py(2200): lower_sharding_computation""",
    HostRole.GC: """
        <built-in function collect>""",
    HostRole.CHECKPOINT_IO: """
        torch/serialization.py(849): save
        torch/serialization.py(1400): _load
        torch/serialization.py(1400): _legacy_load
        torch/distributed/checkpoint/state_dict_saver.py(150): save
        safetensors/torch.py(286): save_file
        orbax/checkpoint/checkpoint_manager.py(1200): save
        flax/training/checkpoints.py(500): save_checkpoint
        transformers/trainer.py(3000): _save_checkpoint
        lightning/pytorch/callbacks/model_checkpoint.py(370): _save_topk_checkpoint
        megatron/training/checkpointing.py(300): save_checkpoint
        deepspeed/runtime/engine.py(3100): save_checkpoint
        tensorflow/python/checkpoint/checkpoint.py(2200): save""",
    HostRole.PROFILER: """
        torch/profiler/profiler.py(848): _transit_action
        torch/profiler/profiler.py(811): step
        torch/autograd/profiler.py(358): _start_trace
        torch/autograd/profiler.py(350): _prepare_trace
        torch/autograd/profiler.py(1160): increment_step
        torch/autograd/profiler.py(500): _parse_kineto_results
        torch/autograd/profiler.py(410): key_averages
        torch/autograd/profiler.py(400): export_chrome_trace
        jax/_src/profiler.py(200): stop_trace
        stepscope/capture/on_demand.py(114): call
        stepscope/capture/recorder.py(200): _advance
        jax/_src/profiler.py(400): save_device_memory_profile
        jax/_src/profiler.py(140): start_trace
        tensorflow/python/profiler/profiler_v2.py(90): stop
        <built-in method _disable_profiler of PyCapsule object at 0x7498db9dbb40>
        <built-in method _kineto_step of PyCapsule object at 0x7498db9dbc00>
        <built-in function _enable_profiler>""",
}
ORDINARY_FRAMES = """
    torch/nn/modules/module.py(1750): _wrapped_call_impl
    train.py(10): main
    mydata/dataloader.py(5): __next__
    torch/_dynamo/eval_frame.py(791): compile_wrapper
    torch/_dynamo/eval_frame.py(635): call_on_enter
    torch/_dynamo/guards.py(2071): hooks_ids_fn
    torch/_compile.py(22): inner
    torch/compiler/__init__.py(436): is_compiling
    torch/_inductor/output_code.py(590): __call__
    torch/_inductor/codecache.py(900): __call__
    torch/_inductor/compile_fx.py(600): run
    torch/_inductor/runtime/triton_heuristics.py(1242): run
    torch/_functorch/_aot_autograd/runtime_wrappers.py(300): runtime_wrapper
    triton/compiler/compiler.py(470): launch_metadata
    triton/runtime/jit.py(574): run
    triton/backends/amd/compiler.py(174): get_arg_specialization
    torch/utils/checkpoint.py(343): checkpoint
    torch/distributed/algorithms/_checkpoint/checkpoint_wrapper.py(144): forward
    torch/autograd/profiler.py(751): __enter__
    torch/autograd/profiler.py(757): __exit__
    jax/_src/profiler.py(330): wrapper
    torch/_functorch/aot_autograd.py(1100): forward
    triton/runtime/autotuner.py(230): run
    jax/_src/interpreters/pxla.py(1300): __call__
    transformers/trainer.py(3700): training_step
    lightning/pytorch/callbacks/model_checkpoint.py(300): on_train_batch_end
    transformers/tokenization_utils_base.py(3900): batch_decode
    transformers/tokenization_utils_base.py(3950): decode
    tiktoken/core.py(280): decode
    sentencepiece/__init__.py(600): Decode
    <built-in method decode_batch of tokenizers.Tokenizer object at 0x7f>
    <built-in method decode of bytes object at 0x7f>
    <built-in function imwrite>
    PIL/Image.py(2500): save
    PIL/Image.py(3300): fromarray
    diffusers/image_processor.py(700): postprocess
    torchvision/io/video.py(60): write_video
    torchvision/io/image.py(200): write_png
    torchaudio/_backend/utils.py(300): save
    soundfile.py(340): write
    model.py(40): __getitem__
    torch/nn/modules/container.py(330): __getitem__
    transformers/models/owlvit/image_processing_owlvit.py(400): post_process_object_detection
    moca/library/profiling/profile.py(53): profile_function
    <built-in method collect of LazyFrame object at 0x7f>
    <built-in function len>
    <built-in method __next__ of _io.BufferedReader object at 0x7f>"""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("role", "name"), [(role, n) for role, text in FRAMES.items() for n in _lines(text)])
def test_role_of_a_python_frame(role: HostRole, name: str) -> None:
    assert classify_host_name(name, is_python=True) is role


@pytest.mark.parametrize("name", _lines(ORDINARY_FRAMES))
def test_frames_that_must_keep_their_ordinary_cause(name: str) -> None:
    """Mostly wrappers through which ordinary work runs: taking them would swallow what they enclose."""
    assert classify_host_name(name, is_python=True) is None


RANGES = {
    HostRole.INPUT: [
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "enumerate(DataPipe)#MapperIterDataPipe",
        "IteratorGetNext", "IteratorGetNext:IteratorGetNext", "IteratorGetNextSync", "QueueDequeueManyV2",
        "input/QueueDequeueUpToV2", "MultiDeviceIteratorGetNextFromShard", "InfeedEnqueueTuple",
        "infeed-dequeue.1", "Iterator::Prefetch::Generator", "## data_load ##", "## load_batch ##",
        "## wait_for_batch ##", "DataLoading", "dataloader", "get_batch",
        "[pl][profile][_TrainingEpochLoop].train_dataloader_next"],
    HostRole.COMPILE: [
        "_compile.compile_inner (dynamo_timed)", "pad_mm_benchmark (dynamo_timed)",
        "entire_frame_compile", "backend_compile", "compile_attempt_0",
        "PjRtStreamExecutorClient::Compile", "XlaCompile", "XlaCompilationCache::CompileImpl",
        "GpuCompiler::RunBackend", "Lazy Function Loading", "Runtime Triggered Module Loading"],
    HostRole.GC: ["gc.collect", "GC", "Python GC", "garbage_collection"],
    HostRole.CHECKPOINT_IO: ["save_checkpoint", "## checkpoint_save ##", "Saving the checkpoint", "SaveV2",
                             "RestoreV2:RestoreV2", "MergeV2Checkpoints",
                             "[pl][profile][Callback]ModelCheckpoint{'monitor': None}.on_train_epoch_end"],
    HostRole.PROFILER: ["Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource"],
}  # fmt: skip


@pytest.mark.parametrize(("role", "name"), [(role, n) for role, names in RANGES.items() for n in names])
def test_role_of_an_annotation_or_host_op(role: HostRole, name: str) -> None:
    assert classify_host_name(name, is_python=False) is role


@pytest.mark.parametrize("name", [
    "## Call CompiledFxGraph fud64jsrxcxliekg7lptyw24yz5k3oa65b73wjfbhz6j2fg6ouu7 ##",
    "Torch-Compiled Region: 0/1", "TorchDynamo Cache Lookup", "CompiledFunctionBackward", "PjitFunction(step)",
    "## all2all_data:kjt splits ##", "## sdd_wait_tensors ##", "ProfilerStep#3", "aten::index",
    "train with dataloader on rank 0", "checkpoint_wrapper_forward", "nn.Module: CheckpointWrapper_0",
    "torch.utils.checkpoint", "DistributedDataParallel.forward", "upload_batch", "gcc",
    "execute_context_1(888_788544)_generation_0(0)", "PreprocessingLayer", "", "x" * 100_000,
])  # fmt: skip
def test_annotations_that_must_keep_their_ordinary_cause(name: str) -> None:
    assert classify_host_name(name, is_python=False) is None


def test_a_frame_is_not_read_as_an_annotation_nor_the_other_way_round() -> None:
    assert classify_host_name("torch/utils/data/dataloader.py(628): __next__", is_python=False) is None
    assert classify_host_name("IteratorGetNext", is_python=True) is None


@pytest.mark.parametrize(
    ("name", "title", "number"),
    [
        ("ProfilerStep#551", "torch.profiler", 551),
        ("stepscope.step#0", "stepscope", 0),
        ("[pl][profile]run_training_batch", "Lightning batches", None),
        ("[pl][profile][Strategy]DDPStrategy.training_step", "Lightning training steps", None),
        ("[pl][profile][Strategy]SingleDeviceStrategy.validation_step", "Lightning evaluation steps", None),
        ("Profiled batch", "Keras batches", None),
        ("Profiled batch 12", "Keras batches", 12),
        ("train 7", "named steps", 7),
        ("Training step 40", "named steps", 40),
        ("execute_context_1(888_788544)_generation_0(0)", "vLLM iterations", None),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", "vLLM iterations", None),
        ("execute_model", "vLLM iterations", None),
        ("step[DECODE bs=32]", "SGLang iterations", None),
        ("step[EXTEND bs=2 toks=107]", "SGLang iterations", None),
        ("Optimizer.step#AdamW.step", "optimizer steps", None),
    ],
)
def test_step_markers(name: str, title: str, number: int | None) -> None:
    marker = step_marker(name)
    source = next(source for source in STEP_SOURCES if source.title == title)
    assert marker == StepMarker(source.rank, number, source.ends_step)


def test_only_optimizer_steps_mark_an_end_and_they_come_last() -> None:
    assert [source.title for source in STEP_SOURCES if source.ends_step] == ["optimizer steps"]
    ranks = [source.rank for source in STEP_SOURCES]
    assert ranks == sorted(set(ranks)), "ranks must rise: each source has its own"
    assert STEP_SOURCES[-1].ends_step
    assert STEP_SOURCES[0].title == "torch.profiler"


@pytest.mark.parametrize("name", [
    "ProfilerStep", "ProfilerStep#", "ProfilerStep#1x", "my ProfilerStep#1", "train", "train/loss 3", "training",
    "[pl][profile]run_training_epoch", "[pl][profile][Callback]Timer.on_train_batch_start", "execute_sql",
    "execute_command(1)", "Optimizer.zero_grad#SGD.zero_grad", "step[", "stepscope.step", "",
    "ProfilerStep#" + "9" * 10_000,
])  # fmt: skip
def test_names_that_mark_no_step(name: str) -> None:
    assert step_marker(name) is None


@pytest.mark.parametrize(
    ("op", "always", "says"),
    [
        ("aten::item", True, "Python number"),
        ("aten::_local_scalar_dense", True, "Python number"),
        ("aten::is_nonzero", True, "condition"),
        ("aten::nonzero", True, "size depends"),
        ("aten::masked_select", True, "size depends"),
        ("aten::_unique2", True, "size depends"),
        ("aten::unique_consecutive", True, "size depends"),
        ("aten::index", False, "mask"),
        ("aten::repeat_interleave", False, "size depends"),
        ("aten::bincount", True, "size depends"),
        ("aten::equal", True, "bool"),
        ("aten::_to_copy", False, "pageable"),
        ("aten::copy_", False, "pageable"),
        ("aten::_linalg_check_errors", False, "error code"),
        ("aten::one_hot", False, "largest value"),
    ],
)
def test_sync_hints(op: str, always: bool, says: str) -> None:
    hint = sync_hint(op)
    assert hint is not None
    assert hint.always is always
    assert says in hint.cause
    assert hint.alternatives


def test_sync_hints_name_the_remedy() -> None:
    def remedies(op: str) -> str:
        hint = sync_hint(op)
        return "; ".join(map(str, hint.alternatives)) if hint else ""

    assert "torch.where" in remedies("aten::nonzero")
    assert "ignore_index" in remedies("aten::masked_select") == remedies("aten::index")
    assert "torch.sort" in remedies("aten::_unique2")
    assert "every N steps" in remedies("aten::item")
    assert "non_blocking=True" in remedies("aten::_to_copy")
    assert "output_size=" in remedies("aten::repeat_interleave")


@pytest.mark.parametrize("op", ["aten::add", "aten::where", "aten::nonzero_static", "item", "aten::index_select", ""])
def test_ops_without_a_sync_hint(op: str) -> None:
    assert sync_hint(op) is None


def _names(trace: str) -> set[tuple[str, str]]:
    with gzip.open(real_trace(f"kineto/{trace}.json.gz"), "rt", errors="replace") as file:
        events = json.load(file, strict=False)["traceEvents"]
    return {(str(e.get("cat")), str(e["name"])) for e in events if e.get("ph") == "X"}


@pytest.mark.real
@pytest.mark.parametrize(
    "trace", some(["h100_qwen05b", "mi300_resnet_checkpointing_rank0_of_8", "b200_eager_rank0_of_8"], 1)
)
def test_steady_training_shows_no_compilation_checkpoint_or_collection(trace: str) -> None:
    """Traces of running, compiled models: what they show of Dynamo, Triton and checkpointing is not work of it."""
    kinds = ("python_function", "cpu_op", "user_annotation")
    found = {classify_host_name(name, kind == kinds[0]) for kind, name in _names(trace) if kind in kinds}
    assert found == {None, HostRole.PROFILER} if trace != "b200_eager_rank0_of_8" else found == {None}


@pytest.mark.real
@pytest.mark.parametrize("trace", some(["cpu_only_no_device", "v100_resnet50_workers0"], 1))
def test_input_ranges_of_real_traces(trace: str) -> None:
    roles = {name: classify_host_name(name, False) for _, name in _names(trace)}
    loaders = {name for name in roles if name.startswith("enumerate(DataLoader)")}
    assert loaders
    assert {roles[name] for name in loaders} == {HostRole.INPUT}


@pytest.mark.real
@pytest.mark.parametrize(
    ("traces", "waiting"),
    [
        (("mtia_inference", "a100_event_sync_multi_stream"), {"cudaStreamWaitEvent", "enqueueCommand waitOnEvent"}),
        pytest.param(("mi300_resnet_checkpointing_rank0_of_8",), {"hipStreamWaitEvent"}, marks=pytest.mark.slow),
    ],
)
def test_every_runtime_call_of_the_real_traces_has_the_role_its_name_says(
    traces: tuple[str, ...], waiting: set[str]
) -> None:
    calls = {
        name
        for trace in traces
        for kind, name in _names(trace)
        if kind in ("cuda_runtime", "cuda_driver", "mtia_runtime")
    }
    waits = {name for name in calls if call_role(name) in (CallRole.SYNC, CallRole.COPY_BLOCKING)}
    assert waits == {name for name in calls if "ynchronize" in name}
    assert {name for name in calls if call_role(name) is CallRole.STREAM_WAIT} == waiting


@pytest.mark.parametrize(
    "name",
    [
        "SaveV2", "EagerLocalExecute: SaveV2", "EagerLocalExecute: MergeV2Checkpoints", "save/SaveV2:SaveV2",
        "save/RestoreV2_3:RestoreV2", "EagerLocalExecuteAsync: RestoreV2", "checkpoint/WriteFile:WriteFile",
    ],
)  # fmt: skip
def test_ops_of_tensorflow_that_read_and_write_checkpoints(name: str) -> None:
    assert classify_host_name(name, is_python=False) is HostRole.CHECKPOINT_IO


@pytest.mark.parametrize("name", ["EagerLocalExecute: AssignVariableOp", "model/Save/MatMul:MatMul", "c:SaveFigure"])
def test_ops_whose_names_only_look_like_them(name: str) -> None:
    assert classify_host_name(name, is_python=False) is not HostRole.CHECKPOINT_IO
