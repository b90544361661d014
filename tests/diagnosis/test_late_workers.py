"""Workers that cannot keep up on a machine that has no core for more of them: their own code is what can be cheaper."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.recording import run_of
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.kit.builder import TraceDrawing
from tests.support import facts_of

MS = 1_000
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def told(waits_ms: float, cores: int, workers: dict[str, object] | None = None) -> Finding | None:
    """Of steps that compute for 10 ms, and wait as long for two workers, of which a manifest says this."""
    drawing, length = TraceDrawing(), round((10 + waits_ms) * MS)
    for number in range(8):
        start = number * length
        drawing.step(number, start, length)
        drawing.annotation(LOADER, start, length - 10 * MS)
        drawing.python("<built-in method poll of select.poll object>", start, length - 10 * MS)
        drawing.host("aten::mm", start + length - 10 * MS, 10 * MS)
    machine = {"cores": cores, "machine_cores": cores, "workers": 2}
    step = {"recorded": length * 1_000, "unrecorded": length * 1_000}
    run = run_of({"machine": machine, "step_ns": step, "worker_lines": workers})
    facts = replace(facts_of(drawing.events()), run=run)
    return next((found for found in diagnose(facts).findings if found.rule == "input_bound"), None)


def test_what_they_do_is_to_be_cheaper_and_all_of_the_wait_goes_at_most() -> None:
    found = told(30, 2)
    assert found is not None
    assert (found.saving_ns_per_step, found.predicted_step_ns) == (0, 40_000_000)
    assert found.best_step_ns is not None
    assert 0 < found.best_step_ns <= 10_000_000
    assert "on the 2 cores that this process may use more of them would gain nothing" in found.fix
    assert "record once with `num_workers=0`" in found.fix
    assert "num_workers=4" not in found.fix
    assert [option.predicted_step_ns for option in found.options] == [10_000_000]


PLACES = [["train.py", 12, "augment", 900], ["torch/storage.py", 7, "_new_shared", 60], ["train.py", 3, "read", 20]]


def seen(ran: int, core_wait: int | None, waiting: int = 20) -> dict[str, object]:
    """Two workers that were looked at for a second in all; shares of it in thousandths."""
    return {
        "processes": 2, "passed_ns": 10**9, "looked_ns": 10**9, "waiting_ns": waiting * 10**6, "ran_ns": ran * 10**6,
        "core_wait_ns": None if core_wait is None else core_wait * 10**6,
        "places": [[*place, ns * 10**6] for *place, ns in PLACES],
    }  # fmt: skip


def test_workers_that_compute_are_named_by_the_line_they_are_at() -> None:
    found = told(30, 2, seen(ran=950, core_wait=20))
    assert found is not None
    assert found.title.endswith("waits for input data, which workers make in `augment`")
    first, *others = found.where
    assert (first.file, first.line, first.function) == ("train.py", 12, "augment")
    assert first.ns_per_step == 36_000_000
    assert not any(place.line == 7 for place in others)
    assert "The workers were busy 98.0 % of the time, of which in `augment` (train.py:12) 91.8 %" in found.why
    assert "waited themselves" not in found.why
    assert "91.8 % of their work is in `augment` (train.py:12)." in found.fix
    assert "num_workers=0" not in found.fix
    assert found.saving_ns_per_step == 0


def test_workers_that_wait_themselves_can_be_more_than_there_are_cores() -> None:
    found = told(30, 2, seen(ran=50, core_wait=10))
    assert found is not None
    assert "94.8 % of it they waited themselves" in found.why
    assert "num_workers=8" in found.fix
    assert 25_000_000 < (found.saving_ns_per_step or 0) <= 30_000_000


def test_workers_without_a_core_are_told_so_and_not_that_they_wait_for_files() -> None:
    found = told(30, 2, seen(ran=480, core_wait=500))
    assert found is not None
    assert "50.0 % of the time no core was free for them" in found.why
    assert "waited themselves" not in found.why


def test_of_unknown_waits_no_more_workers_are_promised_than_before() -> None:
    known, unknown = told(30, 2), told(30, 2, seen(ran=50, core_wait=None))
    assert known is not None
    assert unknown is not None
    assert unknown.saving_ns_per_step == known.saving_ns_per_step == 0


def test_workers_that_have_nothing_to_do_are_not_the_cause() -> None:
    found = told(30, 2, seen(ran=50, core_wait=10, waiting=900))
    assert found is not None
    assert "augment" not in found.title
    assert found.where[0].line != 12


@pytest.mark.parametrize(
    "change",
    [
        {"processes": 0}, {"passed_ns": "long"}, {"looked_ns": 0}, {"waiting_ns": 2 * 10**9}, {"ran_ns": -1},
        {"places": "none"}, {"places": [["train.py", 0, "f", 1], ["train.py", 1], [1, 2, 3, 4]]},
    ],
)  # fmt: skip
def test_a_manifest_that_says_nonsense_of_them_says_no_line(change: dict[str, object]) -> None:
    found = told(30, 2, seen(ran=950, core_wait=20) | change)
    assert found is not None
    assert all(place.line is None for place in found.where)


def test_with_cores_left_more_of_them_are_the_cure() -> None:
    found = told(30, 16)
    assert found is not None
    assert (found.saving_ns_per_step or 0) > 20_000_000
    assert "would gain nothing" not in found.fix


@pytest.mark.parametrize("cores", [2, 16])
def test_a_short_wait_is_none_worth_a_word(cores: int) -> None:
    assert told(0.2, cores) is None
