"""What is left of a step without a device, once most of it goes, is a range."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.left_on_host import as_range, left_by_job
from tests.diagnosis.loops import facts_with, loop, waiting_for_input
from tests.kit.builder import TraceDrawing

MS = 1_000_000


def on_host(input_us: int) -> Facts:
    """Steps of ten milliseconds on the host alone, that much of them input."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, input_us)
        drawing.host("aten::linear", start + input_us, 10_000 - input_us)

    return facts_with(loop(10_000, step))


def promised(left_ns: int | None, best_ns: int | None = None) -> Finding:
    return Finding(
        rule="input_bound",
        title="",
        why="",
        fix="",
        cost_ns_per_step=MS,
        saving_ns_per_step=MS,
        predicted_step_ns=left_ns,
        best_step_ns=best_ns,
    )


def input_of(facts: Facts) -> Finding:
    return next(found for found in diagnose(facts).findings if found.rule == "input_bound")


def test_most_of_a_hosts_step_gone_leaves_a_range():
    facts = on_host(8_000)
    found = input_of(facts)
    assert found.predicted_step_ns == pytest.approx(2 * MS, rel=0.01)
    assert found.best_step_ns == pytest.approx(840_000, rel=0.01), "half of that, less a fiftieth of what goes"


@pytest.mark.parametrize("left_ns", [None, 0, 5 * MS + 1_000, 9 * MS])
def test_less_gone_or_nothing_left_is_one_figure(left_ns: int | None):
    found = promised(left_ns)
    assert as_range(on_host(8_000), found) == found


def test_a_range_that_is_known_better_stays():
    assert as_range(on_host(8_000), promised(2 * MS, 2 * MS - 1)).best_step_ns == 2 * MS - 1


def test_where_a_device_bounds_the_step_it_is_one_figure():
    assert input_of(facts_with(waiting_for_input(10_000, 8_000))).best_step_ns is None


@pytest.mark.parametrize(
    ("left_ms", "share", "on_host", "leaves_ms"),
    [
        (4, 1.0, False, (4, None)),
        (4, 1.0, True, (4, 0.88)),
        (4, 0.75, False, (4, 3)),
        (4, 0.75, True, (4, 1.18)),
        (4, 0.25, True, (4, 1)),
        # Less than half goes: as large a share of it is the recording's as of all.
        (40, 0.75, True, (30, None)),
    ],
)
def test_what_a_job_has_left_was_recorded_too(
    left_ms: int, share: float, on_host: bool, leaves_ms: tuple[int, float | None]
):
    recorded = replace(promised(left_ms * MS), saving_ns_per_step=(60 - left_ms) * MS)
    told = left_by_job(recorded, round(60 * share) * MS, share, on_host=on_host)
    best = None if told.best_step_ns is None else round(told.best_step_ns / MS, 2)
    assert told.predicted_step_ns is not None
    assert (told.predicted_step_ns // MS, best) == leaves_ms
    assert told.saving_ns_per_step == round(60 * share) * MS - told.predicted_step_ns


def test_what_a_job_does_not_determine_stays_so():
    found = replace(promised(4 * MS), saving_ns_per_step=None)
    assert left_by_job(found, 60 * MS, 0.5, on_host=True) == found


def test_no_step_takes_nothing():
    assert as_range(on_host(8_000), promised(100_000)).best_step_ns == 5_000
