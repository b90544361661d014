"""How well causes are found, sized and predicted, measured anew: what ``docs/truth.md`` is made from.

python -m tests.truth.measure             # writes docs/truth.json; then make docs
python -m tests.truth.measure injected    # one of its tables
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any

import stepscope
from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import DISPATCH_GAP_NS, FINDING_NS, FINDING_SHARE
from stepscope.analysis.summary import mean_parts, total_parts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.evidence import capture_slows_host
from stepscope.diagnosis.finding import Diagnosis, Finding
from stepscope.diagnosis.limits import LAUNCH_SHARE, SEEN_ONCE_SHARE
from stepscope.diagnosis.rules.launch_bound import LAUNCH_SHARE_RECORDED
from stepscope.whatif import changes
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor, predictor
from stepscope.whatif.replay import replay
from tests.kit.inject import KINDS, LATENCY_US, OP_US, RETURN_US, Kind, injected, stretch_us
from tests.kit.masked_loss import VARIANTS, MaskedLoss
from tests.kit.planted import CASES
from tests.kit.planted_case import Planted
from tests.kit.several import SEVERAL
from tests.kit.traces import REPOSITORY, traces_folder
from tests.support import planted_case, planted_facts, trace_of, trace_of_bytes
from tests.whatif.test_replay import CURES

Row = dict[str, Any]
FILE = REPOSITORY / "docs" / "truth.json"
LEAST_US = 5_000
"""An injected stall takes at least so long, and half a step."""
REAL = ("a100_event_sync", "h100_bert_small", "h100_qwen05b", "v100_resnet50_workers0", "v100_two_ranks_rank1")
"""Real profiles with step markers, all launches and an idle instant in each step."""

SIZES = (1, 2, 4, 6, 10, 20, 40, 60)
INJECTED = {
    "a100_event_sync": SIZES, "h100_bert_small": SIZES, "h100_qwen05b": SIZES, "b200_eager_rank0_of_8": (2, 10, 40),
    "v100_resnet50_workers0": (2, 10, 40), "a100_alexnet_sync": SIZES,
}  # fmt: skip
"""Real profiles into which stalls of many sizes are put, and the sizes in percent of the step that holds them. In the
others the host runs ahead all the time: no instant at which a stall would cost what it takes."""
CELLS = [
    (name, kind, size)
    for name, sizes in INJECTED.items()
    for kind in KINDS
    for size in sizes
    if (name, kind) != ("a100_alexnet_sync", "launch")  # without markers, thousands of equal ops are steps
]

STALLED = ("input", "gc", "compile", "python", "sync")

REPAIRED = (("examples/capture_demo.py", "cpu_input_bound.json.gz", "cpu_input_fixed.json.gz"),)
"""The program, and the files in ``examples/profiles`` recorded of it before and after the repair."""

RULES = {
    "input": "input_bound", "gc": "between_steps", "compile": "recompilation", "python": "between_steps",
    "sync": "sync_bound", "checkpoint": "between_steps", "allocator": "allocator_bound", "copy": "exposed_copy",
    "launch": "launch_bound",
}  # fmt: skip
"""Which rule must find an injected stall."""

RARE = ("gc", "compile", "python", "checkpoint", "allocator")
"""Of these a profile of one step cannot show that they come back."""


BOOKED = {
    "input_bound": ("input",), "sync_bound": ("sync",), "launch_bound": ("launch", "launch_latency"),
    "exposed_copy": ("copy_h2d", "copy_staging"), "exposed_collective": ("collective",),
    "allocator_bound": ("allocator",), "recompilation": ("compile",),
}  # fmt: skip
"""What a rule's cost consists of. The rules on host work (``between_steps``, ``slow_steps``) have one cause of several:
that of the case."""


def planted(name: str) -> Row:
    """One generated profile with a cause of known size; errors are shares of the truth, None where there is none.

    Cost and prediction are what the first finding says, where a rule is settled for the cause. Elsewhere the cost is
    what the accounting books to the cause, and the prediction that of a replay without it.
    """
    case, facts = planted_case(name), planted_facts(name)
    found = diagnose(facts)
    row: Row = {"case": name, "what": _first_sentence(CASES[name].__doc__), "quiet": case.quiet, "rule": case.rule}
    row |= {"findings": len(found.findings), "first": None, "cost_error": None, "prediction_error": None}
    if case.rule:
        first = found.findings[0] if found.findings else None
        row["first"] = first is not None and first.rule == case.rule
        if first is not None and row["first"]:
            categories = BOOKED.get(first.rule, (case.category,))
            row["cost_error"] = _error(first.cost_ns_per_step or 0, _booked_truly(case, first.device, categories))
            row["prediction_error"] = _error(nearest(first, case.without_ns["all"]), case.without_ns["all"])
        return row
    if case.category and name != "sampled":
        account = facts.accounts[0]
        at = [str(category) for category in CATEGORIES].index(case.category)
        booked = account.parts[account.step_rows(facts.timed)].sum(axis=0)[at] / len(facts.timed)
        row["cost_error"] = _error(booked, _booked_truly(case, account.rows.device, (case.category,)))
    if name in CURES:
        row["prediction_error"] = _error(_predicted(facts, CURES[name](facts)), case.without_ns["all"])
    return row


def nearest(finding: Finding, wanted: float) -> float:
    """The step that a finding predicts; of a range what is nearest to a wanted one."""
    predicted = finding.predicted_step_ns or 0
    best = predicted if finding.best_step_ns is None else finding.best_step_ns
    return min(max(wanted, best), predicted)


def _booked_truly(case: Planted, device: int | None, categories: tuple[str, ...]) -> float:
    parts = case.truth.mean_parts(device)
    return sum(parts.get(category, 0) for category in categories)


def several(name: str) -> list[Row]:
    """One generated profile with several causes at once: a row for each, then one for all of them together."""
    case = SEVERAL[name]()
    facts = analyse(trace_of(case.events))
    found = diagnose(facts)
    step = case.truth.mean_step_ns()
    gains = {rule: step - ns for rule, ns in case.without_ns.items() if rule != "all"}
    by_rule = {finding.rule: finding for finding in found.findings}
    rows: list[Row] = []
    for rule, gain in gains.items():
        row: Row = {"case": name, "rule": rule, "found": rule in by_rule}
        row |= {"step_ns": round(step), "gain_ns": round(gain), "cost_error": None, "gain_error": None}
        if rule in by_rule:
            finding = by_rule[rule]
            categories = BOOKED.get(rule) or (("python",) if rule == "between_steps" else ("gc",))
            cost = finding.cost_ns_per_step or 0
            if rule == "sync_bound":  # which counts the Python code behind the wait too, that another finding tells of
                cost = round(mean_parts(facts)[Category.SYNC])
            row["cost_error"] = _error(cost, _booked_truly(case, finding.device, categories))
            row["gain_error"] = _error(finding.saving_ns_per_step or 0, gain)
        rows.append(row)
    # What only slow steps have is no part of the usual step, from which the combined one is predicted.
    together = found.whatif.combined_step_ns
    assert together is not None
    return [
        *rows,
        {
            "case": name,
            "rule": "all",
            "others": sorted({finding.rule for finding in found.findings} - gains.keys()),
            "in_order": [f.rule for f in found.findings] == sorted(gains, key=lambda rule: -gains[rule]),
            "step_ns": round(step),
            "after_ns": round(case.without_ns["all"]),
            "step_error": _error(together, case.without_ns["all"]),
        },
    ]


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


def repaired() -> list[Row]:
    """Real profiles of one program before and after a repair: what the first finding predicted and what came of it."""
    rows = []
    for name, before, after in REPAIRED:
        one, other = (stepscope.open(REPOSITORY / "examples" / "profiles" / file) for file in (before, after))
        finding = diagnose(one.facts).findings[0]
        step, left = one.facts.mean_step_ns, other.facts.mean_step_ns
        assert step is not None
        assert left is not None
        assert finding.predicted_step_ns is not None
        assert finding.saving_ns_per_step is not None
        rows.append(
            {
                "pair": name,
                "rule": finding.rule,
                "basis": finding.prediction_basis,
                "confidence": finding.confidence,
                "step_ns": step,
                "after_ns": left,
                "predicted_ns": finding.predicted_step_ns,
                "step_error": _error(nearest(finding, left), left),
                "gain_error": _error(step - nearest(finding, left), step - left),
            }
        )
    return rows


def stalled(name: str, kind_name: str) -> Row:
    """A real profile with a stall put into each used step."""
    kind, path = KINDS[kind_name], traces_folder() / "kineto" / f"{name}.json.gz"
    plain, _ = _plain(name)
    assert plain.mean_step_ns is not None
    delay_us = max(LEAST_US, plain.mean_step_ns // 2_000)
    data = injected(path, kind, delay_us, _marks(plain))
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


@cache
def _plain(name: str) -> tuple[Facts, Diagnosis]:
    """A real profile as it is."""
    facts = stepscope.open(traces_folder() / "kineto" / f"{name}.json.gz").facts
    return facts, diagnose(facts)


def put_in(name: str, kind_name: str, percent: int) -> Row:
    """A real profile with a stall of so much of each used step put into it, and what is said of it.

    Cost is what the accounting books to its category more than before (of Python of less than a millisecond, which is
    booked to launching, what the finding says); saving, what the finding for it says, less what it said before.
    """
    kind, (plain, before) = KINDS[kind_name], _plain(name)
    assert plain.mean_step_ns is not None
    delay_us = ceil(plain.mean_step_ns * percent / (100 - percent) / 1_000)
    if kind_name == "launch":
        delay_us = ceil(delay_us / OP_US) * OP_US
    data = injected(traces_folder() / "kineto" / f"{name}.json.gz", kind, delay_us, _marks(plain))
    assert data is not None, "no idle instant"
    facts = analyse(trace_of_bytes(data))
    found = diagnose(facts)
    lost = delay_us * 1_000 * ((OP_US - 1) / OP_US if kind_name == "launch" else 1)
    told, untold = (_of_kind(findings, kind_name) for findings in (found.findings, found.minor))
    row: Row = {"trace": name, "kind": kind_name, "percent": percent, "delay_ns": delay_us * 1_000}
    row |= {"steps": len(facts.used), "told": _is_told(plain, kind_name, lost), "found": bool(told)}
    had = _counterpart(before, told[0]) if told else None
    # Under the findings, as the fix of one above it hides it.
    row["hidden"] = not told and any(finding.saving_after_ns_per_step is not None for finding in untold)
    row |= {"cost_error": None, "place": _names(told[0], kind) if told else None, "saving_error": None}
    if kind_name != "python" or lost >= DISPATCH_GAP_NS:
        row["cost_error"] = _error(_booked(facts, kind) - _booked(plain, kind), lost)
    elif told and told[0].cost_ns_per_step is not None:
        row["cost_error"] = _error(told[0].cost_ns_per_step - (had.cost_ns_per_step or 0 if had else 0), lost)
    if told and told[0].saving_ns_per_step is not None:
        gains = _gained(kind, lost, plain.mean_step_ns)
        row["saving_error"] = _error(told[0].saving_ns_per_step - (had.saving_ns_per_step or 0 if had else 0), gains)
    return row


def _gained(kind: Kind, lost: float, step_ns: int) -> float:
    """What taking a stall out gains: a wait's own latency goes with it; a copy hides beside no more than the step."""
    if kind.category is Category.SYNC:
        return lost + (LATENCY_US + RETURN_US) * 1_000
    return min(lost, step_ns) if kind.category is Category.COPY_H2D else lost


def _of_kind(findings: tuple[Finding, ...], kind: str) -> list[Finding]:
    """Those of the rule that must find a stall, one that names it first."""
    rules = (RULES[kind], "hot_python") if kind == "python" else (RULES[kind],)
    chosen = [f for f in findings if f.rule in rules and (f.rule != "hot_python" or _names(f, KINDS[kind]))]
    return sorted(chosen, key=lambda finding: not _names(finding, KINDS[kind]))


def _is_told(plain: Facts, kind: str, lost: float) -> bool:
    """Whether a stall is to be told of, by the limits of findings."""
    step = (plain.mean_step_ns or 0) + lost
    share = SEEN_ONCE_SHARE if kind in RARE and len(plain.used) == 1 else FINDING_SHARE
    if kind == "launch":
        share = LAUNCH_SHARE if capture_slows_host(plain) is None else LAUNCH_SHARE_RECORDED
    return lost > max(share * step, FINDING_NS) * 1.02


def _names(finding: Finding, kind: Kind) -> bool:
    """Whether it names the event that was put in, or shows it as evidence."""
    wheres = (*finding.where, *(part.where for part in finding.fix_set))
    names = {name for where in wheres for name in (where.annotation, where.op) if name}
    names |= {f"{where.file}({where.line}): {where.function}" for where in wheres}
    return kind.name in names | {piece.name for piece in finding.evidence}


def _counterpart(before: Diagnosis, finding: Finding) -> Finding | None:
    """The finding of the same rule and title without the stall."""
    same = (
        one
        for one in (*before.findings, *before.minor)
        if one.rule == finding.rule and (one.rule != "between_steps" or one.title == finding.title)
    )
    return next(same, None)


def _marks(facts: Facts) -> list[str | None]:
    """The names of the used steps' markers; None for a profile that has none."""
    if facts.markers.inferred:
        return [None]
    return [facts.trace.name_of(int(facts.markers.slices[step])) for step in facts.used]


def _booked(facts: Facts, kind: Kind) -> float:
    """Launching is also what the device takes to begin."""
    parts, latency = total_parts(facts), kind.category is Category.LAUNCH
    booked = parts.get(kind.category, 0) + (parts.get(Category.LAUNCH_LATENCY, 0) if latency else 0)
    return booked / len(facts.used)


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


TABLES: dict[str, Callable[[], list[Row]]] = {
    "planted": lambda: [planted(name) for name in CASES],
    "several": lambda: [row for name in SEVERAL for row in several(name)],
    "pairs": pairs,
    "repaired": repaired,
    "stalled": lambda: [stalled(name, kind) for name in REAL for kind in STALLED],
    "injected": lambda: [put_in(*cell) for cell in CELLS],
}


if __name__ == "__main__":
    made = json.loads(FILE.read_text(encoding="utf-8"))
    made |= {name: TABLES[name]() for name in sys.argv[1:] or TABLES}
    line = ",\n"
    tables = (f"{json.dumps(name)}: [\n{line.join(map(json.dumps, made[name]))}\n]" for name in TABLES)
    FILE.write_text(f"{{\n{line.join(tables)}\n}}\n", encoding="utf-8")
