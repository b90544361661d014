"""Why an op makes the host wait for the device, and what to write instead.

Known are ops of PyTorch (``aten::nonzero``), types of TensorFlow's ops (``Where``) and Python frames inside PyTorch and
JAX. Which ops of PyTorch read a value on the host is in its sources (``aten/src/ATen/native/cuda``: ``Nonzero.cu``,
``UniqueCub.cu``, ``Indexing.cu``, ``SummaryOps.cu``, ``Repeat.cu``); which of JAX's functions need a concrete size is
in the documentation of ``jax.numpy`` (the parameter ``size``).
"""

from __future__ import annotations

from enum import StrEnum

from stepscope.names.purposes import Purpose
from stepscope.names.versions import Version
from stepscope.record import record
from stepscope.regex import regex

_LONGEST = 2_048


class Replacement(StrEnum):
    """What the device does in place of an op that waits, where that can be said."""

    WHERE = "where"
    """``torch.where`` over the whole condition: it reads one byte of that and two operands, and writes one."""


@record
class Advice:
    """An alternative that does not hold everywhere (``remedies.Part``): what the program is for, and since which
    version of the framework there is what it names."""

    text: str
    purposes: tuple[Purpose, ...] = ()
    since: Version | None = None
    needs_bf16: bool = False
    """Only where the device computes in bfloat16."""

    def __str__(self) -> str:
        return self.text


@record
class SyncHint:
    """Why a host op waits for the device, and what to write instead.

    ``always``: on a device tensor the op waits in every case; otherwise it depends on its arguments.
    """

    cause: str
    alternatives: tuple[str | Advice, ...]
    always: bool = True
    replacement: Replacement | None = None
    """None where what replaces the op does on the device what the op does (a sort, a copy), or it depends."""
    drops: bool = False
    """The op passes on only part of its input: what follows it has less to do."""


def sync_hint(op_name: str) -> SyncHint | None:
    """What is known of a host op that makes the host wait for the device (``aten::nonzero``), else None."""
    name = op_name[:_LONGEST]
    return _OPS.get(name) or (None if "::" in name else _TF_OPS.get(name.rpartition(":")[2]))


def frame_hint(frame: str) -> SyncHint | None:
    """The same of a Python frame, as profilers of PyTorch and JAX name it.

    >>> frame_hint("torch/_tensor_str.py(707): _str").cause[:8]
    'printing'
    """
    text = frame[:_LONGEST]
    return next((hint for pattern, hint in _FRAMES if pattern.search(text)), None)


def takes_time(frame: str) -> bool:
    """Whether a Python frame is of a timer, a benchmark or a profiler, whose own waits serve what it measures.

    >>> takes_time("triton/testing.py(120): do_bench"), takes_time("bench.py(20): main")
    (True, False)
    """
    return _TIMERS.search(frame[:_LONGEST].replace("\\", "/")) is not None


def hands_on_wait(frame: str) -> bool:
    """Whether a Python frame only waits for whoever called it.

    >>> hands_on_wait("torch/cuda/__init__.py(900): synchronize"), hands_on_wait("train.py(9): main")
    (True, False)
    """
    return _WAITERS.search(frame[:_LONGEST].replace("\\", "/")) is not None


_TIMERS = regex(
    r"(?:^|/)(?:triton/testing|timeit|torch/utils/benchmark/\S+|torch/_inductor/runtime/benchmarking"
    r"|(?:pytorch_lightning|lightning/pytorch)/(?:profilers?/\w+|callbacks/(?:throughput|device_stats)_monitor)"
    r"|lightning/fabric/utilities/throughput|lightning_fabric/utilities/throughput"
    r"|deepspeed/(?:utils/timer|profiling/\S+)|megatron/(?:\w+/)?timers|nemo/utils/timers|colossalai/\S*timer"
    r"|flashinfer/testing/\w+|(?:vllm|sglang)/bench\S*|transformers/benchmark/\S+|optimum_benchmark/\S+"
    r"|benchmarks?/(?:\S+/)?bench(?:mark)?_\w+)\.py\("
    r"|(?:^|/)torch/_inductor/utils\.py\(\d+\): (?:timed|print_performance|do_bench\w*)$"
)
_WAITERS = regex(
    r"^<built-in |(?:^|/)(?:torch/(?:cuda|xpu|mps|accelerator|cpu)|torch_npu/npu|deepspeed/accelerator)/\S+\.py\("
    r"|(?:^|/)(?:contextlib|functools)\.py\(|(?:^|/)torch/utils/_contextlib\.py\(|: _?synchronize$"
)

_SIZE = "the output's size depends on the input's values, which the host must read from the device first"
_SCALAR = "a value is read from the device into a Python number"
_KEEP = "keep the value on the device and read it every N steps"
_WHERE = "torch.where(cond, a, b) over the whole tensor, with a neutral b (0 in a sum), which keeps the shape"
_LOADER = "do it on the host, before the batch is sent, where the values come from the batch"
_TRAINS = (Purpose.TRAINING,)
_IGNORE = Advice(
    "ignore_index of F.cross_entropy: write it into the targets with torch.where instead of selecting targets", _TRAINS
)

# fmt: off
_MASK = SyncHint(_SIZE, (
    _WHERE,
    "multiply by the mask and divide by mask.sum(), kept on the device",
    _IGNORE,
), replacement=Replacement.WHERE, drops=True)
_NONZERO = SyncHint(_SIZE, (
    _WHERE + ", or arithmetic with the condition",
    Advice("torch.nonzero_static(x, size=n) where the count, or a bound of it, is known", since=(2, 6)),
    _LOADER,
), replacement=Replacement.WHERE, drops=True)
_UNIQUE = SyncHint(_SIZE, (
    "for labels of which n can occur, count them: torch.zeros(n).scatter_add_(0, x.flatten(), ones), present where "
    "the count is not 0",
    "for any values sort and compare neighbours (torch.sort, then torch.diff(x) != 0), which keeps the shape",
    _LOADER,
), drops=True)
_ITEM = SyncHint(_SCALAR, (
    f"{_KEEP} (log a detached copy)",
    "use the tensor itself in the computation instead of a Python number",
))
_BOOL = SyncHint("a tensor is used as a Python condition, so the host must know its value", (
    "torch.where instead of if",
    f"{_KEEP}: check for NaN or overflow only now and then",
))
_COPY = SyncHint("a copy to or from pageable host memory blocks the host until the device got there", (
    "pin the host memory (pin_memory=True) and copy with non_blocking=True",
    f"{_KEEP}: one copy for many values",
    "create the tensor on the device (device=...) instead of moving it",
), always=False)
_INDEX = SyncHint("indexing with a boolean mask becomes nonzero: " + _SIZE, _MASK.alternatives, always=False,
                  replacement=Replacement.WHERE, drops=True)
_REPEAT = SyncHint(_SIZE, ("pass output_size= to repeat_interleave",), always=False)
_BINCOUNT = SyncHint(_SIZE, ("torch.zeros(n).scatter_add_(0, x, ones) with a known number of bins",))
_COMPARE = SyncHint("the result is a Python bool, so the host must read it", (
    "(a == b).all() kept as a tensor and read every N steps", "compare outside of the loop"))
_CHECK = SyncHint("the host reads the solver's error code", (
    Advice("the _ex variant (torch.linalg.inv_ex, cholesky_ex) with check_errors=False", since=(1, 9)),), always=False)
_ONE_HOT = SyncHint("without num_classes the host reads the largest value", (
    "pass num_classes= to F.one_hot",), always=False)

_OPS = {f"aten::{op}": hint for hint, ops in (
    (_ITEM, ("item", "_local_scalar_dense")),
    (_BOOL, ("is_nonzero",)),
    (_NONZERO, ("nonzero", "nonzero_numpy", "argwhere")),
    (_MASK, ("masked_select",)),
    (_INDEX, ("index", "index_put_", "_index_put_impl_")),
    (_UNIQUE, ("unique", "_unique", "_unique2", "unique_dim", "unique_consecutive",
               "unique_dim_consecutive")),
    (_REPEAT, ("repeat_interleave",)),
    (_BINCOUNT, ("bincount",)),
    (_COMPARE, ("equal", "allclose")),
    (_COPY, ("_to_copy", "to", "copy_", "cpu", "tolist")),
    (_CHECK, ("_linalg_check_errors",)),
    (_ONE_HOT, ("one_hot",)),
) for op in ops}

_TF_WHERE = SyncHint(_SIZE, (
    "tf.where(mask, x, other) with all three arguments, which keeps the shape, in place of tf.where(mask) and "
    "tf.boolean_mask",
    "multiply by tf.cast(mask, x.dtype) and divide by tf.reduce_sum of it",
    Advice("sample_weight, or ignore_class of SparseCategoricalCrossentropy, instead of selecting targets", _TRAINS),
), drops=True)
_TF_UNIQUE = SyncHint(_SIZE, (
    "for labels of which n can occur tf.math.unsorted_segment_sum(ones, x, n), which keeps the shape",
    "tf.sort and compare neighbours",
    "do it in the input pipeline (dataset.map), on the host",
), drops=True)
_TF_OPS = {op: hint for hint, ops in (
    (_TF_WHERE, ("Where",)),
    (_TF_UNIQUE, ("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")),
) for op in ops}
"""By type of the op."""

_PRINT = SyncHint("printing a tensor reads its values", ("print detached values every N steps only",))
_SCALER = SyncHint("GradScaler reads whether a gradient overflowed before each optimizer step", (
    Advice("bfloat16 in torch.autocast, which needs no loss scaling", _TRAINS, since=(1, 10), needs_bf16=True),
    Advice("an optimizer with fused=True, which takes the scaler's found_inf on the device", _TRAINS, since=(2, 0)),
))
_TO_HOST = SyncHint("values are copied to the host, which waits for them", (
    f"{_KEEP}: one copy for many values",
    "copy into pinned memory with non_blocking=True and read it a step later",
))
_JNP_NONZERO = SyncHint(_SIZE, (
    "jnp.where(cond, a, b) with all three arguments, which keeps the shape",
    "jnp.nonzero(x, size=n, fill_value=...), which needs no value of x and can be compiled",
), drops=True)
_JNP_UNIQUE = SyncHint(_SIZE, ("jnp.unique(x, size=n, fill_value=...), which can be compiled",), drops=True)
_JNP_MASK = SyncHint("indexing with a boolean mask needs its values: " + _SIZE, (
    "jnp.where(mask, x, other), which keeps the shape",), drops=True)
_JNP_READ = SyncHint(_SCALAR, (f"{_KEEP} (`float(x)`, `x.item()`, `np.asarray(x)` and `print(x)` all wait)",
                               "jnp.where or jax.lax.cond instead of a Python if"))
_FRAMES = tuple((regex(pattern), hint) for pattern, hint in (
    (r"(?:^|/)torch/_tensor_str\.py\(", _PRINT),
    (r"(?:^|/)torch/(?:cuda/)?amp/grad_scaler\.py\(\d+\): (?:<genexpr>|update)$", _SCALER),
    (r"^<built-in method (?:cpu|tolist|numpy) of (?:Tensor|Parameter)\b", _TO_HOST),
    (r"(?:^|/)lax_numpy\.py\(\d+\): _?(?:nonzero|argwhere|flatnonzero)$", _JNP_NONZERO),
    (r"(?:^|/)setops\.py\(\d+\): _?unique\w*$", _JNP_UNIQUE),
    (r"(?:^|/)indexing\.py\(\d+\): _?(?:expand_bool_indices|merge_static_and_dynamic_indices)$", _JNP_MASK),
    (r"(?:^|/)array\.py\(\d+\): (?:__(?:float|int|bool|index|array|str|repr|format)__|item|tolist)$", _JNP_READ),
))
