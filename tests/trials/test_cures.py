"""What every cure says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.capture.cures import BY_NAME, CURES, parsed
from stepscope.capture.cures.cure import Cure
from stepscope.cluster.rules import JOB_RULES
from stepscope.diagnosis.rules import RULES
from stepscope.errors import UsageError
from stepscope.trials.arms import chosen, has_cures, named
from stepscope.trials.document import predicted


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: cure.name)
def test_a_cure_answers_rules_that_there_are_and_says_all_of_it(cure: Cure) -> None:
    ids = {rule.RULE.id for rule in (*RULES, *JOB_RULES)}
    assert set(cure.answers) <= ids
    assert set(cure.promised) <= set(cure.answers)
    for text in (cure.title, cure.sets, cure.may_break, cure.undone):
        assert text
        assert not text.endswith(".")
    value = cure.values(4)[0] if cure.values else None
    assert cure.patch(value)
    assert (cure.into is None) == (cure.module is None)
    assert cure.into is not None or cure.environment is not None


def test_names_are_different() -> None:
    assert len(BY_NAME) == len(CURES)


def test_numbers_are_read_and_checked() -> None:
    assert parsed("workers=2") == (BY_NAME["workers"], 2)
    assert parsed("compile") == (BY_NAME["compile"], None)
    for wrong in ("nothing", "compile=2", "workers=two", "workers=-1"):
        with pytest.raises(ValueError):
            parsed(wrong)


def test_workers_that_are_tried_fit_the_cores() -> None:
    values = BY_NAME["workers"].values
    assert values is not None
    assert [values(cores) for cores in (1, 2, 6, 16)] == [[0, 1], [0, 1, 2], [0, 1, 2, 4, 6], [0, 1, 2, 4, 8, 16]]


def finding(rule: str, *workers: int) -> dict[str, Any]:
    options = [{"title": "x", "predicted_step_ns": 10 * n, "best_step_ns": n, "workers": n} for n in workers]
    return {"id": f"{rule}.1", "rule": rule, "predicted_step_ns": 5, "best_step_ns": None, "options": options}


def test_what_the_findings_call_for_is_tried_and_the_number_that_a_finding_names_too() -> None:
    arms = chosen([finding("input_bound", 7)], 2, has_device=False)
    names = [arm.name for arm in arms]
    assert names[:4] == ["workers=0", "workers=1", "workers=2", "workers=7"]
    assert "pinned-memory" not in names  # For GPUs.
    assert names[-3:] == ["threads=1", "threads=2", "compile"]  # Of every job on a CPU.
    assert chosen([], 2, has_device=True) == []


def test_a_promise_is_that_of_its_number() -> None:
    arms = {arm.name: arm for arm in chosen([finding("input_bound", 7)], 2, has_device=False)}
    assert predicted(arms["workers=7"]) == {"finding": "input_bound.1", "step_ns": 70, "best_step_ns": 7}
    assert predicted(arms["workers=2"]) is None
    assert predicted(arms["prefetch=4"]) is None
    (arm,) = named(["persistent-workers"], [finding("worker_starts")], 2)
    assert predicted(arm) == {"finding": "worker_starts.1", "step_ns": 5, "best_step_ns": None}


def test_a_cure_that_is_not_known_is_told_with_where_to_look() -> None:
    with pytest.raises(UsageError, match="--list"):
        named(["nothing"], [], 2)


@pytest.mark.parametrize(
    ("framework", "rule", "devices", "is_so"),
    [
        ("PyTorch", "input_bound", [], True),
        ("JAX", "input_bound", [], False),
        ("PyTorch", "exposed_copy", [], False),
        ("PyTorch", "exposed_copy", [{}], True),
        ("PyTorch", "hot_python", [], True),
        ("PyTorch", "loss_scaling", [], False),
    ],
)
def test_whether_something_can_be_tried_of_a_diagnosis(
    framework: str, rule: str, devices: list[Any], is_so: bool
) -> None:
    profile = {"framework": framework, "devices": devices}
    assert has_cures({"profile": profile, "findings": [finding(rule)]}) is is_so
