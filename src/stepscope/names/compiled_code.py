"""Which ranges of the host run compiled code, and which run one op at a time."""

from __future__ import annotations

import re

from stepscope.regex import regex

_LONGEST = 2_048
_REGION = regex(r"Torch-Compiled Region: (?P<frame>\d{1,9})/\d")  # torch/_dynamo: "frame id/compile id"
_COMPILED = regex(
    r"Torch-Compiled Region|CompiledFunction|## Call CompiledFxGraph|CompiledFxGraph"  # torch/_dynamo, _inductor
)
_PREPARES = regex(r"TorchDynamo Cache Lookup|AOTDispatcher Runtime Wrapper Prologue|Pregraph bytecode")
_EAGER_OP = regex(r"EagerLocalExecute(?:Async)?: (?!__(?:inference|forward|backward)_)")  # eager/execute.cc
_STAYS = regex(
    r"dot|mat_?mul|conv(?!ert)|gemm|einsum|attention|ynn_|custom-call|sort|fft|cholesky|triangular|scatter|rng|while",
    re.IGNORECASE,
)
_RESUMED = regex(r"(?P<file>[^()]+)\(\d+\): torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d{1,9})$")


def compiled_frame(name: str) -> int | None:
    """Dynamo's number of the frame that a compiled region runs: pieces of one function have one each.

    >>> compiled_frame("Torch-Compiled Region: 3/1"), compiled_frame("aten::mm")
    (3, None)
    """
    match = _REGION.match(name[:_LONGEST])
    return int(match["frame"]) if match else None


def is_compiled(name: str) -> bool:
    """Whether what runs inside is code that ``torch.compile`` made."""
    return _COMPILED.match(name[:_LONGEST]) is not None


def prepares_compiled(name: str) -> bool:
    """Whether PyTorch only prepares to run compiled code inside: no op of it runs yet.

    >>> prepares_compiled("TorchDynamo Cache Lookup"), prepares_compiled("CompiledFunction")
    (True, False)
    """
    return _PREPARES.match(name[:_LONGEST]) is not None


def is_eager_op(name: str) -> bool:
    """Whether TensorFlow runs one op inside, outside of any ``tf.function``.

    >>> [is_eager_op(f"EagerLocalExecute: {op}") for op in ("AddV2", "__inference_step_12")]
    [True, False]
    """
    return _EAGER_OP.match(name[:_LONGEST]) is not None


def is_eager_call(name: str) -> bool:
    """Whether Python asks TensorFlow to run an op inside."""
    return name.startswith(("TFE_Py_", "EagerExecute"))


def stays_when_compiled(name: str) -> bool:
    """Whether an op computes much the same in compiled code: a product, a sort. The others become part of one loop.

    >>> [stays_when_compiled(op) for op in ("dot_general.1", "ynn_fusion", "wrapped_tanh", "convert_fusion", "BiasAdd")]
    [True, True, False, False, False]
    """
    return _STAYS.search(name[:_LONGEST]) is not None


def resumed_at(name: str) -> str | None:
    """Where a graph broke, by the frame that goes on behind it.

    >>> resumed_at("train.py(40): torch_dynamo_resume_in_forward_at_52")
    'forward (train.py:52)'
    """
    match = _RESUMED.match(name[:_LONGEST])
    return f"{match['function']} ({match['file']}:{match['line']})" if match else None
