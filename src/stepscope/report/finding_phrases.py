"""The sentences of a report on findings: what each saves, how sure that is, and what could not be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.report import labels
from stepscope.report.phrases import is_whole, where
from stepscope.units import format_ns, format_ns_range, format_share

if TYPE_CHECKING:
    from stepscope.document.findings import FindingEntry
    from stepscope.document.report import Report as Document
    from stepscope.document.report import WhatIfEntry
    from stepscope.document.steps import SummaryEntry


def saving(finding: FindingEntry, summary: SummaryEntry) -> str:
    """What a fix saves of the step time, and what the step would then take."""
    saved, predicted = finding["saving_ns_per_step"], finding["predicted_step_ns"]
    mean = promised_step_ns(summary)
    if saved is None:
        cost, missing = finding["cost_ns_per_step"], finding["not_determined"]
        unknown = "saving not known" if missing is None else f"saving not known: {missing}"
        return unknown if cost is None else f"costs {format_ns(cost)} {_per(finding, summary)}, {unknown}"
    best, per = finding.get("best_step_ns"), _per(finding, summary)
    text = f"saves {format_ns(saved)}"
    if best is not None and predicted is not None:
        most = saved + predicted - best
        text = f"saves {format_ns_range(saved, most)}" if saved else f"saves up to {format_ns(most)}"
    then = finding.get("saving_after_ns_per_step")
    if then is not None and mean is not None and then >= MUCH_MORE * max(saved, 1):
        alone = f"{text} {per}" if saved else "saves nothing"
        return f"saves {format_ns(then)} of {format_ns(mean)} {per} once the above is fixed; by itself {alone}"
    if mean is not None and predicted == mean and best is None:
        average = f"{per} on average" if per == "per step" else per
        return f"{text} {average}, leaving the usual {format_ns(predicted)}{_in_turn(finding)}"
    if mean is not None:
        text += f" of {format_ns(mean)} {per}"
    if predicted is not None:
        text += f", leaving {format_ns_range(best, predicted)}"
    return text + _in_turn(finding)


def promised_step_ns(summary: SummaryEntry) -> int | None:
    """The mean step that savings are told of: as it is when nobody records, where that is known."""
    times, unrecorded = summary["step_time_ns"], summary.get("unrecorded_step_ns")
    promised: int | None = times.get("mean", times["median"]) if unrecorded is None else unrecorded
    return promised


def _per(finding: FindingEntry, summary: SummaryEntry) -> str:
    """Of what a finding's times are: of a step, or of all that was recorded."""
    if is_whole(summary):
        return "in this recording"
    if not finding.get("seen_once"):
        return "per step"
    several = summary["steps_used"] + summary["steps_slow"] > 1
    return "per step on average over this recording" if several else "in this recording"


MUCH_MORE = 4
"""What a fix saves once those above it are made comes first where it is so many times what it saves by itself."""

_ALIKE = 0.1
"""A saving that those above it change by less than this share of it is not given twice."""


def _in_turn(finding: FindingEntry) -> str:
    """What a fix saves once those above it are made, where that differs."""
    alone, then = finding["saving_ns_per_step"], finding.get("saving_after_ns_per_step")
    if then is None or alone is None or abs(then - alone) <= _ALIKE * alone:
        return ""
    return f"; once the above is fixed {format_ns(then) if then > 0.01 * alone else 'nothing more'}"


def told_and_untold(document: Document) -> tuple[list[FindingEntry], list[FindingEntry]]:
    """Findings whose cost is known, and those of which the profile could not tell whether they hold."""
    told: list[FindingEntry] = []
    untold: list[FindingEntry] = []
    for item in document["findings"]:
        known = item["not_determined"] is None or item["cost_ns_per_step"] is not None
        (told if known else untold).append(item)
    return told, untold


def fix_set(finding: FindingEntry) -> list[str]:
    """What must be fixed together, a line each, with what fixing it alone would save."""
    lines = []
    for part in finding["fix_set"]:
        alone = part["saving_alone_ns_per_step"]
        at = part["where"]
        place = where({**at, "op": None}) if at is not None and at["file"] is not None else ""
        gain = "" if alone is None else ": alone saves nothing" if not alone else f": alone saves {format_ns(alone)}"
        lines.append(" ".join(piece for piece in (f"{place} ·" if place else "", part["title"]) if piece) + gain)
    return lines


def plan(document: Document) -> str:
    """The order to work in, where there is more than one thing to do."""
    # The numbers are those that the findings have where they are listed.
    listed = {item["id"]: f"{number}) {item['title']}" for number, item in enumerate(told_and_untold(document)[0], 1)}
    steps = [listed[id_] for id_ in document["plan"] if id_ in listed]
    if len(steps) < 2:
        return ""
    return f"Work in this order, one change at a time, and record again after each: {'; '.join(steps)}."


def replayed(whatif: WhatIfEntry) -> str:
    """How good the replay behind the predictions is, or why there is none."""
    if whatif["reason"] is not None:
        return f"The step as a whole was not simulated: {whatif['reason']}."
    kept = whatif["residual_share"]
    text = f"Simulated as it is, a step comes out {format_share(whatif['replay_error'])} off what was measured"
    text += f", with {format_share(kept)} of it taken over." if kept else "."
    combined = whatif["combined_step_ns"]
    return text if combined is None else f"{text} With every finding fixed a step takes {format_ns(combined)}."


def trust(finding: FindingEntry) -> str:
    """What the saving rests on."""
    prediction = labels.PREDICTION_BASES.get(finding["prediction_basis"] or "")
    confidence = f"{finding['confidence']} confidence"
    return f"{prediction}, {confidence}" if prediction else confidence


_TITLES_NAMED = 3
"""Findings that lack the same thing which are named in short reports."""


def alike(untold: list[FindingEntry]) -> dict[str, list[FindingEntry]]:
    """What could not be told, by what to record for it."""
    by_reason: dict[str, list[FindingEntry]] = {}
    for item in untold:
        by_reason.setdefault(item["not_determined"] or "", []).append(item)
    return by_reason


def reasons(untold: list[FindingEntry], *, all_titles: bool = False) -> list[str]:
    """What could not be told, with what to record; findings that lack the same thing share a sentence."""
    lines = []
    for reason, items in alike(untold).items():
        titles = list(dict.fromkeys(item["title"] for item in items))
        named = titles if all_titles or len(titles) <= _TITLES_NAMED + 1 else titles[:_TITLES_NAMED]
        more = len(titles) - len(named)
        rest = f"; and {more} more, which `-v` names" if more else ""
        lines.append(f"Not determined: {'; '.join(named)}{rest}. {reason}")
    return lines
