"""What a program does with its model, and whose devices it uses, by the names of ops, ranges, frames and kernels."""

from __future__ import annotations

import re
from enum import StrEnum

from stepscope.regex import regex

_LONGEST = 2_048


class Purpose(StrEnum):
    """What a program does with its model."""

    TRAINING = "training"
    INFERENCE = "inference"
    """A forward pass and nothing of training."""
    SERVING = "serving"
    """Inference inside an engine that answers requests."""
    CAPTURE = "capture"
    """Recording graphs that will be launched later."""
    UNKNOWN = "unknown"


def trains(name: str) -> bool:
    """Whether an op, range, frame or scope of this name runs where a model is trained and nowhere else.

    >>> [trains(name) for name in ("AddmmBackward0", "aten::addmm", "torch/optim/adamw.py(170): step")]
    [True, False, True]
    """
    return _TRAINING.search(name[:_LONGEST]) is not None


def trains_on_device(kernel: str) -> bool:
    """Whether a kernel of this name runs where a model is trained and nowhere else.

    >>> [trains_on_device(name) for name in ("sm80_xmma_wgrad_implicit_gemm_f16f16", "sm80_xmma_dgrad_f16f16_nhwc")]
    [True, False]
    """
    text = kernel[:_LONGEST]
    # A transposed convolution's forward pass runs the kernels that compute another one's gradient.
    return _BACKWARD_KERNEL.search(text) is not None and (
        _CONVOLUTION.search(text) is None or _OF_WEIGHTS.search(text) is not None
    )


_TRAINING = regex(
    r"^autograd::engine::evaluate_function|^\W*backward\W*$|^Optimizer\.(?:step|zero_grad)#"  # PyTorch's ranges
    r"|^(?:[\w:]*::)?[A-Z]\w*Backward\d*$|^torch::autograd::AccumulateGrad$|^aten::\w+_backward\w*$"  # its autograd
    r"|^aten::_(?:fused|foreach)_(?:adam|adamw|sgd|adagrad)_?$|_amp_(?:foreach_non_finite_check_and_unscale|update_scale)_"
    r"|(?:^|/)torch/(?:_tensor|autograd/__init__)\.py\(\d+\): (?:backward|grad)$"
    r"|(?:^|/)torch/optim/(?!lr_scheduler|swa_utils)\w+\.py\(\d+\): (?:step|zero_grad)$"
    r"|^\[pl\]\[profile\].*(?:run_training_batch|\btraining_step|optimizer_step)"
    r"|transpose\(jvp\(|(?:^|/)gradient_tape/|(?:^|/)gradients(?:_\d+)?/"  # scopes of JAX, TensorFlow 2 and 1
    r"|(?:^|[/:])(?:Resource)?(?:Sparse)?Apply(?:Adam|Momentum|GradientDescent|RMSProp|Adagrad|Ftrl)\w*$"
    r"|(?:^|[^A-Za-z])train(?:ing)?_step(?:$|[^A-Za-z])"
)
_BACKWARD_KERNEL = regex(
    r"[Ww]grad|(?:^|[^A-Za-z])wrw(?:$|[^A-Za-z])|[Bb]wd_?[Ww]eight"
    r"|(?:^|[^A-Za-z])(?:bwd|bw|backward)(?:$|[^A-Za-z])|[a-z]Backward(?:$|[^a-z])|[a-z]Bwd(?:$|[^a-z])"
    r"|multi_tensor_apply_kernel.*(?:[Aa]dam|[Ll]amb|LAMB|SGD|Novo|Adagrad)|(?:^|[^A-Za-z])[Ff]used_?[Aa]dam"
)
_CONVOLUTION = regex(r"conv|igemm|dgrad", re.IGNORECASE)
_OF_WEIGHTS = regex(r"wgrad|(?:^|[^a-z])wrw(?:$|[^a-z])|weight", re.IGNORECASE)


def serves(name: str) -> bool:
    """Whether a name is of an engine that serves models: a frame of its, its mark of an iteration, a kernel of its.

    >>> serves("vllm/v1/worker/gpu_model_runner.py(1210): execute_model"), serves("vllm.py(3): main")
    (True, False)
    """
    return _SERVING.search(name[:_LONGEST]) is not None


_SERVING = regex(
    r"^(?:\S*[/\\])?(?:vllm|sglang|tensorrt_llm|lmdeploy|text_generation_server|mii|lightllm)[/\\]\S*\.py\(\d+\): "
    r"|^execute_(?:\d+_)?(?:context|generation|new|model)(?:[_(].*)?$|^step\[[A-Z_0-9]+(?: .*)?\]$"
    r"|^\[Executor\] _forward_step\b|^(?:prefill|decode)\[bs=\d+.*\]$|^gpu_model_runner: \w+$"
    r"|(?:^|[^\w])(?:vllm|tensorrt_llm|turbomind|sgl_kernel)::|^(?:void )?(?:\w+::)*reshape_and_cache\w*(?:_kernel)?\b"
)


def infers(name: str) -> bool:
    """Whether something of this name runs a model that was trained before.

    >>> infers("diffusers/pipelines/flux/pipeline_flux.py(640): __call__")
    True
    """
    return _INFERRING.search(name[:_LONGEST]) is not None


_INFERRING = regex(
    r"(?:^|[/\\])diffusers[/\\]pipelines[/\\]\S*\.py\(\d+\): |(?:^|[/\\])transformers[/\\](?:generation|pipelines)[/\\]"
    r"|^\[pl\]\[profile\].*\b(?:validation|test|predict)_step|(?:^|[^\w])nvinfer1::|^__myl_"
)

_VENDOR_OF_CALL = (
    ("AMD", regex(r"^(?:hip|hsa_|roctx|rocblas)[A-Z_a-z]")),
    ("NVIDIA", regex(r"^cuda[A-Z]|^cu(?:Launch|Mem|Stream|Event|Ctx|Module|Graph|Device|Library)\w*$")),
    ("Intel", regex(r"^(?:ze|zes|ur|pi)[A-Z]\w+$|^sycl")),
)
_VENDOR_OF_DEVICE = (
    ("NVIDIA", regex(r"\b(?:NVIDIA|Tesla|GeForce|Quadro|RTX|GTX)\b", re.IGNORECASE)),
    ("AMD", regex(r"\b(?:AMD|Instinct|Radeon|gfx\w+)\b", re.IGNORECASE)),
    ("Intel", regex(r"\b(?:Intel|Ponte Vecchio|Gaudi|Arc)\b", re.IGNORECASE)),
    ("Google", regex(r"\bTPU\b", re.IGNORECASE)),
    ("Huawei", regex(r"\bAscend", re.IGNORECASE)),
    ("Meta", regex(r"\b(?:MTIA|Artemis)\b", re.IGNORECASE)),
)


def vendor_of_call(name: str) -> str | None:
    """Whose devices a call of a runtime or driver is for.

    >>> vendor_of_call("hipLaunchKernel"), vendor_of_call("cudaMemcpyAsync"), vendor_of_call("launch")
    ('AMD', 'NVIDIA', None)
    """
    return next((vendor for vendor, pattern in _VENDOR_OF_CALL if pattern.match(name[:_LONGEST])), None)


def vendor_of_device(name: str) -> str | None:
    """Who made a device of a name that no table of peaks has."""
    return next((vendor for vendor, pattern in _VENDOR_OF_DEVICE if pattern.search(name[:_LONGEST])), None)
