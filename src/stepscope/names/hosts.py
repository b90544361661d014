"""What the host does, from the names of annotations, host ops and Python frames.

PyTorch writes a Python frame as ``path(line): function`` and a C function as ``<built-in function name>`` or
``<built-in method name of type object at 0x...>``; paths begin at the package. A range counts as a whole,
with everything inside it, so a name is taken only where all that runs under it serves the role: not the
wrapper through which compiled code runs, nor the activation checkpointing of ``torch.utils.checkpoint``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from stepscope.names.remembered import remembered
from stepscope.record import record
from stepscope.regex import regex

_LONGEST = 2_048


class HostRole(StrEnum):
    """What a stretch of host time is for, where its name tells."""

    INPUT = "input"
    COMPILE = "compile"
    GC = "gc"
    CHECKPOINT_IO = "checkpoint_io"
    PROFILER = "profiler"


@remembered
def classify_host_name(name: str, is_python: bool) -> HostRole | None:
    """The role of an annotation, host op or (``is_python``) Python frame; None for ordinary work."""
    text = name[:_LONGEST]
    if not is_python:
        return next((role for role, pattern in _RANGES if pattern.search(text)), None) or _spelled(text)
    frame = _FRAME.match(text)
    if frame is None:
        return next((role for role, pattern in _BUILT_INS if pattern.search(text)), None)
    path, function = frame["path"].replace("\\", "/"), frame["function"]
    for role, where, functions in _FRAMES:
        if where.search(path) and functions.match(function):
            return role
    return None


_FRAME = regex(r"(?P<path>[^()]+)\(\d+\): (?P<function>.+)$")
_ANY = r".+"


def _frame(role: HostRole, path: str, functions: str) -> tuple[HostRole, re.Pattern[str], re.Pattern[str]]:
    return role, regex(rf"(?:^|/){path}"), regex(rf"(?:{functions})$")


_R = HostRole
_FRAMES = tuple(_frame(role, path, "|".join(functions)) for role, path, *functions in (
    (_R.PROFILER, r"torch/profiler/(?:profiler|_memory_profiler)\.py$", _ANY),
    # The same file holds record_function, whose __enter__ and __exit__ are the user's annotations.
    (_R.PROFILER, r"torch/autograd/profiler\.py$", r"_start_trace|_prepare_trace|increment_step",
     r"_parse_kineto\w*|export_\w+|key_averages"),
    (_R.PROFILER, r"jax/_src/profiler\.py$", r"start_trace|stop_trace|save_device_memory_profile"),
    (_R.PROFILER, r"tensorflow/python/profiler/profiler_v2\.py$", _ANY),
    # Our own between two steps; what wraps calls of the job (hooks, annotation) is not among it.
    (_R.PROFILER, r"stepscope/capture/(?:recorder|on_demand|session|steps|\w+_backend)\.py$", _ANY),
    (_R.COMPILE, r"torch/_dynamo/(?:convert_frame|symbolic_convert|output_graph)\.py$", _ANY),
    (_R.COMPILE, r"torch/_dynamo/eval_frame\.py$", r"catch_errors"),
    (_R.COMPILE, r"torch/_inductor/compile_fx\w*\.py$", r"\w*(?:compile|codegen)\w*"),
    (_R.COMPILE, r"torch/_inductor/(?:codecache|async_compile)\.py$", r"\w*(?:compile|load|write|save)\w*",
     r"wait"),
    (_R.COMPILE, r"torch/_inductor/runtime/triton_heuristics\.py$", r"_?precompile\w*|benchmark\w*",
     r"autotune_to_\w+|coordinate_descent\w*"),
    (_R.COMPILE, r"torch/_functorch/aot_autograd\.py$", r"create_aot_dispatcher\w*|aot_module\w*"),
    (_R.COMPILE, r"torch/utils/cpp_extension\.py$", _ANY),
    (_R.COMPILE, r"triton/compiler/compiler\.py$", r"compile"),
    (_R.COMPILE, r"triton/backends/\w+/compiler\.py$", r"make_\w+"),
    (_R.COMPILE, r"triton/runtime/jit\.py$", r"_do_compile"),
    (_R.COMPILE, r"triton/runtime/autotuner\.py$", r"_bench|benchmark"),
    (_R.COMPILE, r"jax/_src/(?:compiler|interpreters/(?:pxla|mlir))\.py$", r"\w*(?:compile|lower)\w*"),
    (_R.CHECKPOINT_IO, r"torch/serialization\.py$", _ANY),
    (_R.CHECKPOINT_IO, r"torch/distributed/checkpoint/", _ANY),
    (_R.CHECKPOINT_IO, r"safetensors/", _ANY),
    (_R.CHECKPOINT_IO, r"orbax/checkpoint/", _ANY),
    (_R.CHECKPOINT_IO, r"flax/training/checkpoints\.py$", _ANY),
    (_R.CHECKPOINT_IO, r"transformers/(?:trainer|modeling_utils)\.py$", r"_?save_\w+"),
    (_R.CHECKPOINT_IO, r"(?:pytorch_)?lightning/.*(?:model_checkpoint|checkpoint_connector)\.py$",
     r"_?(?:save|dump|restore)\w*"),
    (_R.CHECKPOINT_IO, r"(?:megatron|deepspeed|torchtitan|accelerate)/.*\.py$",
     r"(?:save|load)_(?:checkpoint|state)\w*"),
    (_R.CHECKPOINT_IO, r"tensorflow/python/checkpoint/", _ANY),
    # A program's own, told by the name of the function.
    (_R.CHECKPOINT_IO, r"\S*", r"_?(?:async_)?(?:save|write|dump|load|restore)_(?:model_)?checkpoints?"),
    (_R.INPUT, r"torch/utils/data/", _ANY),
    (_R.INPUT, r"(?:torchdata|webdataset|grain|petastorm|litdata|tensorflow_datasets)/", _ANY),
    (_R.INPUT, r"(?:streaming/base|ffcv/loader|nvidia/dali/plugin|keras/src/trainers/data_adapters)/", _ANY),
    (_R.INPUT, r"transformers/data/data_collator\.py$", _ANY),
    (_R.INPUT, r"datasets/(?:arrow_dataset|iterable_dataset)\.py$", _ANY),
    (_R.INPUT, r"accelerate/data_loader\.py$", _ANY),
    (_R.INPUT, r"(?:pytorch_)?lightning/.*(?:fetchers|combined_loader)\.py$", _ANY),
    (_R.INPUT, r"tensorflow/python/data/ops/iterator_ops\.py$", _ANY),
    (_R.INPUT, r"transformers/tokenization_\w+\.py$", r"__call__|\w*encode(?:_plus)?|pad|apply_chat_template"),
    # Reading, decoding, tokenising, resizing: what makes a batch of files and texts. What makes files and texts of
    # outputs (decode of tokenizers, save, write, encode of images, fromarray, postprocess) is none of it.
    (_R.INPUT, r"(?:sentencepiece/__init__|tiktoken/core)\.py$", r"_?[Ee]ncode\w*|[Tt]okenize|SampleEncode\w*"),
    (_R.INPUT, r"transformers/(?:image|video|audio)_utils\.py$", r"load_\w+|read_video\w*|decode_video\w*|spectrogram"),
    (_R.INPUT, r"transformers/image_transforms\.py$", r"resize|rescale|normalize|center_crop|convert_to_rgb"),
    (_R.INPUT, r"(?:decord|qwen_vl_utils|qwen_omni_utils|albumentations|audiomentations|imgaug)/", _ANY),
    (_R.INPUT, r"(?:vllm/(?:inputs/preprocess|multimodal/(?:image|video|audio|parse|processing|inputs))"
     r"|sglang/srt/multimodal/processors/\w+)(?:/\w+)*\.py$", _ANY),
    (_R.INPUT, r"diffusers/(?:image|video)_processor\.py$", r"preprocess\w*"),
    (_R.INPUT, r"torchcodec/(?:decoders|samplers)/", _ANY),
    (_R.INPUT, r"torchvision/io/\w+\.py$", r"_?(?:read|decode)_\w+|__next__|seek"),
    (_R.INPUT, r"torchvision/transforms/_functional_pil\.py$", _ANY),
    (_R.INPUT, r"torchvision/transforms/(?:v2/)?functional/?\w*\.py$", r"to_tensor|pil_to_tensor"),
    (_R.INPUT, r"torchaudio/\S*\.py$", r"load|info|load_audio\w*"),
    (_R.INPUT, r"PIL/Image\.py$", r"open|load|convert|resize|thumbnail|crop|rotate|transpose|reduce"),
    (_R.INPUT, r"PIL/(?:ImageFile|\w+ImagePlugin)\.py$", r"load|load_\w+|_open|_?seek|decode|__init__"),
    (_R.INPUT, r"PIL/ImageOps\.py$", _ANY),
    (_R.INPUT, r"imageio/\S*\.py$", r"v?imread|mimread|volread|read|iter|get_data|get_next_data|iter_data|imiter"),
    (_R.INPUT, r"librosa/(?:core/audio|feature/\w+)\.py$", _ANY),
    (_R.INPUT, r"soundfile\.py$", r"read|blocks|info|buffer_read\w*"),
    (_R.INPUT, r"av/\S+\.py[ix]*$", r"decode|demux|seek"),
    # A program's own data sets, told by the names of their files and functions.
    (_R.INPUT, r"(?:\S*/)?(?:(?:data|datasets?|dataloaders?|input_pipeline)/[^/]+"
     r"|[^/]*(?:dataset|data_?loader|data_?module)[^/]*)\.py$", r"__getitems?__|\w*collat(?:e|or)\w*"),
    (_R.INPUT, r"\S*", r"(?:\w+_)?collate(?:_fn|_batch|_function)?|collate_\w+"),
    (_R.INPUT, r"transformers/(?:models/\w+/)?(?:(?:image_|video_)?processing|feature_extraction)_\w+\.py$",
     r"__call__|_?preprocess"),
))  # fmt: skip
_BUILT_INS = (
    (_R.INPUT, regex(
        r"^<built-in (?:function (?:imread|imreadmulti|imdecode|imdecodemulti)>"
        r"|method (?:async_)?encode\w* of (?:tokenizers\.|builtins\.CoreBPE|tiktoken)"
        r"|method (?:decode|demux|seek) of av\."
        r"|method (?:read|grab|retrieve) of cv2\.VideoCapture\b"
        r"|method (?:decode\w*|read) of (?:decord|torchcodec|simplejpeg|turbojpeg|nvjpeg))")),
    # gc.collect is a function of its module, so its repr has no owner; methods named collect have one.
    (_R.GC, regex(r"^<built-in function collect>$")),
    (_R.PROFILER, regex(
        r"^<built-in (?:function|method) (?:_(?:en|dis)able_profiler\w*|_prepare_profiler|_kineto_step"
        r"|_add_metadata_json|kineto_available)\b")),
)  # fmt: skip
_RANGES = (
    (_R.COMPILE, regex(
        r"\(dynamo_timed\)$|^(?:entire_frame_compile|entire_backward_compile|backend_compile|inductor_compile"
        r"|compile_attempt_\d+|_compile\.compile_inner|create_aot_dispatcher_function|compile_fx_inner)\b"
        r"|^XlaCompile\b|(?:^|::)XlaCompilationCache::|Client::Compile\b|^\w+Compiler::"
        r"|^(?:Lazy Function Loading|Runtime Triggered Module Loading|Driver Compiler)$")),
    (_R.PROFILER, regex(r"^(?:Activity Buffer Request|Buffer Flush|Instrumentation|Resource)$")),
    (_R.GC, regex(r"^(?:Python )?(?:GC|gc|gc[._]collect|garbage[ _]collect(?:ion)?)$")),
    # Ops of TensorFlow: alone, as "<name>:<type>", or run eagerly (common_runtime/eager/execute.cc, seen).
    (_R.CHECKPOINT_IO, regex(
        r"^(?:SaveV2|RestoreV2|MergeV2Checkpoints)\b"
        r"|(?:^EagerLocalExecute(?:Async)?: |^[^: ]+:)"
        r"(?:Save(?:V2|Slices)?|Restore(?:V2|Slice)?|MergeV2Checkpoints|WriteFile)$")),
    (_R.INPUT, regex(
        r"^enumerate\(\w+\)#|(?:^|[:/])(?:\w*IteratorGetNext|QueueDequeue|\w*Infeed(?:Enqueue|Dequeue))"
        r"|^Iterator::|^infeed\b")),
)  # fmt: skip
_WORDS = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SPELLED = (
    (_R.CHECKPOINT_IO, regex(
        r"\b(?:sav|load|writ|restor|dump)(?:e|ing)? (?:the |model )?checkpoint\b"
        r"|\bcheckpoint (?:sav|load|writ|restor)(?:e|ing)?\b|\bmodel checkpoint\b")),
    (_R.INPUT, regex(r"\bdata ?load(?:ing|er)?(?: next| iter| wait| fetch)?$"
                          r"|\b(?:load|next|get|fetch|wait for) (?:next )?batch$")),
)  # fmt: skip


def is_warm_up(name: str) -> bool:
    """Whether a range that a program named is its warm-up; that of a learning rate is none.

    >>> [is_warm_up(each) for each in ("model|0|warmup|forward", "Warm-up 3", "warm_up_lr", "swarm upload")]
    [True, True, False, False]
    """
    return _WARM_UP.search(name[:_LONGEST]) is not None


_WARM_UP = regex(r"^(?!.*(?:\blr|lr\b|_lr|lr_|learning|sched)).*(?<![a-z])warm(?:ing)?[ _-]?up(?![a-z])", re.IGNORECASE)


def is_code_loading(name: str) -> bool:
    """Whether it is CUPTI's name for the loading of a kernel's code: what it calls overhead is the program's own.

    >>> is_code_loading("Lazy Function Loading"), is_code_loading("Buffer Flush")
    (True, False)
    """
    return name in _LOADING


_LOADING = ("Lazy Function Loading", "Runtime Triggered Module Loading", "Driver Compiler")


class Giving(StrEnum):
    """How PyTorch's own code gives ops to a device, or runs them on the host."""

    PYTHON = "python"
    """Modules, autograd, optimizers: Python that runs before, between and after ops."""
    C = "c"
    """What makes an op: its time before and after the op itself is no Python's."""


def gives_ops(frame: str) -> Giving | None:
    """How a Python frame or C function of PyTorch's own gives ops; None of what else runs: the user's code, and walks
    over the modules of a model, which give none.

    >>> gives_ops("torch/optim/adam.py(139): _init_group")
    <Giving.PYTHON: 'python'>
    >>> gives_ops("<built-in method tolist of Tensor object at 0x7f86d374cb40>") is None
    True
    """
    text = frame[:_LONGEST].replace("\\", "/")
    if walks_modules(text):
        return None
    return Giving.PYTHON if _GIVING.search(text) else Giving.C if _GIVING_C.search(text) else None


def walks_modules(frame: str) -> bool:
    """Whether a Python frame is PyTorch's walk over the modules of a model: it takes as long as it has modules.

    >>> walks_modules("torch/nn/modules/module.py(2696): named_modules")
    True
    """
    return _WALKS.search(frame[:_LONGEST].replace("\\", "/")) is not None


_AWAITS = regex(
    r"(?:^|/)(?:queue\.py\(\d+\): (?:get|put|join)|threading\.py\(\d+\): (?:wait|wait_for|join)"
    r"|concurrent/futures/_base\.py\(\d+\): (?:result|exception|wait)|selectors\.py\(\d+\): select"
    r"|multiprocessing/(?:queues\.py\(\d+\): get|connection\.py\(\d+\): (?:recv|recv_bytes|poll|wait)))$"
    r"|^<built-in method (?:acquire of _thread|get of _queue|(?:accept|recv|recv_into) of _?socket|poll of select)\."
)


def awaits_others(frame: str) -> bool:
    """Whether a Python frame waits for another thread, a process, or what comes in, and computes nothing itself.

    >>> awaits_others("queue.py(154): get")
    True
    """
    return _AWAITS.search(frame[:_LONGEST].replace("\\", "/")) is not None


def is_frameworks_own(frame: str) -> bool:
    """Whether a Python frame is a framework's own code around its ops, which compiled code does without.

    Walks over the modules of a model are not: they take as long as it has modules, wherever they are called.

    >>> is_frameworks_own("torch/nn/modules/module.py(1747): _call_impl")
    True
    >>> is_frameworks_own("torch/nn/modules/module.py(2696): named_modules")
    False
    """
    text = frame[:_LONGEST].replace("\\", "/")
    return _OWN.search(text) is not None and not walks_modules(text)


def runs_others(op: str) -> bool:
    """Whether an op of a framework is only what runs others: autograd's engine, TensorFlow's executors and calls of
    functions. What is inside says where one is.

    >>> [runs_others(op) for op in ("ExecutorState::Process", "EagerLocalExecute: __inference_step_42", "dense/MatMul")]
    [True, True, False]
    """
    return _RUNS_OTHERS.match(op[:_LONGEST]) is not None


def only_wraps(frame: str) -> bool:
    """Whether a Python frame is of the standard library's wrappers: what they call says what runs.

    >>> only_wraps("contextlib.py(132): __enter__"), only_wraps("json/encoder.py(183): encode")
    (True, False)
    """
    return _WRAPS.search(frame[:_LONGEST].replace("\\", "/")) is not None


_OWN = regex(r"(?:^|/)(?:torch/(?!utils/tensorboard/)|torch_xla/|triton/|jax/|jaxlib/|tensorflow/|keras/)")
_RUNS_OTHERS = regex(
    r"autograd::engine|ExecutorState::Process|ExecutorDoneCallback$|FunctionRun$|SessionRun$|RunGraph"
    r"|TFE_Py_|Eager(?:Kernel)?Execute$|EagerLocalExecute(?:Async)?: __|KernelAndDevice\w+::Run"
)
_WALKS = regex(
    r"(?:^|/)torch/nn/modules/module\.py\(\d+\): (?:_?named_(?:members|modules|parameters|buffers|children)|modules"
    r"|parameters|buffers|children|state_dict|apply|_apply|train|eval|requires_grad_|get_submodule|get_parameter)$"
)
_WRAPS = regex(r"(?:^|/)(?:contextlib|functools)\.py\(|^<frozen |^<string>\(|(?:^|/)torch/utils/_contextlib\.py\(")
_GIVING = regex(
    r"(?:^|/)torch/(?:(?:nn|optim|autograd|amp|_dynamo|_functorch|fx|distributed)/"
    r"|(?:_tensor|_ops|_compile|_jit_internal|functional|overrides|utils/(?:_contextlib|_foreach_utils|checkpoint))"
    r"\.py\()"
)
# What these make of a tensor is Python's own: a list of its numbers takes as long as they are many.
_GIVING_C = regex(r"^<built-in method (?!tolist\b|numpy\b|__reduce)\w+ of (?:Tensor|Parameter|Buffer|torch\._C\.\S+) ")


def _spelled(text: str) -> HostRole | None:
    """Annotations whose words say it: ``## load_batch ##``, ``DataLoading``, ``save_checkpoint``."""
    words = " ".join(_WORDS.findall(text)).lower()
    return next((role for role, pattern in _SPELLED if pattern.search(words)), None)


class StepMarker(NamedTuple):
    """A name that marks a step: the rank of its source (lower is preferred) and the step's number if any."""

    rank: int
    number: int | None
    ends_step: bool = False
    """The range stands at the end of a step instead of spanning it."""


@remembered
def step_marker(name: str) -> StepMarker | None:
    """What a name says of steps, by the one ordered table of marker sources.

    >>> step_marker("ProfilerStep#551")
    StepMarker(rank=0, number=551, ends_step=False)
    """
    text = name[:_LONGEST]
    for source in STEP_SOURCES:
        match = source.pattern.match(text)
        if match:
            number = match["number"] if "number" in source.pattern.groupindex else None
            return StepMarker(source.rank, int(number) if number else None, source.ends_step)
    return None


@record
class StepSource:
    """A source of step markers."""

    rank: int
    title: str
    pattern: re.Pattern[str]
    ends_step: bool = False


RANK_STEP_NUM = 2
"""Ranges with the arguments ``_r`` and ``step_num`` (XLA, ``StepTraceAnnotation``): no name tells them."""
RANK_STEP_NUM_ALONE = 6
"""Ranges with the argument ``step_num`` alone (Keras)."""
RANK_TPU_STEPS = 9
"""The Steps line of a TPU: a line's name tells it."""
RANK_SESSION_RUNS = 12
"""Runs of a TensorFlow 1 session: nothing was recorded between two of them."""
RANK_MODULES = 15
"""The module on a device's XLA Modules line that takes most of its time."""

_N = r"(?P<number>\d{1,15})"
STEP_SOURCES = tuple(
    StepSource(rank, title, regex(f"{form}$"), ends)
    for rank, title, form, ends in (
        (0, "torch.profiler", rf"ProfilerStep#{_N}", False),
        (1, "stepscope", rf"stepscope\.step#{_N}", False),
        (3, "Lightning batches", r"\[pl\]\[profile\]run_training_batch", False),
        (4, "Lightning training steps", r"\[pl\]\[profile\].*\btraining_step", False),
        (5, "Lightning evaluation steps", r"\[pl\]\[profile\].*\b(?:validation|test|predict)_step", False),
        (6, "Keras batches", rf"Profiled batch(?: {_N})?", False),
        (7, "named steps", rf"(?:train|test|predict|TraceContext|(?:[Tt]rain|Training)[_ ]step)[ #]{_N}", False),
        (8, "numbered steps", rf"(?:[Ss]tep|[Ii]ter(?:ation)?|[Bb]atch)[ _#:=]{{0,3}}{_N}", False),
        (10, "vLLM iterations", r"execute_(?:\d+_)?(?:context|generation|new|model)(?:[_(].*)?", False),
        (11, "SGLang iterations", r"step\[[A-Z_0-9]+(?: .*)?\]", False),
        (RANK_SESSION_RUNS, "TensorFlow session runs", rf"tf\.Session\.run#{_N}", False),
        (13, "TensorRT-LLM iterations", rf"\[Executor\] _forward_step(?: {_N})?: \d+ ctx reqs, .*", False),
        (14, "ATOM iterations", r"(?:prefill|decode)\[bs=\d+.*\]", False),
        (16, "vLLM iterations by their preparation", r"gpu_model_runner: preprocess", False),
        (20, "optimizer steps", r"Optimizer\.step#\w+\.step", True),
    )
)
"""Preferred first. One source is chosen per trace; ranges of others are annotations."""


_FUSIBLE = regex(r"Optimizer\.step#(Adam|AdamW)\.step$")


@remembered
def fusible_optimizer(name: str) -> str | None:
    """The optimizer whose update a range of PyTorch's is, of those whose ``fused=True`` saves most on a CPU."""
    matched = _FUSIBLE.match(name[:_LONGEST])
    return None if matched is None else matched[1]


def is_zero_grad(name: str) -> bool:
    """Whether a range is one in which gradients are cleared."""
    return name.startswith("Optimizer.zero_grad#")
