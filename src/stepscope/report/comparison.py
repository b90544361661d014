"""A comparison as a neutral document ``stepscope.comparison/1``, and as text and Markdown."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from stepscope import _version
from stepscope.comparison.budgets import BudgetOutcome
from stepscope.comparison.compare import Comparison
from stepscope.comparison.found import FindingChange
from stepscope.comparison.items import ItemChange
from stepscope.comparison.limits import COMPARED_ITEM_SHARE
from stepscope.comparison.noise import Difference
from stepscope.comparison.scaling import Scaling
from stepscope.comparison.side import Side
from stepscope.diagnosis.finding import Finding
from stepscope.document import COMPARISON_SCHEMA
from stepscope.regex import regex
from stepscope.report.labels import CATEGORIES
from stepscope.report.markdown import code, prose
from stepscope.report.names import shorten, visible
from stepscope.units import format_ns, format_ns_range, format_share

if TYPE_CHECKING:
    from stepscope.document.comparison import (
        ComparedCost,
        ComparedItem,
        ComparedSide,
        DifferenceEntry,
        FindingChangeEntry,
        PartDifference,
        ScalingEntry,
    )
    from stepscope.document.comparison import ComparisonDocument as Document

_LISTED = 50
"""Rows of a table in the document."""
_WIDTH = 100
_SIDES: tuple[Literal["before_ns", "after_ns", "difference_ns"], ...] = ("before_ns", "after_ns", "difference_ns")
_MANY = 10.0
"""A difference of more times what there was before is not said as a share."""
_UNIT_SPACE = regex(r"(?<=\d) (?=(?:%|[nµm]?s\b))")
_SHOWN = 8
"""Rows of a table in text and Markdown."""


def make(comparison: Comparison, paths: Sequence[str], outcomes: Sequence[BudgetOutcome] = ()) -> Document:
    """Everything as one JSON-ready dict; times in ns per step."""
    return {
        "schema": COMPARISON_SCHEMA,
        "tool": {"name": "stepscope", "version": _version.__version__},
        "changed": comparison.changed,
        "not_determined": comparison.not_determined,
        "before": _side(comparison.before, paths[0], comparison.step.before_ns),
        "after": _side(comparison.after, paths[1], comparison.step.after_ns),
        "step_time": _difference(comparison.step),
        "differences": list(comparison.differences),
        "parts": [
            {
                "category": str(part.category),
                "label": CATEGORIES[part.category].words,
                "told": part.told,
                **_difference(part.difference),
            }
            for part in comparison.parts
        ],
        "kernels": [_item(change) for change in comparison.kernels[:_LISTED]],
        "ops": [_item(change) for change in comparison.ops[:_LISTED]],
        "layers": [_item(change) for change in comparison.layers[:_LISTED]],
        "work": [
            {"path": list(box.path), "before_ns": box.before_ns, "after_ns": box.after_ns} for box in comparison.work
        ],
        "calls": [
            {"name": one.name, "caller": one.caller, "before_ns": one.before_ns, "after_ns": one.after_ns}
            for one in comparison.calls
        ],
        "findings": [_finding(change) for change in comparison.findings],
        "scaling": None if comparison.scaling is None else _scaling(comparison.scaling),
        "budgets": [{"condition": one.budget.text, "fired": one.fired, "text": one.sentence} for one in outcomes],
        "achieved": None if comparison.achieved is None else {
            "gone": list(comparison.achieved.gone),
            "less": list(comparison.achieved.less),
            "predicted_step_ns": comparison.achieved.predicted_step_ns,
            "best_step_ns": comparison.achieved.best_step_ns,
            "measured_step_ns": round(comparison.achieved.measured_step_ns),
            "unrecorded": comparison.achieved.unrecorded,
            "off_share": comparison.achieved.off_share,
        },
    }  # fmt: skip


def _scaling(scaling: Scaling) -> ScalingEntry:
    return {
        "unit": scaling.unit,
        "devices_before": scaling.devices_before,
        "devices_after": scaling.devices_after,
        "efficiency": scaling.efficiency,
        "speedup": scaling.speedup,
        "negative": scaling.negative,
        "losses": [{"cause": loss.cause, "ns_per_step": round(loss.ns)} for loss in scaling.losses],
    }


def _side(side: Side, path: str, mean_ns: float) -> ComparedSide:
    return {
        "path": path,
        "runs": len(side.runs),
        "damaged": side.damaged,
        "steps_used": len(side.step_ns),
        "step_ns": [int(ns) for ns in side.step_ns],
        "steps_apart_ns": list(side.apart_ns),
        "mean_step_ns": round(mean_ns) if side.step_ns.size else None,
        "median_step_ns": side.median_step_ns,
        "verdict": side.verdict,
    }


def _difference(change: Difference) -> DifferenceEntry:
    return {
        "before_ns": round(change.before_ns),
        "after_ns": round(change.after_ns),
        "difference_ns": round(change.ns),
        "share": change.share,
        "low_ns": None if change.low_ns is None else round(change.low_ns),
        "high_ns": None if change.high_ns is None else round(change.high_ns),
    }


def _item(change: ItemChange) -> ComparedItem:
    return {
        "name": change.name,
        "renamed": change.renamed,
        "op": change.op,
        "count_before": change.count_before,
        "count_after": change.count_after,
        **_difference(change.difference),
    }


def _finding(change: FindingChange) -> FindingChangeEntry:
    either = change.before or change.after
    assert either is not None
    return {
        "state": change.state,
        "rule": either.rule,
        "title": either.title,
        "title_after": change.after.title if change.after else None,
        "before": _cost(change.before),
        "after": _cost(change.after),
    }


def _cost(finding: Finding | None) -> ComparedCost | None:
    if finding is None:
        return None
    return {
        "id": finding.id,
        "cost_ns_per_step": finding.cost_ns_per_step,
        "saving_ns_per_step": finding.saving_ns_per_step,
    }


# --- text ---------------------------------------------------------------------------------------------------------


def json_(document: Document) -> str:
    """The document itself."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def text(document: Document) -> str:
    """For a terminal; at most 100 cells wide but for paths."""
    return "\n".join(line.rstrip() for line in _lines(document)) + "\n"


def sentence(document: Document) -> str:
    """What became of the step time."""
    step = document["step_time"]
    times = f"{format_ns(step['before_ns'])}, then {format_ns(step['after_ns'])}{_noise(step)}"
    if document["changed"] is None:
        return f"Whether the step time changed cannot be told ({times}): {document['not_determined']}."
    if not document["changed"]:
        if not step["before_ns"]:
            return f"The step time did not change: {times}."
        most = max(abs(step["low_ns"] or 0), abs(step["high_ns"] or 0)) / step["before_ns"]
        return f"The step time did not change by more than {format_share(most)}: {times}."
    faster = step["difference_ns"] < 0
    share = format_share(abs(step["share"])) if step["share"] is not None else ""
    amount = format_ns(abs(step["difference_ns"]))
    return f"A step is {amount} ({share}) {'faster' if faster else 'slower'}: {times}."


def _noise(step: DifferenceEntry) -> str:
    if step["low_ns"] is None or step["high_ns"] is None:
        return ""
    return f", difference {_signed(step['low_ns'])} to {_signed(step['high_ns'])} (95 %)"


def _wrapped(said: str, indent: str, further: str) -> list[str]:
    # A number stays on the line of its unit.
    whole = _UNIT_SPACE.sub("\u2007", visible(said))
    lines = textwrap.wrap(whole, _WIDTH, initial_indent=indent, subsequent_indent=further)
    return [line.replace("\u2007", " ") for line in lines]


def _steps(side: ComparedSide) -> str:
    return f"{side['steps_used']} steps" + (f" of {side['runs']} runs" if side["runs"] > 1 else "")


def _lines(document: Document) -> Iterator[str]:
    for which in ("before", "after"):
        yield f"{which:<7} {visible(document[which]['path'])} · {_steps(document[which])}"
        yield from _wrapped(document[which]["verdict"], " " * 8, " " * 8)
    yield ""
    yield from _wrapped(sentence(document), "", "  ")
    for said in scaling(document):
        yield from _wrapped(said, "", "  ")
    for said in (*document["differences"], *fired(document)):
        yield from _wrapped(f"! {said}", "", "  ")
    for title, rows in _tables(document):
        yield ""
        yield f"{title:<60} {'before':>9} {'after':>9}  difference"
        yield from (f"  {name:<58} {before:>9} {after:>9}  {change}" for name, before, after, change in rows)
    findings = _finding_lines(document)
    if findings:
        yield ""
        yield "Findings"
        for line in findings:
            yield from _wrapped(line.replace("`", ""), "  ", "    ")


def fired(document: Document) -> list[str]:
    """The conditions that fired, and why."""
    return [f"Fired: {one['text']}." for one in document["budgets"] if one["fired"]]


def scaling(document: Document) -> Iterator[str]:
    """How well more devices do the work, and what a step takes longer by."""
    scaled = document["scaling"]
    if scaled is None:
        return
    times, one = f"{scaled['speedup']:.3g}", {"devices": "device", "processes": "process"}[scaled["unit"]]
    yield (
        f"With the same batch on each {one}, {scaled['devices_after']} {scaled['unit']} do {times} times the work of "
        f"{scaled['devices_before']} per second ({format_share(scaled['efficiency'])} efficiency)"
        + ("; more of them are slower than fewer." if scaled["negative"] else ".")
    )
    lost = [f"{loss['cause']} {_signed(loss['ns_per_step'])}" for loss in scaled["losses"] if loss["ns_per_step"]]
    if lost and document["changed"] and document["step_time"]["difference_ns"] > 0:
        yield f"A step takes longer by: {', '.join(lost)}."


def _tables(document: Document) -> Iterator[tuple[str, list[tuple[str, str, str, str]]]]:
    parts = [_row(part["label"], None, part) for part in document["parts"] if part["told"]]
    tables = [("Time per step", parts, _rest(document))]
    for title, items in (("Kernels", document["kernels"]), ("Ops", document["ops"]), ("Layers", document["layers"])):
        tables.append((title, [_row(item["name"], item["renamed"], item) for item in items], []))
    noise = ", noise not known" if document["step_time"]["low_ns"] is None else ""
    for title, rows, rest in tables:
        more = [(f"… {len(rows) - _SHOWN} more", "", "", "")] if len(rows) > _SHOWN else []
        if rows or rest:
            yield title + noise, rows[:_SHOWN] + more + rest


def _rest(document: Document) -> list[tuple[str, str, str, str]]:
    """The row of what a table of parts leaves of the step."""
    step, parts = document["step_time"], document["parts"]
    left = {key: step[key] - sum(part[key] for part in parts if part["told"]) for key in _SIDES}
    if not parts or abs(left["difference_ns"]) < COMPARED_ITEM_SHARE * max(step["before_ns"], step["after_ns"]):
        return []
    one, two = (format_ns(max(left[key], 0)) for key in _SIDES[:2])
    return [("rest, within noise", one, two, _signed(left["difference_ns"]))]


def _row(before: str, after: str | None, change: PartDifference | ComparedItem) -> tuple[str, str, str, str]:
    name = f"{shorten(visible(before), 27)} → {shorten(visible(after), 28)}" if after else shorten(visible(before), 58)
    share = change["share"] or 0
    told = f" ({'+' if share > 0 else '−'}{format_share(abs(share))})" if 0 < abs(share) < _MANY else ""
    return name, format_ns(change["before_ns"]), format_ns(change["after_ns"]), _signed(change["difference_ns"]) + told


def _finding_lines(document: Document) -> list[str]:
    lines = list(map(finding, document["findings"]))
    said = achieved(document)
    return lines if said is None else [*lines, said]


def finding(change: FindingChangeEntry) -> str:
    """What became of one finding."""
    costs = [side["cost_ns_per_step"] if side else None for side in (change["before"], change["after"])]
    one, two = (format_ns(cost) for cost in costs)
    said = {
        "gone": f"gone: {one} before",
        "new": f"new: {two}",
        "stays": f"stays: {two}",
        "less": f"less: {one}, then {two}",
        "more": f"more: {one}, then {two}",
    }[change["state"]]
    if change["title_after"] in (None, change["title"]):
        return f"{change['title']} ({said})"
    return f"{change['title_after']} ({said}; before: {change['title']})"


def achieved(document: Document) -> str | None:
    """The step time that was promised of what is gone or less, and the measured one."""
    made = document["achieved"]
    if made is None:
        return None
    best, measured = made["best_step_ns"], format_ns(made["measured_step_ns"])
    promised = format_ns_range(best, made["predicted_step_ns"])
    off = format_share(abs(made["off_share"]))
    held = "as promised" if best is not None and not made["off_share"] else f"{off} off"
    pairs = [("Without", made["gone"]), ("With less of", made["less"])]
    titles = {side["id"]: change["title"] for change in document["findings"] if (side := change["before"])}
    told = [f"{word} “{'”, “'.join(titles.get(id_, id_) for id_ in ids)}”" for word, ids in pairs if ids]
    what = " and ".join([told[0], *(one[0].lower() + one[1:] for one in told[1:])])
    recorded = " when not recorded" if made["unrecorded"] else ""
    return f"{what} a step was predicted to take {promised}{recorded}; it takes {measured} ({held})."


def _signed(ns: int) -> str:
    return f"{'+' if ns > 0 else '−' if ns < 0 else ''}{format_ns(abs(ns))}"


# --- Markdown -----------------------------------------------------------------------------------------------------


def markdown(document: Document) -> str:
    """For a pull request's comment."""
    return "\n".join(_markdown_lines(document)) + "\n"


def _markdown_lines(document: Document) -> Iterator[str]:
    yield f"**{prose(sentence(document))}**"
    yield ""
    for which in ("before", "after"):
        yield f"- {which}: {code(document[which]['path'])}, {_steps(document[which])}"
    for said in (*scaling(document), *(f"⚠ {one}" for one in (*document["differences"], *fired(document)))):
        yield ""
        yield prose(said)
    for title, rows in _tables(document):
        yield ""
        yield f"| {title} | before | after | difference |"
        yield "|---|--:|--:|--:|"
        yield from (f"| {_cell(name)} | {before} | {after} | {change} |" for name, before, after, change in rows)
    findings = _finding_lines(document)
    if findings:
        yield ""
        yield from (f"- {prose(line)}" for line in findings)


def _cell(name: str) -> str:
    return name if name.startswith("… ") else code(name, in_table=True)
