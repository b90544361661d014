"""Where a program passes data through a model, and where it learns: by what no other code does."""

from __future__ import annotations

import numpy as np

from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import is_outermost
from stepscope.trace.tables import Bools, FlowKind, Kind
from stepscope.trace.trace import Trace

_TEACHES = regex(
    r"^autograd::engine::|^Optimizer\.step#|(?:^|/)torch/_tensor\.py\(\d+\): backward$"
    r"|(?:^|/)torch/autograd/__init__\.py\(\d+\): (?:backward|grad)$"
)
_PASSES = regex(
    r"(?:^|/)torch/nn/modules/module\.py\(\d+\): _(?:wrapped_)?call_impl$|: forward$|^\W*(?:\w+\.)?forward\b"
)


def teaches(trace: Trace) -> Bools:
    """Slices of a backward pass, of an optimizer's step, and ops of a forward pass that a backward one follows."""
    teaching = np.asarray(mapped(trace.slices.name, trace.strings, _is_teaching, np.bool_))
    flows = trace.flows
    teaching[flows.source[flows.kind == FlowKind.FORWARD_BACKWARD]] = True
    return teaching


def passes(trace: Trace) -> Bools:
    """Slices in which a model is called, to learn or not: its modules, and ops that a backward pass follows."""
    is_pass = np.asarray(mapped(trace.slices.name, trace.strings, _is_pass, np.bool_))
    is_pass &= among(trace.slices.kind, (Kind.PYTHON_FRAME, Kind.ANNOTATION))
    is_pass |= trace.slices.kind == Kind.MODULE
    flows = trace.flows
    is_pass[flows.source[flows.kind == FlowKind.FORWARD_BACKWARD]] = True
    return is_pass


def own_ops(trace: Trace) -> Bools:
    """Ops that the program calls itself: no other op is around them."""
    ops = trace.slices.kind == Kind.HOST_OP
    return is_outermost(ops, trace.slices.parent)


def ops_share(trace: Trace, spans: iv.Intervals) -> float:
    """The share of some time in which ops run."""
    ops = iv.of(trace.slices, np.flatnonzero(own_ops(trace)))
    return iv.measure(iv.intersect(spans, ops)) / max(iv.measure(spans), 1)


def _is_teaching(name: str) -> bool:
    return _TEACHES.search(name[:2_048].replace("\\", "/")) is not None


def _is_pass(name: str) -> bool:
    return _PASSES.search(name[:2_048].replace("\\", "/")) is not None
