"""Sentences that depend on how much is known."""

from __future__ import annotations

import pytest

from stepscope.diagnosis.limits import PRECISION_KNOWN, PRECISION_UNKNOWN
from stepscope.report import finding_phrases, phrases


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (None, "100 % by time, 40.0 % by count"),
        (PRECISION_KNOWN, "100 % by time, 40.0 % by count"),
        (PRECISION_KNOWN - 0.01, "100 % of the 94.0 % of kernel time whose precision is known"),
        (0.12, "100 % of the 12.0 % of kernel time whose precision is known"),
        (PRECISION_UNKNOWN, "100 % of the 5.0 % of kernel time whose precision is known"),
        (PRECISION_UNKNOWN - 0.01, "not determined: the precision of 96.0 % of kernel time is not known"),
    ],
)
def test_a_share_of_the_known_is_not_called_one_of_all(known: float | None, said: str):
    assert phrases.low_precision({"by_count": 0.4, "by_time": 1.0}, known).text == said


def test_where_no_precision_is_known_it_is_not_recorded():
    assert phrases.low_precision({"by_count": None, "by_time": None}, 0.0).text == "not recorded"


@pytest.mark.parametrize(
    ("then", "said"),
    [(None, ""), (63, ""), (60, ""), (1, "; once the above is fixed 1.00 ms"),
     (90, "; once the above is fixed 90.0 ms"), (0, "; once the above is fixed nothing more")],
)  # fmt: skip
def test_a_saving_that_is_anothers_too_says_so(then: int | None, said: str):
    ms = 1_000_000
    finding = {
        "saving_ns_per_step": 63 * ms,
        "saving_after_ns_per_step": None if then is None else then * ms,
        "predicted_step_ns": 24 * ms,
    }
    text = finding_phrases.saving(finding, {"step_time_ns": {"mean": 87 * ms, "median": 87 * ms}})
    assert text == f"saves 63.0 ms of 87.0 ms per step, leaving 24.0 ms{said}"


def test_a_range_whose_ends_are_alike_is_one_figure():
    us = 1_000
    finding = {"saving_ns_per_step": 812 * us, "predicted_step_ns": 55_840 * us, "best_step_ns": 55_810 * us}
    summary = {"step_time_ns": {"mean": 56_652 * us, "median": 56_652 * us}}
    assert finding_phrases.saving(finding, summary) == "saves 812 µs to 842 µs of 56.7 ms per step, leaving 55.8 ms"


def test_a_range_that_begins_with_nothing_says_up_to_what():
    ms = 1_000_000
    finding = {"saving_ns_per_step": 0, "predicted_step_ns": 6 * ms, "best_step_ns": 2 * ms}
    summary = {"step_time_ns": {"mean": 6 * ms, "median": 6 * ms}}
    assert (
        finding_phrases.saving(finding, summary)
        == "saves up to 4.00 ms of 6.00 ms per step, leaving 2.00 ms to 6.00 ms"
    )


@pytest.mark.parametrize(
    ("steps", "predicted", "said"),
    [(1, 24, "saves 63.0 ms of 87.0 ms in this recording, leaving 24.0 ms"),
     (6, 24, "saves 63.0 ms of 87.0 ms per step on average over this recording, leaving 24.0 ms"),
     (6, 87, "saves 63.0 ms per step on average over this recording, leaving the usual 87.0 ms")],
)  # fmt: skip
def test_what_was_seen_once_saves_nothing_of_each_step_to_come(steps: int, predicted: int, said: str):
    ms = 1_000_000
    finding = {"seen_once": True, "saving_ns_per_step": 63 * ms, "predicted_step_ns": predicted * ms}
    summary = {"step_time_ns": {"mean": 87 * ms, "median": 87 * ms}, "steps_used": steps, "steps_slow": 0}
    assert finding_phrases.saving(finding, summary) == said


@pytest.mark.parametrize(
    ("alone", "said"),
    [(0, "saves 62.0 ms of 87.0 ms per step once the above is fixed; by itself saves nothing"),
     (2, "saves 62.0 ms of 87.0 ms per step once the above is fixed; by itself saves 2.00 ms per step")],
)  # fmt: skip
def test_what_waits_for_other_fixes_says_so_first(alone: int, said: str):
    ms = 1_000_000
    finding = {"saving_ns_per_step": alone * ms, "saving_after_ns_per_step": 62 * ms, "predicted_step_ns": 85 * ms}
    assert finding_phrases.saving(finding, {"step_time_ns": {"mean": 87 * ms, "median": 87 * ms}}) == said


@pytest.mark.parametrize("title", ["Loads code (seen once)", "The device waits for launches"])
def test_a_profile_without_steps_has_nothing_per_step(title: str):
    ms = 1_000_000
    finding = {"title": title, "saving_ns_per_step": 63 * ms, "predicted_step_ns": 24 * ms}
    summary = {"step_time_ns": {"mean": 87 * ms, "median": 87 * ms}, "steps_used": 1, "steps_slow": 0,
               "step_source": "whole profile"}  # fmt: skip
    assert finding_phrases.saving(finding, summary) == "saves 63.0 ms of 87.0 ms in this recording, leaving 24.0 ms"
    unknown = {**finding, "saving_ns_per_step": None, "cost_ns_per_step": 5 * ms, "not_determined": None}
    assert finding_phrases.saving(unknown, summary) == "costs 5.00 ms in this recording, saving not known"


@pytest.mark.parametrize(
    ("text", "count", "says", "said"),
    [
        ("A name is not UTF-8.", 3, False, "A name is not UTF-8. (3×)"),
        ("A name is not UTF-8.", 1, False, "A name is not UTF-8."),
        ("126 of the job's 128 ranks have no profile here: 2-127.", 126, True, ""),
        ("Of 8 devices /device:TPU:3 is off.", 3, False, "Of 8 devices /device:TPU:3 is off. (3×)"),
    ],
)
def test_a_count_that_a_notice_says_is_not_said_again(text: str, count: int, says: bool, said: str):
    assert phrases.notice({"text": text, "count": count, "says_count": says}) == (said or text)


def test_the_order_of_work_names_findings_by_the_numbers_of_the_list():
    known = {"not_determined": None, "cost_ns_per_step": 1}
    findings = [{"id": name, "title": name.upper(), **known} for name in ("a", "b", "c")]
    said = finding_phrases.plan({"findings": findings, "plan": ["c", "a", "b"]})
    assert said.endswith("after each: 3) C; 1) A; 2) B.")
