"""How well causes are found, sized and predicted, measured anew: what ``docs/truth.md`` is made from.

    python -m tests.truth.measure      # writes docs/truth.json; then make docs
"""

from __future__ import annotations

import json
from typing import Any

import stepscope
from stepscope.analysis.categories import CATEGORIES
from stepscope.analysis.facts import Facts, analyse
from stepscope.analysis.summary import total_parts
from stepscope.diagnosis.engine import diagnose
from stepscope.whatif import changes
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor, predictor
from stepscope.whatif.replay import replay
from tests.kit.inject import KINDS, Kind, injected, stretch_us
from tests.kit.masked_loss import VARIANTS, MaskedLoss
from tests.kit.planted import CASES
from tests.kit.traces import REPOSITORY, traces_folder
from tests.support import trace_of, trace_of_bytes
from tests.whatif.test_replay import CURES

Row = dict[str, Any]
FILE = REPOSITORY / "docs" / "truth.json"
LEAST_US = 5_000
"""An injected stall takes at least so long, and half a step."""
REAL = ("a100_event_sync", "h100_bert_small", "h100_qwen05b", "v100_resnet50_workers0", "v100_two_ranks_rank1")
"""Real profiles with step markers, all launches and an idle instant in each step."""

RULES = {
    "input": "input_bound", "gc": "between_steps", "compile": "recompilation", "python": "between_steps",
    "sync": "sync_bound",
}  # fmt: skip
"""Which rule must find an injected stall."""


def planted(name: str) -> Row:
    """One generated profile with a cause of known size; errors are shares of the truth, None where there is none."""
    case = CASES[name]()
    facts = analyse(trace_of(case.events))
    found = diagnose(facts)
    row: Row = {"case": name, "what": _first_sentence(CASES[name].__doc__), "quiet": case.quiet}
    row |= {"findings": len(found.findings), "first": None, "cost_error": None, "prediction_error": None}
    if case.rule:
        row["first"] = bool(found.findings) and found.findings[0].rule == case.rule
    if case.category and name != "sampled":
        account = facts.accounts[0]
        at = [str(category) for category in CATEGORIES].index(case.category)
        booked = account.parts[account.step_rows(facts.timed)].sum(axis=0)[at] / len(facts.timed)
        wanted = case.truth.mean_parts(account.rows.device)[case.category]
        row["cost_error"] = _error(booked, wanted)
    if name in CURES:
        row["prediction_error"] = _error(_predicted(facts, CURES[name](facts)), case.without_ns["all"])
    return row


def _predicted(facts: Facts, change: Change) -> float:
    replayed = predictor(facts)
    assert isinstance(replayed, Predictor)
    steps = list(facts.timed)

    def mean(one: Change) -> float:
        return float(replay(facts, replayed.graph, one)[steps].mean())

    return float(facts.step_ns[steps].mean()) - (mean(Change()) - mean(change))


def pairs() -> list[Row]:
    """The masked loss with one, two and all waits taken out, against the runs without them."""
    steps = {name: MaskedLoss(waits).run()[1].mean_step_ns() for name, waits in VARIANTS.items()}
    facts = analyse(trace_of(MaskedLoss(VARIANTS["before"]).run()[0]))
    parts = diagnose(facts).findings[0].fix_set
    replayed = predictor(facts)
    assert isinstance(replayed, Predictor)
    rows = []
    for fixed, name in enumerate(VARIANTS):
        if fixed:
            change = Change()
            for part in parts[:fixed]:
                change |= part.change
            saving = replayed.saving_ns(change)
            gained = steps["before"] - steps[name]
            rows.append(
                {
                    "fixed": fixed,
                    "step_ns": round(steps["before"]),
                    "after_ns": round(steps[name]),
                    "predicted_ns": round(steps["before"] - saving),
                    "step_error": _error(steps["before"] - saving, steps[name]),
                    "gain_error": _error(saving, gained),
                }
            )
    return rows


def stalled(name: str, kind_name: str) -> Row:
    """A real profile with a stall put into each used step."""
    kind, path = KINDS[kind_name], traces_folder() / "kineto" / f"{name}.json.gz"
    plain = stepscope.open(path).facts
    assert plain.mean_step_ns is not None
    delay_us = max(LEAST_US, plain.mean_step_ns // 2_000)
    data = injected(path, kind, delay_us, [plain.markers.numbers[k] or 0 for k in plain.used])
    assert data is not None, "no idle instant"
    facts = analyse(trace_of_bytes(data))
    delay = delay_us * 1_000
    booked = _booked(facts, kind) - _booked(plain, kind)
    saving = _saving(facts, kind) - _saving(plain, kind)
    grown = stretch_us(kind, delay_us) * 1_000
    without = plain.mean_step_ns + grown - delay
    return {
        "trace": name,
        "kind": kind_name,
        "delay_ns": delay,
        "steps": len(facts.used),
        "found": RULES[kind_name] in (rules := [finding.rule for finding in diagnose(facts).findings]),
        "first": rules[0] if rules else None,
        "cost_error": _error(booked, delay),
        "prediction_error": _error(plain.mean_step_ns + grown - saving, without),
        "saving_error": _error(saving, delay),
    }


def _booked(facts: Facts, kind: Kind) -> float:
    return total_parts(facts).get(kind.category, 0) / len(facts.used)


def _saving(facts: Facts, kind: Kind) -> float:
    replayed = predictor(facts)
    assert isinstance(replayed, Predictor)
    if kind is KINDS["sync"]:
        return replayed.saving_ns(changes.without_all_waits(facts))
    return replayed.saving_ns(changes.without_host_time(facts, kind.category))


def _error(found: float, wanted: float) -> float:
    """In tenths of a percent."""
    return round(abs(found / wanted - 1), 3) + 0.0


def _first_sentence(text: str | None) -> str:
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".")


if __name__ == "__main__":
    made = {
        "planted": [planted(name) for name in CASES],
        "pairs": pairs(),
        "stalled": [stalled(name, kind) for name in REAL for kind in KINDS],
    }
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
