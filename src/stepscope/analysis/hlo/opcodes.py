"""XLA's opcodes by what they cost (xla/hlo/ir/hlo_opcode.h), as hlo_cost_analysis.cc handles them."""

from __future__ import annotations

ELEMENTWISE = frozenset({
    "abs", "acos", "acosh", "add", "and", "asin", "asinh", "atan2", "atanh", "cbrt", "ceil", "clamp", "compare",
    "complex", "convert", "cosh", "cosine", "count-leading-zeros", "divide", "erf", "exponential",
    "exponential-minus-one", "floor", "imag", "is-finite", "log", "log-plus-one", "logistic", "maximum", "minimum",
    "multiply", "negate", "not", "or", "popcnt", "power", "real", "reduce-precision", "remainder", "rng",
    "rng-bit-generator", "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sinh", "sqrt", "stochastic-convert",
    "subtract", "tan", "tanh", "xor",
})  # fmt: skip
"""One operation per element of the result."""

MOVING = frozenset({
    "all-gather", "all-gather-start", "all-to-all", "broadcast", "collective-broadcast", "collective-permute",
    "collective-permute-start", "concatenate", "copy", "copy-start", "dynamic-reshape", "dynamic-slice",
    "dynamic-update-slice", "gather", "infeed", "iota", "outfeed", "pad", "ragged-all-to-all", "recv", "reshape",
    "reverse", "rng-get-and-update-state", "send", "slice", "transpose",
})  # fmt: skip
"""No operation; operands are read and results written."""

NOTHING = frozenset({
    "add-dependency", "after-all", "all-gather-done", "all-reduce-done", "async-done", "async-update", "bitcast",
    "bitcast-convert", "collective-permute-done", "constant", "copy-done", "domain", "get-dimension-size",
    "get-tuple-element", "opt-barrier", "optimization-barrier", "parameter", "partition-id", "recv-done",
    "replica-id", "send-done", "set-dimension-size", "tuple",
})  # fmt: skip
"""Neither operations nor bytes: names for values that are there, marks for the compiler, the ends of what started
earlier."""
