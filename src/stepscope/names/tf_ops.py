"""Which ops of TensorFlow only move data: what each element takes is a few operations, so that memory sets their time.

Types are those of tensorflow/core/ops. All of them are fused by XLA; ops that a library runs (normalisation by cuDNN),
and such as look up by index, are not among them.
"""

from __future__ import annotations

from stepscope.regex import regex

_POINTWISE = (
    "Abs|Add|AddN|AddV2|Cast|Ceil|ClipByValue|Cos|Div|DivNoNan|Elu|EluGrad|Equal|Erf|Exp|Expm1|Floor|FloorDiv|FloorMod"
    "|Greater|GreaterEqual|Inv|IsFinite|IsInf|IsNan|LeakyRelu|LeakyReluGrad|Less|LessEqual|Log|Log1p|LogicalAnd"
    "|LogicalNot|LogicalOr|Maximum|Minimum|Mod|Mul|MulNoNan|Neg|NotEqual|Pow|RealDiv|Reciprocal|ReciprocalGrad|Relu"
    "|Relu6|Relu6Grad|ReluGrad|Round|Rsqrt|RsqrtGrad|Select|SelectV2|Selu|SeluGrad|Sigmoid|SigmoidGrad|Sign|Sin"
    "|Softplus|SoftplusGrad|Softsign|SoftsignGrad|Sqrt|SqrtGrad|Square|SquaredDifference|Sub|Tanh|TanhGrad|Xdivy|Xlogy"
    "|ZerosLike|OnesLike|Fill|BroadcastTo|Tile|Transpose|BiasAdd|BiasAddGrad"
)
_REDUCING = "Sum|Mean|Max|Min|Prod|All|Any|L2Loss|Softmax|LogSoftmax"
_MOVES = regex(f"(?:{_POINTWISE}|{_REDUCING})")


def only_moves_data(name: str) -> bool:
    """Whether an op, from the name of its event or of its type, is bound by memory whatever its shapes.

    >>> only_moves_data("model/dense/Relu:Relu"), only_moves_data("model/dense/MatMul:MatMul")
    (True, False)
    """
    return _MOVES.fullmatch(name.rpartition(":")[2]) is not None
