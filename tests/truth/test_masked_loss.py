"""Three waits in one loss, from the first profile: listed as one set, with what one, two and all of them gain.

The run is simulated (no GPU is needed) and its four variants are simulated too, so what a fix gains is known.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.report import markdown, terminal
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor, predictor
from tests.kit.masked_loss import PIXELS, SCRIPT, VARIANTS, MaskedLoss, profile
from tests.kit.traces import REPOSITORY
from tests.support import trace_of

FUNCTIONS = ["uncertainty_selected", "weights_of_present", "cross_entropy_selected"]


@pytest.fixture(scope="module")
def steps() -> dict[str, float]:
    """Mean step of each variant, simulated."""
    return {name: MaskedLoss(waits).run()[1].mean_step_ns() for name, waits in VARIANTS.items()}


@pytest.fixture(scope="module")
def before() -> tuple[Facts, Diagnosis]:
    facts = analyse(trace_of(MaskedLoss(VARIANTS["before"]).run()[0]))
    return facts, diagnose(facts)


def only(diagnosis: Diagnosis) -> Finding:
    """The waits; what is told beside them is the Python code behind them, which the fix hides."""
    finding, *rest = diagnosis.findings
    assert all(one.rule == "between_steps" and one.saving_after_ns_per_step == 0 for one in rest)
    return finding


def test_all_three_are_one_set_with_their_lines_and_what_to_write_instead(before):
    finding = only(before[1])
    assert finding.rule == "sync_bound"
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    assert [part.where.function for part in finding.fix_set] == FUNCTIONS
    for part in finding.fix_set:
        assert part.where.file == "train.py"
        assert lines[part.where.line - 1].startswith(f"def {part.where.function}(")
    nonzero, unique, mask = (part.fix for part in finding.fix_set)
    assert "torch.where(cond, a, b)" in nonzero
    assert "torch.sort" in unique
    assert "scatter_add_" in unique
    assert "ignore_index" in mask
    assert all("may then pay for itself" in part.fix for part in finding.fix_set)


def test_the_remedy_says_which_op_each_line_is_for(before):
    lines = only(before[1]).fix.splitlines()
    assert [line.split("`")[1] for line in lines[:3]] == ["aten::nonzero", "aten::_unique2", "aten::index"]
    for line, word in zip(lines[:4], ("torch.where(", "scatter_add_", "ignore_index", "pay for itself"), strict=True):
        assert word in line


@pytest.mark.parametrize(("fixed", "variant"), [(1, "one"), (2, "two"), (3, "after")])
def test_what_fixing_some_gains_is_what_the_fixed_run_does(before, steps, fixed: int, variant: str):
    facts, diagnosis = before
    replayed = predictor(facts)
    assert isinstance(replayed, Predictor)
    change = Change()
    for part in only(diagnosis).fix_set[:fixed]:
        change |= part.change
    gained = steps["before"] - steps[variant]
    assert replayed.saving_ns(change) == pytest.approx(gained, rel=0.10)
    assert steps["before"] - replayed.saving_ns(change) == pytest.approx(steps[variant], rel=0.005)


def test_one_alone_gains_little_of_what_all_gain(before, steps):
    finding = only(before[1])
    assert finding.saving_ns_per_step == pytest.approx(steps["before"] - steps["after"], rel=0.10)
    for k, part in enumerate(finding.fix_set):
        alone = steps["before"] - MaskedLoss(VARIANTS["before"] - {k}).run()[1].mean_step_ns()
        assert part.saving_alone_ns_per_step == pytest.approx(alone, rel=0.10, abs=0.005 * steps["before"])
    assert sum(part.saving_alone_ns_per_step for part in finding.fix_set) < 0.4 * finding.saving_ns_per_step


def test_the_device_work_of_the_replacement_is_charged(before):
    """13 bytes for each of 2,097,152 pixels at the 2.04 TB/s of an A100 are 13.4 µs."""
    batch, height, width = PIXELS
    assert batch * height * width * 13 / 2.039e12 == pytest.approx(13.4e-6, rel=0.01)
    assert "charges 13.4 µs per step for `torch.where` in place of `aten::nonzero`" in only(before[1]).why


def test_a_wait_that_costs_less_than_its_replacement_may_pay_for_itself():
    """No host work behind the waits, and a condition a thousand times as large."""
    loop = MaskedLoss(frozenset({0}), between_us=0, behind_us=300)
    loop.pixels = [8, 16_384, 16_384]
    found = diagnose(analyse(trace_of(loop.run()[0])))
    (finding,) = (f for f in (*found.findings, *found.minor) if f.rule == "sync_bound")
    assert "the wait may pay for itself" in finding.why
    assert finding.saving_ns_per_step == 0
    assert finding in found.minor


def test_a_wait_behind_another_is_listed_though_it_costs_next_to_nothing_yet():
    """Two waits with nothing between them: the second finds the device done, until the first is gone."""
    loop = MaskedLoss(frozenset({0, 1}), between_us=0, behind_us=1_200)
    loop.unique_kernels = 0
    facts = analyse(trace_of(loop.run()[0]))
    finding = only(diagnose(facts))
    first, second = finding.fix_set
    assert (first.where.function, second.where.function) == tuple(FUNCTIONS[:2])
    assert second.cost_ns_per_step < 0.01 * first.cost_ns_per_step
    assert first.saving_alone_ns_per_step < 0.1 * finding.saving_ns_per_step
    assert "are next" in finding.why


def test_the_report_prints_the_set(before, tmp_path: Path):
    path = tmp_path / "before.json"
    path.write_bytes(gzip.decompress(profile("before")))
    document = json.loads(json.dumps(stepscope.open(path).document()))
    finding = document["findings"][0]
    assert [part["where"]["function"] for part in finding["fix_set"]] == FUNCTIONS
    for text in (terminal.render(document), markdown.render(document)):
        for part in finding["fix_set"]:
            assert f"train.py:{part['where']['line']}" in text
            assert part["title"].split("`")[1] in text


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_shipped_profiles_are_this_run(variant: str):
    shipped = REPOSITORY / "examples" / "profiles" / f"simulated_masked_loss_{variant}.json.gz"
    assert gzip.decompress(shipped.read_bytes()) == gzip.decompress(profile(variant))


def test_the_repaired_run_has_no_wait_left():
    found = diagnose(analyse(trace_of(MaskedLoss(VARIANTS["after"]).run()[0])))
    assert "sync_bound" not in {finding.rule for finding in found.findings}
