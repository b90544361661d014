"""What no diagnosis may claim, whatever the profile: bounds of physics and of arithmetic, on every real trace.

A check is a function from a ``Case`` to complaints and one line in ``CHECKS``; each has a claim below that it catches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.floors import least_ns
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import Work, kernel_roofs, op_roofs
from stepscope.analysis.summary import busy_share, mean_parts, shares
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding, Notice
from stepscope.trace import intervals as iv
from stepscope.trace.tables import I64
from stepscope.whatif.change import GONE, Change
from stepscope.whatif.predictor import Predictor
from tests.diagnosis.loops import CALL, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.traces import KINETO_TRACES
from tests.support import real_profile

ROUNDING = 0.01
"""Of a step: ops that lie across the bounds of steps, and the replay's own grain."""

FUSES = ("memory_bound_chain", "attention_unfused")
"""Rules whose cure does away with bytes that ops move one by one."""

TRACES = [
    *KINETO_TRACES,
    *(
        pytest.param(name, id=name.rpartition("/")[2].partition(".")[0], marks=(pytest.mark.real, *seldom))
        for name, *seldom in (
            ("xplane/mi300_jax_attention.xplane.pb",),
            ("xplane/mi300_jax_conv.xplane.pb",),
            ("xplane/tpu_v6e_4_chips.xplane.pb",),
            ("xplane/v100_many_processes.xplane.pb", pytest.mark.slow),
            ("timeline/tf1_run_metadata.pb",),
            ("timeline/tf1_timeline.json",),
        )
    ),
]


@dataclass(frozen=True)
class Case:
    """One profile and what is said of it."""

    facts: Facts
    diagnosis: Diagnosis

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All, told or not."""
        return (*self.diagnosis.findings, *self.diagnosis.minor)

    @property
    def step(self) -> int:
        """The mean step."""
        return self.facts.mean_step_ns or 0

    @property
    def slack(self) -> float:
        """How far a predicted step may be off."""
        replayed = self.diagnosis.replayed
        return self.step * (ROUNDING + (replayed.error if isinstance(replayed, Predictor) else 0.0)) + 1


Check = Callable[[Case], Iterator[str]]


def savings_lie_within_the_step(case: Case) -> Iterator[str]:
    """What slow steps take longer is spread over all steps, the others' mean is that of those that are usual."""
    every = round(float(case.facts.step_ns[list(case.facts.timed)].mean())) if case.facts.timed else 0
    for one in case.findings:
        step = max(case.step, every) if one.rule == "slow_steps" else case.step
        parts = [part.saving_alone_ns_per_step for part in one.fix_set]
        for saving in (one.saving_ns_per_step, one.saving_after_ns_per_step, *parts):
            if saving is not None and not 0 <= saving <= step:
                yield f"{one.id} saves {saving} of {step}"
        if one.predicted_step_ns is not None and one.predicted_step_ns < 0:
            yield f"{one.id} leaves {one.predicted_step_ns}"


def savings_in_turn_add_up_to_no_more_than_all(case: Case) -> Iterator[str]:
    """What each gains once those above it are fixed, added up, is what all of them gain."""
    gained = 0
    for one in case.diagnosis.findings:
        if one.change is None or one.saving_ns_per_step is None:
            continue
        after = one.saving_after_ns_per_step
        gained += one.saving_ns_per_step if after is None else after
        if after is not None and gained > case.step + case.slack:
            yield f"with {one.id} {gained} of {case.step} are saved"
    combined = case.diagnosis.whatif.combined_step_ns
    if combined is not None and not 0 <= combined <= case.step:
        yield f"everything fixed leaves {combined} of {case.step}"


def a_step_takes_no_less_than_what_its_streams_still_run(case: Case) -> Iterator[str]:
    replayed = case.diagnosis.replayed
    if not isinstance(replayed, Predictor):
        return
    changes = {one.id: one.change for one in case.findings if one.change is not None}
    both = Change()
    for one in case.diagnosis.findings:
        both |= one.change or Change()
    for name, change in (*changes.items(), ("all together", both)):
        left, predicted = busiest_stream(case.facts, change), case.step - replayed.saving_ns(change)
        if predicted < left - case.slack:
            yield f"{name} leaves a step of {predicted} with {left} of work on one stream"


def kernels_take_no_less_than_their_bytes_and_operations(case: Case) -> Iterator[str]:
    """In whatever format they run: the device's narrowest and fastest."""
    durations = _durations(case.facts)
    for one in case.findings:
        change = one.change
        if change is None or change.op_ns is None:
            continue
        if ((change.op_ns > durations) | (change.op_ns < GONE)).any():
            yield f"{one.id} makes ops longer"
        for work, at in _works(case.facts):
            left = change.op_ns[at + work.rows]
            least = _least(work) if one.rule not in FUSES else np.zeros(left.size)
            if (left[left != GONE] < np.floor(least[left != GONE])).any():
                yield f"{one.id} makes kernels faster than the device"


def rows_tile_the_time_and_hold_all_of_it(case: Case) -> Iterator[str]:
    for account in case.facts.accounts:
        bounds, parts = account.rows.bounds, account.parts
        if (np.diff(bounds) < 0).any() or (parts < 0).any():
            yield f"device {account.rows.device}: rows or parts below zero"
        if (parts.sum(axis=1) != np.diff(bounds)).any() or parts.sum() != bounds[-1] - bounds[0]:
            yield f"device {account.rows.device}: parts are not the rows' time"
    for activity, account in case.facts.devices:
        bounds = account.rows.bounds
        if activity.start.min() < bounds[0] or activity.end.max() > bounds[-1]:
            yield f"device {activity.device}: work outside of its rows"


def pieces_of_idle_time_are_of_one_row_each(case: Case) -> Iterator[str]:
    for account in case.facts.accounts:
        if account.idle is not None:
            pieces, inner = account.idle.pieces, account.rows.bounds[1:-1]
            first = np.searchsorted(inner, pieces.start, "right")
            if (first != np.searchsorted(inner, pieces.end, "left")).any():
                yield f"device {account.rows.device}: a piece lies in two rows"


def work_not_recorded_is_neither_idle_nor_recorded(case: Case) -> Iterator[str]:
    """Time in which a device works on what the profile does not hold is that and nothing else."""
    for activity, account in case.facts.devices:
        assert account.idle is not None
        pieces, code = account.idle.pieces, Category.UNRECORDED.code
        for what, spans in (("idle", (pieces.start, pieces.end)), ("busy", activity.busy)):
            both = iv.measure(iv.intersect(iv.union(*spans), activity.unrecorded))
            if both:
                yield f"device {activity.device}: {both} ns are work that was not recorded, and {what}"
        if int(account.parts[:, code].sum()) != iv.measure(activity.unrecorded):
            yield f"device {activity.device}: work that was not recorded is not counted as that"


def no_share_is_above_one(case: Case) -> Iterator[str]:
    known = [busy_share(case.facts, collectives=flag) for flag in (True, False)]
    booked = shares(mean_parts(case.facts))
    for share in (*(one for one in known if one is not None), *booked.values(), sum(booked.values())):
        if not 0 <= share <= 1 + 1e-9:
            yield f"a share of {share}"
    for work in case.facts.work:
        for roof in (*op_roofs(work), *kernel_roofs(work)):
            if not roof.roof.doubt and (roof.roof.share or 0) > 1:
                yield f"{roof.name} at {roof.roof.share} of its roof"
    told = [case.diagnosis.verdict, *(n.text for n in case.diagnosis.notices), *(f.why for f in case.findings)]
    for text in told:
        for number in re.findall(r"(\d[\d,]*(?:\.\d+)?) %", text):
            if float(number.replace(",", "")) > 100:
                yield f"{number} % in: {text}"


CHECKS: tuple[Check, ...] = (
    savings_lie_within_the_step,
    savings_in_turn_add_up_to_no_more_than_all,
    a_step_takes_no_less_than_what_its_streams_still_run,
    kernels_take_no_less_than_their_bytes_and_operations,
    rows_tile_the_time_and_hold_all_of_it,
    pieces_of_idle_time_are_of_one_row_each,
    work_not_recorded_is_neither_idle_nor_recorded,
    no_share_is_above_one,
)


@pytest.mark.parametrize("name", TRACES)
def test_nothing_impossible_is_claimed(name: str):
    profile = real_profile(name)
    case = Case(profile.facts, profile.diagnosis)
    assert {check.__name__: complaints for check in CHECKS if (complaints := list(check(case)))} == {}


# --- what the checks compute with ------------------------------------------------------------------------------


def busiest_stream(facts: Facts, change: Change) -> int:
    """Work per used step of the stream that has most of it left. Ops that overlap on one stream tell nothing."""
    ns = _durations(facts) if change.op_ns is None else np.maximum(change.op_ns, 0)
    most = at = 0
    for activity, account in facts.devices:
        mine = ns[at : at + len(activity)]
        at += len(activity)
        if account.rows.device in facts.unused:
            continue
        row = np.searchsorted(account.rows.bounds, activity.start, "right") - 1
        used = np.isin(row, facts.used_rows(account))
        for stream in np.unique(activity.stream[used]).tolist():
            ops = np.flatnonzero(used & (activity.stream == stream))
            start, end = activity.start[ops], activity.end[ops]
            if iv.measure(iv.union(start, end)) == (end - start).sum():
                most = max(most, facts.per_step(int(mine[ops].sum())))
    return most


def _durations(facts: Facts) -> I64:
    return np.concatenate([a.end - a.start for a in facts.activities]) if facts.activities else np.empty(0, np.int64)


def _works(facts: Facts) -> Iterator[tuple[Work, int]]:
    """Each device's work, and where its ops begin among those of all."""
    at = 0
    for work in facts.work:
        yield work, at
        at += len(work.activity)


def _least(work: Work) -> I64:
    """The least time of each row in whichever format the device is fastest."""
    peaks = device_peaks(work.trace, work.activity.device)
    formats = [None, *(peaks.matrix_formats if peaks else ())]
    return np.minimum.reduce([least_ns(work, None if one is None else str(one)) for one in formats]).astype(np.int64)


# --- each check catches what it is for -------------------------------------------------------------------------

A100 = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]}


@pytest.fixture(scope="module")
def plain() -> Case:
    """Steps of one product of 17 GFLOP in fp32, which the device's other units would do in a fraction."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        dims = {"Input Dims": [[2048, 2048], [2048, 2048]], "Input type": ["float", "float"]}
        drawing.host("aten::mm", start, CALL, **dims)
        drawing.kernel(drawing.launch(start, CALL), "ampere_sgemm_128x128_nn", start + CALL, 1_900)

    facts = facts_with(loop(CALL + 1_900, step), **A100)
    return Case(facts, diagnose(facts))


def test_a_sound_diagnosis_passes(plain: Case):
    assert plain.diagnosis.findings
    assert [complaint for check in CHECKS for complaint in check(plain)] == []


def claiming(case: Case, **claims: object) -> Case:
    """The same with a finding that claims something else."""
    first, *rest = case.diagnosis.findings
    return replace(case, diagnosis=replace(case.diagnosis, findings=(replace(first, **claims), *rest)))  # type: ignore[arg-type]


def test_impossible_claims_are_caught(plain: Case):
    step = plain.step
    assert list(savings_lie_within_the_step(claiming(plain, saving_ns_per_step=step + 1)))
    assert list(savings_lie_within_the_step(claiming(plain, saving_after_ns_per_step=-1)))
    twice = claiming(plain, saving_ns_per_step=step, saving_after_ns_per_step=step * 2)
    assert list(savings_in_turn_add_up_to_no_more_than_all(twice))
    nothing = np.zeros_like(_durations(plain.facts))
    instant = claiming(plain, change=Change(op_ns=nothing))
    assert list(kernels_take_no_less_than_their_bytes_and_operations(instant))
    longer = claiming(plain, change=Change(op_ns=_durations(plain.facts) + 1))
    assert list(kernels_take_no_less_than_their_bytes_and_operations(longer))
    above = replace(plain, diagnosis=replace(plain.diagnosis, notices=(Notice("x", "For 148 % of step time"),)))
    assert list(no_share_is_above_one(above))


def test_a_prediction_below_the_work_that_is_left_is_caught(plain: Case, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Predictor, "saving_ns", lambda self, change: plain.step)
    assert list(a_step_takes_no_less_than_what_its_streams_still_run(plain))


def test_time_that_is_booked_nowhere_is_caught(plain: Case):
    (account,) = plain.facts.accounts
    parts = account.parts.copy()
    parts[1, CATEGORIES[0].code] -= 1
    broken = replace(plain.facts, accounts=[replace(account, parts=parts)])
    assert list(rows_tile_the_time_and_hold_all_of_it(replace(plain, facts=broken)))


def test_work_that_is_not_recorded_and_idle_at_once_is_caught(plain: Case):
    (activity,), (account,) = plain.facts.activities, plain.facts.accounts
    assert account.idle is not None
    idle = account.idle.pieces.start[:1], account.idle.pieces.end[:1]
    facts = replace(plain.facts, activities=[replace(activity, unrecorded=idle)])
    complaints = list(work_not_recorded_is_neither_idle_nor_recorded(replace(plain, facts=facts)))
    assert any("and idle" in complaint for complaint in complaints)
