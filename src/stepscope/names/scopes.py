"""Layers in the name scopes of frameworks: ``op_name`` of JAX's compiled ops and names of TensorFlow's nodes."""

from __future__ import annotations

import re
from typing import NamedTuple

_LONGEST = 2_048


class Scope(NamedTuple):
    """The layer an op belongs to, outermost scope first ("" for none), and whether it is part of its backward pass."""

    layer: str
    backward: bool = False


_TRANSFORM = re.compile(r"(?P<name>\w+)\((?P<inner>.*)\)", re.DOTALL)
_NO_LAYERS = re.compile(
    # How JAX names what its own transformations, control flow and calls put around an op (jax/_src, JAX 0.4 to 0.10).
    r"while|body|cond|scan|branch_\d+_fun|closed_call|core_call|remat\d?|checkpoint|rematted_computation|shard_map"
    r"|custom_[jv][vj]p_call(?:_jaxpr)?|xla_call|main|pjit"
)
_CALLS = frozenset({"jit", "pjit", "pmap", "xla_call"})
"""A call by its function's name: that of a program or of a helper, not of a layer."""


def jax_scope(op_name: str) -> Scope:
    """The layer of a compiled op; of a fusion's several names the first counts.

    >>> jax_scope("jit(step)/transpose(jvp(Net))/Dense_0/dot_general")
    Scope(layer='Net/Dense_0', backward=True)
    """
    pieces, backward = [], False
    for text in _split(op_name[:_LONGEST].partition(";")[0])[:-1]:
        piece = text
        while (found := _TRANSFORM.fullmatch(piece)) is not None:
            backward |= found["name"] == "transpose"
            piece = "" if found["name"] in _CALLS else found["inner"]
        pieces += [inner for inner in _split(piece) if inner and not _NO_LAYERS.fullmatch(inner)]
    return Scope("/".join(pieces), backward)


def _split(path: str) -> list[str]:
    """The parts between slashes that are not inside parentheses."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(path):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth <= 0:
            parts.append(path[begin:at])
            begin = at + 1
    return [*parts, path[begin:]]


_TF1_GRADIENTS, _TF2_GRADIENTS = re.compile(r"gradients(?:_\d+)?"), "gradient_tape"
_OF_AN_OP = re.compile(r"ReadVariableOp(?:_\d+)?|Cast(?:_\d+)?|stack|axis|axes|shape|perm|begin|end|strides")
"""What TensorFlow puts under the name of an op: reads and constants it takes in."""
_OP_NAMED = re.compile(r"[A-Z]\w*")
"""How TensorFlow names an op by default: after its type. Keras names layers in lower case."""


def tensorflow_scope(node: str) -> Scope:
    """The layer of a graph's node; gradients belong to the layer whose op they differentiate.

    >>> tensorflow_scope("gradient_tape/sequential/dense_1/MatMul/MatMul_1")
    Scope(layer='sequential/dense_1', backward=True)
    >>> tensorflow_scope("gradients/dense/MatMul_grad/MatMul").layer
    'dense'
    """
    pieces = node[:_LONGEST].split("/")
    for at, piece in enumerate(pieces[:-1]):
        if _TF1_GRADIENTS.fullmatch(piece):
            inner = pieces[at + 1 :]
            grad = next((k for k, name in enumerate(inner) if re.search(r"_grad(?:_\d+)?$", name)), len(inner) - 1)
            return Scope("/".join(inner[:grad]), True)
    backward = pieces[0] == _TF2_GRADIENTS
    inner = pieces[backward:]
    kept = inner[:-1]
    if kept and _OP_NAMED.fullmatch(kept[-1]) and (backward or _OF_AN_OP.fullmatch(inner[-1])):
        kept = kept[:-1]
    return Scope("/".join(kept), backward)


_OPTIMIZER = re.compile(
    r"(?:^|/)(?:(?:adam(?:w|ax|_w)?|nadam|sgd|rms_?prop|ada_?grad|ada_?delta|adafactor|ftrl|lion|lamb|momentum"
    r"|loss_?scale_?optimizer)(?:_\d+)?/|(?:Resource)?(?:Sparse)?Apply[A-Z])",
    re.IGNORECASE,
)
_LOSS = re.compile(r"(?:^|/)\w*(?:loss|cross_?entropy|mean_(?:squared|absolute))\w*/", re.IGNORECASE)


def is_of_optimizer(node: str) -> bool:
    """Whether a node of TensorFlow's graph updates variables, by the scope of an optimizer or its op.

    >>> is_of_optimizer("Adam/Adam/update/ResourceApplyAdam"), is_of_optimizer("model/dense/MatMul")
    (True, False)
    """
    return _OPTIMIZER.search(node[:_LONGEST]) is not None


def is_of_loss(node: str) -> bool:
    """Whether a node lies in the scope of a loss.

    >>> is_of_loss("sparse_categorical_crossentropy/weighted_loss/Sum"), is_of_loss("model/dense/MatMul")
    (True, False)
    """
    return _LOSS.search(node[:_LONGEST]) is not None
