"""Device time by phase of the training step, from where each op was launched."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import partial

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.names.remembered import remembered
from stepscope.names.scopes import bare_loss_scales, chooses_by_loss_scale, is_tensorflow_op, tensorflow_part
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped, used_codes
from stepscope.trace.forest import inherit
from stepscope.trace.shared import shared
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, FlowKind, Kind
from stepscope.trace.trace import Trace


class Phase(StrEnum):
    """Phases of a step, in the order in which they win where streams overlap (communication only where exposed)."""

    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    COMMUNICATION = "communication"
    UNKNOWN = "unknown"


PHASES = tuple(Phase)

# Patterns for the names that enclose a launch: annotations, modules, ops and Python frames.
_NAMES = (
    (
        Phase.OPTIMIZER,
        regex(r"^Optimizer\.(step|zero_grad)#|(^|\W)optimizer(\W|$)|optim/\w+\.py\(\d+\): (step|_\w*)", re.IGNORECASE),
    ),
    (
        Phase.BACKWARD,
        regex(r"^autograd::engine::|Backward\d*$|(^|\W)backward(\W|$)|_tensor\.py\(\d+\): backward", re.IGNORECASE),
    ),
    (Phase.LOSS, regex(r"loss\b|cross_entropy|nll_loss|(^|\W)criterion", re.IGNORECASE)),
    (Phase.FORWARD, regex(r"(^|\W)forward(\W|$)|^nn\.Module: ", re.IGNORECASE)),
)


def device_phases(trace: Trace, activity: DeviceActivity) -> U8:
    """The phase (index in ``PHASES``) of each device op.

    Evidence, strongest first: collectives are communication; the scope of the op in TensorFlow's graph; the op's launch
    lies in something named an optimizer step, backward or autograd range, loss or forward; it lies in an op from which
    a forward-backward arrow starts or whose sequence number a backward op repeats (forward). Anything else is unknown.
    """
    unknown, of_slice = phase_code(Phase.UNKNOWN), slice_phases(trace)
    own, known = of_slice[activity.slice], activity.call >= 0
    phases = np.where(own != unknown, own, np.where(known, of_slice[activity.call], unknown)).astype(np.uint8)
    phases[activity.category == Category.COLLECTIVE.code] = phase_code(Phase.COMMUNICATION)
    return phases


def phase_code(phase: Phase) -> int:
    """The place of a phase in ``PHASES``."""
    return PHASES.index(phase)


def phase_time(activity: DeviceActivity, phases: U8, bounds: tuple[I64, I64]) -> dict[Phase, int]:
    """Busy time of a device by phase inside windows ``(starts, ends)``, each nanosecond once."""
    start, end, codes = iv.sweep(activity.start, activity.end, phases, len(PHASES))
    return {
        phase: int(iv.covered_between((start[codes == code], end[codes == code]), *bounds).sum())
        for code, phase in enumerate(PHASES)
    }


@shared
def slice_phases(trace: Trace) -> U8:
    """Per slice, the phase its own name or the innermost enclosing name says."""
    slices = trace.slices
    by_name = np.array([_phase_of_name(text) for text in trace.strings], np.int32)
    named = among(slices.kind, (Kind.HOST_OP, Kind.ANNOTATION, Kind.STEP, Kind.PYTHON_FRAME, Kind.MODULE))
    phases = np.where(named, by_name[slices.name], -1).astype(np.int32)
    if trace.info.framework == "TensorFlow":
        _add_scopes(trace, phases)
    flows = trace.flows
    forward = flows.source[flows.kind == FlowKind.FORWARD_BACKWARD]
    phases[forward[phases[forward] < 0]] = phase_code(Phase.FORWARD)
    phases = inherit(phases, slices.parent)
    forward = _differentiated(trace, phases)
    if forward.size:
        phases[forward] = phase_code(Phase.FORWARD)
        phases = inherit(phases, slices.parent)
    return np.where(phases < 0, phase_code(Phase.UNKNOWN), phases).astype(np.uint8)


def _add_scopes(trace: Trace, phases: I32) -> None:
    """What the scopes of TensorFlow's ops say, in place of words in their names."""
    slices, nodes, compiled = trace.slices, trace.nodes, trace.xla_ops
    ops = np.flatnonzero(mapped(slices.name, trace.strings, is_tensorflow_op, np.bool_))
    for rows, codes in ((ops, slices.name[ops]), (nodes.slice, nodes.node), (compiled.slice, compiled.scope)):
        phases[rows] = mapped(codes, trace.strings, _one_more_than_part, np.int32) - 1


def loss_scale_branch(trace: Trace) -> Bools:
    """Which slices are of the branch by which TensorFlow's dynamic loss scale applies gradients or skips them."""
    if trace.info.framework != "TensorFlow":
        return np.zeros(len(trace.slices), np.bool_)
    compiled, strings = trace.xla_ops, trace.strings
    codes = np.union1d(*(used_codes(codes, len(strings)) for codes in (trace.slices.name, compiled.scope)))
    chooses = partial(chooses_by_loss_scale, bare=bare_loss_scales(strings[code] for code in codes.tolist()))
    chosen = mapped(trace.slices.name, strings, chooses, np.bool_)
    chosen[compiled.slice] |= mapped(compiled.scope, strings, chooses, np.bool_)
    return chosen


def _one_more_than_part(name: str) -> int:
    """One more than the phase's place, 0 for none."""
    part = tensorflow_part(name)
    return 0 if part is None else phase_code(Phase(part.value)) + 1


def _differentiated(trace: Trace, phases: I32) -> I32:
    """Ops of no known phase whose autograd sequence number a backward op carries: old profiles draw no arrows."""
    ops = trace.host_ops
    phase = phases[ops.slice]
    backward = ops.sequence[(phase == phase_code(Phase.BACKWARD)) & (ops.sequence != NULL)]
    return ops.slice[(phase < 0) & among(ops.sequence, backward)]


@remembered
def _phase_of_name(name: str) -> int:
    return next((phase_code(phase) for phase, pattern in _NAMES if pattern.search(name)), -1)
