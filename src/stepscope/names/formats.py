"""The number format of a kernel's operands, read from its name.

Evidence is taken in this order: conventions that spell the operands out (MMA atoms, generated names, the type
letters of nvjet and Tensile), template arguments, types written into the name, the math letter of cuBLAS and
cuDNN (``sgemm``), pointer parameters. Without any of these the answer is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stepscope.hardware.peaks import Precision
from stepscope.names.remembered import remembered
from stepscope.names.symbols import ANONYMOUS, LONGEST, subject, without_parameters
from stepscope.regex import regex

_P = Precision
NO_FORMAT = "no number format in the name"

_TYPE_PATTERNS = (
    (_P.FP8, r"Float8_\w+|__(?:nv|hip)_fp8\w*|float_u?e[45]m[23]_t|(?:bf8|fp8|f8)_t"),
    (_P.FP4, r"Float4_\w+|__nv_fp4\w*|float_e2m1(?:_unpacksmem)?_t"),
    (_P.BF16, r"BFloat16|(?:__)?(?:nv|hip)_bfloat16\w*|bfloat16(?:_t)?|__bf16|bhalf_t|bf16(?:_t)?"),
    (_P.FP16, r"Half|__half2?|half2?|half_t|_Float16|float16(?:_t)?|fp16(?:_t)?"),
    (_P.TF32, r"tfloat32_t"),
    (_P.FP32, r"float[234]?"),
    (_P.FP64, r"double[234]?"),
    (_P.INT8, r"int8_t|signed char"),
)
_TYPE = regex(r"(?<!\w)(?:" + "|".join(f"(?P<{p}>{r})" for p, r in _TYPE_PATTERNS) + r")(?!\w)")
_TOKENS = {
    "bf16": _P.BF16, "bfloat16": _P.BF16, "fp16": _P.FP16, "f16": _P.FP16, "half": _P.FP16, "tf32": _P.TF32,
    "fp32": _P.FP32, "f32": _P.FP32, "float": _P.FP32, "f64": _P.FP64,
    "fp8": _P.FP8, "e4m3": _P.FP8, "e5m2": _P.FP8, "fp4": _P.FP4, "e2m1": _P.FP4, "int8": _P.INT8,
    "i8": _P.INT8,
}  # fmt: skip
_ANY_TOKEN = "|".join(sorted(_TOKENS, key=len, reverse=True))
_TOKEN = regex(
    rf"(?<![a-z\d])(?:mx|nv)?({_ANY_TOKEN})(?:\1|f32|i32|e4m3|e5m2)?(?![a-z\d])"
    # Triton joins operands by "x"; CuTe writes the type of each tensor pointer.
    r"|(?:(?<=_)(?=\w{3,4}x(?:bf16|fp16|fp8|mx|nv))|(?<=tensorptr))(bf16|fp16|f16|fp8)"
)
_OPERAND = r"(?:E4m3|E5m2|E2m1|Bfloat16|Fp16|Tf32|Int8)"
_OPERANDS = regex(
    rf"^(?:bmm|gemm)_[A-Za-z\d]+?_((?:(?:Mx|Nv)?{_OPERAND})+)_Fp"
    rf"|^fmha\w*_Q(?:kv)?({_OPERAND}(?:Kv{_OPERAND})?)O"
)
_ATOM = regex(r"SM\d+_\d+x\d+x\d+_(?:F32|F16|S32|F64)(BF16|F16|TF32|E4M3|E5M2|S8|F64)")
_NVJET = regex(r"nvjet_(?:sm\d+_)?([a-z]{3,5})_")
_NVJET_LETTERS = {"t": _P.BF16, "h": _P.FP16, "q": _P.FP8, "r": _P.FP8, "o": _P.FP4}
_TENSILE = regex(r"Cijk_A[a-z]+_B[a-z]+_(?:(S_MX)|(F8|B8|F4|4xi8|I8|[HBSDCZ]))")
_TENSILE_LETTERS = {
    "F8": _P.FP8, "B8": _P.FP8, "F4": _P.FP4, "4xi8": _P.INT8, "I8": _P.INT8, "H": _P.FP16, "B": _P.BF16,
    "S": _P.FP32, "C": _P.FP32, "D": _P.FP64, "Z": _P.FP64,
}  # fmt: skip
_MATH = regex(r"(?<![a-z\d])(gc|[shdczi])(\d{3,6})?(?:gemm|cudnn|fprop|dgrad|wgrad)")
_MATH_LETTERS = {
    "gc": _P.FP32,
    "s": _P.FP32,
    "c": _P.FP32,
    "h": _P.FP16,
    "d": _P.FP64,
    "z": _P.FP64,
    "i": _P.INT8,
}
_CK_TYPES = (
    (_P.BF16, regex(r"DF16b|(?<![a-z])t{2,3}f")),
    (_P.FP16, regex(r"DF16_")),
    (_P.FP8, regex(r"[bf]f?8_(?:fnuz|ocp)_t")),
)
_ENCLOSING = regex(r"\([^()]*\)(?=(?: const)?::)")
_POINTER = regex(r"(?<![\w:])([\w:]+)(?: const)?\s*\*")
_NCCL_TYPES = {
    "f32": _P.FP32, "float": _P.FP32, "f16": _P.FP16, "half": _P.FP16, "bf16": _P.BF16, "bfloat16": _P.BF16,
    "f64": _P.FP64, "double": _P.FP64, "i8": _P.INT8, "int8": _P.INT8, "f8e4m3": _P.FP8, "f8e5m2": _P.FP8,
}  # fmt: skip
_NCCL_TYPE = regex(
    r"(?:sum|prod|min|max|minmax|avg|premulsum|sumpostdiv)_+(?:nv_|hip_)?("
    + "|".join(_NCCL_TYPES)
    + r")(?:_t)?(?![a-z\d])"
)
_WIDTH = {_P.FP4: 4, _P.FP8: 8, _P.INT8: 8, _P.FP16: 16, _P.BF16: 16, _P.TF32: 19}


@remembered
def operand_format(text: str) -> tuple[Precision | None, str]:
    """The format of a kernel's operands and the evidence, from the kernel's name."""
    if text.startswith("batched_transpose_"):
        return None, "MIOpen writes the width, not the type"
    if "_sdpa_" in text and text.startswith("cudnn_generated"):
        return None, "cuDNN names fp16 and bf16 attention alike"
    about = subject(text)
    for read, evidence in _READERS:
        precision = read(text, about)
        if precision is not None:
            return precision, evidence
    return None, NO_FORMAT


def message_format(text: str, *, reduces: bool) -> tuple[Precision | None, str]:
    """The format of an NCCL kernel's message; kernels that only move data are all named int8."""
    if not reduces:
        return None, "NCCL moves every type as bytes here"
    match = _NCCL_TYPE.search(text.lower())
    return (_NCCL_TYPES[match[1]], "type in the NCCL name") if match else (None, NO_FORMAT)


def op_precision(input_types: str) -> Precision | None:
    """The format of the first floating-point (or int8) input among a host op's recorded input types.

    >>> op_precision('["c10::BFloat16", "Scalar"]').value, op_precision('["long int"]')
    ('bf16', None)
    """
    return _first_type(input_types[:LONGEST])


def _first_type(text: str) -> Precision | None:
    match = _TYPE.search(text)
    return Precision(match.lastgroup) if match and match.lastgroup else None


def _operands(text: str, about: str) -> Precision | None:
    """Generated names list the operands; of mixed operands the wider sets the rate."""
    match = _OPERANDS.search(text)
    if match is None:
        return None
    names = re.findall(_OPERAND, match[1] or match[2])
    return max((_TOKENS[name.lower()] for name in names), key=_WIDTH.__getitem__)


def _atom(text: str, about: str) -> Precision | None:
    match = _ATOM.search(text)
    return _TOKENS[match[1].lower()] if match else None


def _nvjet(text: str, about: str) -> Precision | None:
    """Letters of A (and B), accumulator and output; TF32 is spelled out beside ``sss``."""
    match = _NVJET.search(text)
    if match is None:
        return None
    return _P.TF32 if "_tf32_" in text else _NVJET_LETTERS.get(match[1][0])


def _tensile(text: str, about: str) -> Precision | None:
    match = _TENSILE.search(text)
    if match is None:
        return None
    return _P.TF32 if match[1] else _TENSILE_LETTERS[match[2]]


def _mangled(text: str, about: str) -> Precision | None:
    """Composable Kernel writes bf16 as unsigned short, ``t``, in operand, operand, accumulator order."""
    if not text.startswith(("_ZN2ck", "_ZN7ck_tile")):
        return None
    starts = [(match.start(), p) for p, pattern in _CK_TYPES if (match := pattern.search(text))]
    return min(starts)[1] if starts else None


def _template_type(text: str, about: str) -> Precision | None:
    """The first type among the template arguments: inputs come first, accumulators later.

    A kernel is often a lambda of a function whose own parameters stand in the name; they are not its data.
    """
    if text.startswith("_ZN"):
        return None
    _, opening, arguments = _ENCLOSING.sub("", without_parameters(ANONYMOUS.sub("", text))).partition("<")
    return _first_type(arguments) if opening else None


def _named_type(text: str, about: str) -> Precision | None:
    # xmma's traits name the accumulator where it is fp32: the operands of "hmma_fp32" are 16-bit.
    match = _TOKEN.search(about.replace("hmma_fp32", ""))
    return _TOKENS[match[1] or match[2]] if match else None


def _math_letter(text: str, about: str) -> Precision | None:
    match = _MATH.search(about)
    if match is None:
        return None
    letter, shape = match[1], match[2]
    if shape is None or letter in "dzi":
        return _MATH_LETTERS[letter]
    if letter == "s" and shape == "1688":
        # 16x8x8 multiplies TF32 since Ampere; on Turing it took fp16, which those names spell out.
        return _P.TF32 if re.search(r"ampere|cutlass_[89]\d|sm[89]\d", about) else None
    return _P.FP16 if letter == "h" or shape == "884" else None


def _pointer_type(text: str, about: str) -> Precision | None:
    """The first pointer parameter with a format; a scalar parameter says nothing of the data."""
    types = (_first_type(match[1]) for match in _POINTER.finditer(text))
    return next((precision for precision in types if precision is not None), None)


_READERS: tuple[tuple[Callable[[str, str], Precision | None], str], ...] = (
    (_operands, "operand types in the name"),
    (_atom, "types of the MMA atom"),
    (_nvjet, "nvjet type letters"),
    (_tensile, "Tensile type letters"),
    (_mangled, "mangled template arguments"),
    (_template_type, "template arguments"),
    (_named_type, "type in the name"),
    (_math_letter, "math letter in the name"),
    (_pointer_type, "parameter types"),
)
