"""What every cure says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stepscope.capture.cures import BY_NAME, CURES, parsed
from stepscope.capture.cures.cure import Cure
from stepscope.cluster.rules import JOB_RULES
from stepscope.diagnosis.rules import RULES, RuleFile
from stepscope.errors import UsageError
from stepscope.report.proof import of_finding
from stepscope.report.trials import tail
from stepscope.trials.arms import Arm, chosen, named, refined
from stepscope.trials.document import WHY_NOT, predicted, without_cure


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


@pytest.mark.parametrize("rule", RULES, ids=lambda file: file.RULE.id)
def test_a_rule_names_the_frameworks_whose_cures_answer_it(rule: RuleFile) -> None:
    answering = {
        each for cure in CURES if rule.RULE.id in cure.answers for each in EVERY if cure.framework in (each, None)
    }
    assert set(rule.RULE.tried_for) == answering


def diagnosis(framework: str, *findings: dict[str, Any], devices: Sequence[Any] = ()) -> dict[str, Any]:
    return {"profile": {"framework": framework, "devices": list(devices)}, "findings": list(findings)}


EVERY = ("PyTorch", "JAX", "TensorFlow")


def finding(rule: str, *workers: int) -> dict[str, Any]:
    options = [{"title": "x", "predicted_step_ns": 10 * n, "best_step_ns": n, "workers": n} for n in workers]
    promise = {"predicted_step_ns": 5, "best_step_ns": None, "options": options}
    return {"id": f"{rule}.1", "rule": rule, "where": [], **promise}


def test_what_the_findings_call_for_is_tried_and_the_number_that_a_finding_names_too() -> None:
    arms = chosen(diagnosis("PyTorch", finding("input_bound", 7)), 2)
    names = [arm.name for arm in arms]
    assert names[:4] == ["workers=0", "workers=1", "workers=2", "workers=7"]
    assert "pinned-memory" not in names  # For GPUs.
    assert names[-3:] == ["threads=1", "threads=2", "compile"]  # Of every job on a CPU.
    assert chosen(diagnosis("PyTorch", devices=[{}]), 2) == []


def test_cures_are_those_of_the_framework_and_of_keras_where_that_makes_the_steps() -> None:
    names = [arm.name for arm in chosen(diagnosis("JAX", finding("launch_bound")), 2)]
    assert names == ["jax-jit", "jax-donation"]
    one, other = (
        {arm.name for arm in chosen(diagnosis("TensorFlow", finding("launch_bound")), 2, of_keras=of_keras)}
        for of_keras in (False, True)
    )
    assert other - one == {"keras-steps-per-execution=4", "keras-steps-per-execution=16", "keras-jit"}
    assert "tf-jit" in one
    on_jax = [arm.name for arm in chosen(diagnosis("JAX", finding("running_eagerly")), 2, of_keras=True)]
    assert {"jax-jit", "keras-jit", "keras-steps-per-execution=4"} <= set(on_jax)


def test_numbers_that_go_along_with_others_are_tried_again_at_the_best_of_those() -> None:
    answers = (finding("input_bound"),)
    tried = [Arm((spec,), answers) for spec in ("workers=0", "workers=2", "prefetch=4", "prefetch=8", "compile")]
    ((base, further),) = refined([tried[1], tried[4]], tried)
    assert (base.name, [arm.name for arm in further]) == ("workers=2", ["workers=2+prefetch=4", "workers=2+prefetch=8"])
    assert refined([tried[0]], tried) == []  # Without workers nobody makes batches ahead.
    assert refined([tried[1]], tried[:2]) == []  # Nobody asked for it.
    assert {cure.along for cure in CURES} <= {None, *BY_NAME}


@pytest.mark.parametrize("framework", EVERY)
def test_garbage_is_collected_between_steps_whatever_the_framework(framework: str) -> None:
    assert "garbage" in [arm.name for arm in chosen(diagnosis(framework, finding("between_steps")), 2)]


@pytest.mark.parametrize(
    ("framework", "rule", "cures"),
    [
        ("PyTorch", "worker_starts", " --cure workers --cure persistent-workers"),
        ("JAX", "running_eagerly", " --cure jax-jit"),
        ("TensorFlow", "steps_cut", None),
    ],
)
def test_a_finding_is_proved_by_the_cures_of_its_framework(framework: str, rule: str, cures: str | None) -> None:
    one = finding(rule) | {"provable": cures is not None}
    expected = None if cures is None else f"stepscope try{cures} train.py 'a b'"
    assert of_finding(one, diagnosis(framework), ["train.py", "a b"]) == expected


def test_a_finding_is_without_cure_where_none_of_its_job_answers_it_whatever_is_tried() -> None:
    two = [finding(rule) | {"title": rule} for rule in ("hot_python", "keras_slow")]
    assert [each["title"] for each in without_cure(diagnosis("JAX", *two), of_keras=False)] == ["keras_slow"]
    (told,) = without_cure(diagnosis("PyTorch", finding("callback_time") | {"title": "x"}), of_keras=False)
    assert told["why"].startswith("Whether the job needs the value at once")
    reads = finding("python_overhead") | {"title": "x", "where": [{"op": None}, {"op": "aten::item"}]}
    (told,) = without_cure(diagnosis("PyTorch", reads), of_keras=False)
    assert told["why"].startswith("Of what it advises, reading numbers less often: whether the job needs the value")
    assert not without_cure(diagnosis("PyTorch", reads | {"where": [{"op": "aten::mm"}]}), of_keras=False)
    assert set(WHY_NOT) <= {file.RULE.id for file in RULES}
    assert [each["title"] for each in without_cure(diagnosis("TensorFlow", *two), of_keras=False)] == [
        "hot_python", "keras_slow",
    ]  # fmt: skip


def test_what_only_cures_of_keras_answer_is_tried_without_names() -> None:
    one = finding("tensor_cores_unused") | {"provable": True}
    assert of_finding(one, diagnosis("TensorFlow", devices=[{}]), None) == "stepscope try COMMAND"


@pytest.mark.parametrize(
    ("keep", "by_hand", "told"),
    [
        (["compile"], ["x"], ["Keep compile: the change below has that effect."]),
        (["--batch-size=32"], [], ["Keep --batch-size=32."]),
        (
            ["compile", "--batch-size=32"],
            ["x"],
            [
                "Keep compile and --batch-size=32.",
                "--batch-size=32 was measured by itself: the change below is that of the others.",
            ],
        ),
        (
            ["compile", "--batch-size=32"],
            [],
            ["Keep compile and --batch-size=32.", "--batch-size=32 was measured by itself."],
        ),
    ],
)
def test_the_change_has_the_effect_of_what_is_in_it(keep: list[str], by_hand: list[str], told: list[str]) -> None:
    rows = [{"name": name, "verdict": "helps", "argument": {} if name.startswith("--") else None} for name in keep]
    document = {
        "keep": keep,
        "patch": {"diff": None, "by_hand": by_hand},
        "trials": rows,
        "together": None,
        "findings_without_cure": [],
        "ended_early": None,
    }
    assert list(tail(document)) == told


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (["refused"], "There was nothing to try."),
        (["refused", "not_run"], "No cure was tried to the end."),
        (["hurts", "not_run"], "Nothing that was tried helps."),
    ],
)
def test_what_was_not_run_was_there_to_try(verdicts: list[str], told: str) -> None:
    document = {
        "keep": [],
        "baseline": {"runs": 1},
        "trials": [{"verdict": verdict} for verdict in verdicts],
        "findings_without_cure": [],
        "ended_early": None,
    }
    assert list(tail(document)) == [told]


def test_a_promise_is_that_of_its_number() -> None:
    arms = {arm.name: arm for arm in chosen(diagnosis("PyTorch", finding("input_bound", 7)), 2)}
    assert predicted(arms["workers=7"]) == {"finding": "input_bound.1", "step_ns": 70, "best_step_ns": 7}
    assert predicted(arms["workers=2"]) is None
    assert predicted(arms["prefetch=4"]) is None
    (arm,) = named(["persistent-workers"], [finding("worker_starts")], 2)
    assert predicted(arm) == {"finding": "worker_starts.1", "step_ns": 5, "best_step_ns": None}


def test_a_cure_that_is_not_known_is_told_with_where_to_look() -> None:
    with pytest.raises(UsageError, match="--list"):
        named(["nothing"], [], 2)
