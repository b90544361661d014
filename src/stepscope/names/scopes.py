"""Layers in the name scopes of frameworks: ``op_name`` of JAX's compiled ops and names of TensorFlow's nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from stepscope.regex import regex

_LONGEST = 2_048


class Scope(NamedTuple):
    """The layer an op belongs to, outermost scope first ("" for none), and whether it is part of its backward pass."""

    layer: str
    backward: bool = False


_TRANSFORM = regex(r"(?P<name>\w+)\((?P<inner>.*)\)", re.DOTALL)
_NO_LAYERS = regex(
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
        while (match := _TRANSFORM.fullmatch(piece)) is not None:
            backward |= match["name"] == "transpose"
            piece = "" if match["name"] in _CALLS else match["inner"]
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


_TF1_GRADIENTS, _TF2_GRADIENTS = regex(r"gradients(?:_\d+)?"), "gradient_tape"
_OF_AN_OP = regex(r"ReadVariableOp(?:_\d+)?|Cast(?:_\d+)?|stack|axis|axes|shape|perm|begin|end|strides")
"""What TensorFlow puts under the name of an op: reads and constants it takes in."""
_OP_NAMED = regex(r"[A-Z]\w*")
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


class StepPart(StrEnum):
    """What of a training step an op of TensorFlow is, where its name tells."""

    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"


_WRAPS = regex(
    r"(?:Stateful)?PartitionedCall(?:_\d+)?|replica_\d+|cond(?:_\d+)?|switch_pred|then|else|while(?:_\d+)?|body|_\d+"
    r"|cluster_\w+|jit\(.*\)"
)
"""Scopes of calls, replicas and branches."""
_GRADIENTS = regex(r"gradients(?:_\d+)?|gradient_tape")
_OPTIMIZERS = regex(
    r"(?:adam\w*|nadam|adagrad\w*|adadelta|adafactor|sgd|rmsprop|ftrl|lamb|lion|muon|nesterov|momentum|gradient_?descent"
    r"|loss_?scale\w*|\w*optimizer\w*)(?:_\d+)?",
    re.IGNORECASE,
)
_LOSSES = regex(
    r"\w*(?:loss|cross_?entropy|mean_(?:squared|absolute)\w*_error|hinge|huber|divergence|log_cosh)\w*", re.IGNORECASE
)
_MEASURED = regex(r"(?:compile_)?metrics(?:_\d+)?|\w*accuracy\w*", re.IGNORECASE)
_APPLIES = regex(r"(?:_Fused)?(?:Resource)?(?:Sparse)?Apply[A-Z]")
_LOSS_OPS = regex(r"\w*CrossEntropy\w*|\w*L2Loss|CTCLoss\w*")


def tensorflow_part(name: str) -> StepPart | None:
    """What of a step an op is, from the name of its node or of its event (``node:Type``): gradients stand in the scope
    of the tape or of TF 1's ``gradients``, updates in that of the optimizer, everything else in a layer is forward.

    >>> tensorflow_part("StatefulPartitionedCall/gradient_tape/compile_loss/mse/Tile:Tile")
    <Part.BACKWARD: 'backward'>
    >>> tensorflow_part("adam/Mul_3:Mul"), tensorflow_part("model/dense_1/Relu:Relu"), tensorflow_part("Cast:Cast")
    (<Part.OPTIMIZER: 'optimizer'>, <Part.FORWARD: 'forward'>, None)
    """
    node, _, op = name[:_LONGEST].partition(":")
    pieces = [piece for piece in node.split("/") if not _WRAPS.fullmatch(piece)]
    scopes = pieces[:-1]
    if any(map(_GRADIENTS.fullmatch, scopes)):
        return StepPart.BACKWARD
    if any(map(_OPTIMIZERS.fullmatch, scopes)) or _APPLIES.match(op):
        return StepPart.OPTIMIZER
    if any(map(_MEASURED.fullmatch, scopes)):
        return None
    if any(map(_LOSSES.fullmatch, scopes)) or _LOSS_OPS.fullmatch(op):
        return StepPart.LOSS
    return StepPart.FORWARD if tensorflow_scope("/".join(pieces)).layer else None


_EVENT = regex(r"[\w.()\[\]/-]+:_?[A-Z]\w*$")


def is_tensorflow_op(event: str) -> bool:
    """Whether an event's name is that of an op of TensorFlow: ``node:Type``.

    >>> is_tensorflow_op("model/dense/MatMul:MatMul"), is_tensorflow_op("ExecutorState::Process")
    (True, False)
    """
    return _EVENT.match(event[:_LONGEST]) is not None and "::" not in event


_LOSS_SCALE = regex(r"(?:mixed_precision_)?loss_?scale_?optimizer(?:_\d+)?", re.IGNORECASE)
_BRANCH = regex(r"cond(?:_\d+)?|switch_pred")
_CHOOSES = regex(r"(?:Stateless)?If|_?Switch|Merge|All|LogicalAnd|_?(?:Host)?(?:Recv|Send)")


def chooses_by_loss_scale(name: str, bare: frozenset[str] = frozenset()) -> bool:
    """Whether an op of TensorFlow is of the branch by which a dynamic loss scale applies the gradients, or skips them:
    the host must know whether they are finite before it goes on. ``bare`` are branches in no scope of an optimizer's
    (:func:`bare_loss_scales`).

    >>> chooses_by_loss_scale("LossScaleOptimizer/cond:If"), chooses_by_loss_scale("LossScaleOptimizer/adam/Mul_3:Mul")
    (True, False)
    >>> chooses_by_loss_scale("All_4/_51:_HostRecv"), chooses_by_loss_scale("All_4/_51:_HostRecv", frozenset({"cond"}))
    (False, True)
    """
    node, _, op = name[:_LONGEST].partition(":")
    pieces = node.split("/")
    if any(_is_of(branch, node, op) for branch in bare):
        return not any(piece in ("then", "else") for piece in pieces)
    at = next((k for k, piece in enumerate(pieces) if _LOSS_SCALE.fullmatch(piece)), None)
    if at is None or any(piece in ("then", "else") for piece in pieces[at + 1 :]):
        return False
    return _CHOOSES.fullmatch(op) is not None or any(map(_BRANCH.fullmatch, pieces[at + 1 :]))


_FINITE = regex(r"(?P<call>(?:.*/)?)(?:ArithmeticOptimizer/)?\w*IsFinite(?:_\d+)?:IsFinite")
_UPDATES = regex(r"(?P<branch>(?P<call>(?:.*?/)?)cond(?:_\d+)?)/then/_\d+/(?P<inner>.*)/")
_ANSWER = regex(r"All(?:_\d+)?/_\d+:_(?:Host)?(?:Send|Recv)")
"""That all are finite, on its way to the host."""


def bare_loss_scales(names: Iterable[str]) -> frozenset[str]:
    """Branches that update variables in an optimizer's scope, where the same call asks whether values are finite: so
    Keras 3 scales losses, in no scope of its own (keras/src/optimizers/loss_scale_optimizer.py, seen of 3.15).

    >>> sorted(bare_loss_scales(["call/IsFinite_3:IsFinite", "call/cond/then/_28/cond/adam/Mul_6:Mul"]))
    ['call/cond']
    """
    cut = [name[:_LONGEST] for name in names if "IsFinite" in name or "/then/_" in name]
    asked = {match["call"].removesuffix("ArithmeticOptimizer/") for match in map(_FINITE.fullmatch, cut) if match}
    return frozenset(
        match["branch"]
        for match in map(_UPDATES.match, cut)
        if match and match["call"] in asked and any(map(_OPTIMIZERS.fullmatch, match["inner"].split("/")))
    )


def _is_of(branch: str, node: str, op: str) -> bool:
    """Whether a node is the branch, within it, or hands over what it chooses by."""
    call = branch[: branch.rfind("/") + 1]
    if node == branch or node.startswith(branch + "/"):
        return True
    return node.startswith(call) and _ANSWER.fullmatch(f"{node[len(call) :]}:{op}") is not None
