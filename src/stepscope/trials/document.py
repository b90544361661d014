"""What trials found, as one JSON-ready dict (schema ``stepscope.try/1``). Times are ns per step, memory bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from stepscope._version import __version__
from stepscope.capture.cures import fitting
from stepscope.capture.cures.cure import Cure
from stepscope.names.producing import reads_numbers
from stepscope.trials import patch, values
from stepscope.trials.arguments import ChangedArgument
from stepscope.trials.arms import Arm
from stepscope.trials.baseline import Baseline
from stepscope.trials.interval import Measured
from stepscope.trials.process import TrialRun
from stepscope.trials.schedule import TrialSchedule

if TYPE_CHECKING:
    from stepscope.capture.cures.places import Place
    from stepscope.document.findings import FindingEntry
    from stepscope.document.report import Report
    from stepscope.document.trials import (
        CureEntry,
        LossesEntry,
        MeasuredEntry,
        PromisedStep,
        TrialEntry,
        TrialsDocument,
        TriedArgument,
        TriedPlace,
        UncuredFinding,
    )

SCHEMA: Final = "stepscope.try/1"


class Tried(NamedTuple):
    """What ran beside the unchanged job."""

    arms: Sequence[Arm]
    together: Arm | None
    """All that helps."""
    helped: Sequence[Arm]


def make(
    command: Sequence[str], base: Baseline, schedule: TrialSchedule, tried: Tried, change: patch.Patch
) -> TrialsDocument:
    """Everything. Arms are ordered by what they save, those that could not be measured last."""
    rows = [_row(arm, schedule.baseline) for arm in tried.arms]
    runs = [ran for _, ran in schedule.baseline.runs]
    timed = [ran.step_ns for ran in runs if ran.step_ns is not None]
    return {
        "schema": SCHEMA,
        "tool": {"name": "stepscope", "version": __version__},
        "command": list(command),
        "baseline": {
            "verdict": base.document["summary"]["verdict"],
            "profiles": [str(path) for each in base.ran.recordings for path in each.profiles],
            "step_ns": round(sum(timed) / len(timed)) if timed else base.step_ns,
            "runs": len(timed),
            "steps_per_run": max((ran.steps for ran in runs), default=0),
            "host_bytes": _most(runs, "host_bytes"),
            "device_bytes": _most(runs, "device_bytes"),
        },
        "trials": sorted(rows, key=_rank),
        "together": None if tried.together is None else _row(tried.together, schedule.baseline),
        "keep": [spec for arm in tried.helped for spec in arm.specs or (arm.name,)],
        "patch": {"diff": change.diff or None, "by_hand": change.by_hand},
        "findings_without_cure": without_cure(base.document, of_keras=base.of_keras),
        "ended_early": schedule.ended,
    }


def of_cure(cure: Cure) -> CureEntry:
    """What a cure says of itself."""
    return {
        "cure": cure.name, "title": cure.title, "sets": cure.sets, "may_break": cure.may_break, "undone": cure.undone,
        "changes_numbers": cure.changes_numbers, "takes_number": cure.values is not None, "answers": list(cure.answers),
    }  # fmt: skip


def applied(arms: Iterable[Arm]) -> list[patch.Applied]:
    """The cures of some arms, with the places at which they were put into effect."""
    made = []
    for arm in arms:
        for spec, (cure, value) in zip(arm.specs, arm.cures, strict=True):
            places = [place for _, ran in arm.runs[:1] for place in ran.cure(spec).get("places") or ()]
            made.append(patch.Applied(cure, value, tuple(places)))
    return made


def _row(arm: Arm, baseline: Arm) -> TrialEntry:
    verdict, measured = _verdict(arm, arm.against(baseline))
    runs = [ran for _, ran in arm.runs]
    losses = values.compared([ran.values for _, ran in baseline.runs], runs[0].values if runs else ())
    if arm.argument is not None:
        losses = values.Compared("unknown", 0, why="its steps hold other samples")
    places = [place for one in applied([arm]) for place in one.places]
    return {
        "cures": [{**of_cure(cure), "value": value} for cure, value in arm.cures],
        "name": arm.name,
        "argument": None if arm.argument is None else _argument(arm.argument),
        "findings": [finding["id"] for finding in arm.answers],
        "predicted": predicted(arm),
        "measured": None if measured is None else _measured(measured),
        "verdict": verdict,
        "why": arm.out,
        "host_bytes": _most(runs, "host_bytes"),
        "device_bytes": _most(runs, "device_bytes"),
        "values": _losses(losses),
        "places": [_told(place) for place in places],
    }


def _argument(changed: ChangedArgument) -> TriedArgument:
    return {
        "name": changed.name, "at": changed.at, "before": changed.before, "given": changed.given,
        "value": changed.value, "spec": changed.spec,
    }  # fmt: skip


def _losses(compared: values.Compared) -> LossesEntry:
    return {
        "outcome": compared.outcome, "steps": compared.steps, "largest": compared.largest, "since": compared.since,
        "why": compared.why,
    }  # fmt: skip


def _told(place: Place) -> TriedPlace:
    """A place, its file from the working folder where it lies in there."""
    file, here = Path(place["file"]), Path.cwd()
    shown = file.relative_to(here) if file.is_relative_to(here) else file
    return {"file": str(shown), "line": place.get("line"), "function": place.get("function")}


def _verdict(arm: Arm, measured: Measured | None) -> tuple[str, Measured | None]:
    """``helps``, ``hurts``, ``nothing``, ``unknown``, ``failed`` (the job ended), ``refused`` (it cannot be tried) or
    ``not_run``; and what was measured of it, where that is the cure's."""
    if arm.failed:
        return "failed", None
    if arm.out is not None and (measured is None or measured.half_ns is None):
        return "refused", None
    return ("not_run", None) if measured is None else (measured.verdict, measured)


def _measured(trial: Measured) -> MeasuredEntry:
    return {
        "before_ns": round(trial.before_ns),
        "after_ns": round(trial.after_ns),
        "saving_ns": round(trial.saving_ns),
        "least_saving_ns": None if trial.low_ns is None else round(trial.low_ns),
        "most_saving_ns": None if trial.high_ns is None else round(trial.high_ns),
        "runs": list(trial.runs),
        "runs_needed": trial.runs_needed,
    }


def predicted(arm: Arm) -> PromisedStep | None:
    """What the first finding whose prediction is that of one of its cures promises of the step."""
    promised = {rule for cure, _ in arm.cures for rule in cure.promised}
    answers = [each for each in arm.answers if each["rule"] in promised and each["predicted_step_ns"] is not None]
    numbers = {value for _, value in arm.cures if value is not None}
    for finding in answers:
        # Of a cure that takes a number the promise is that of one number.
        options = [each for each in finding["options"] if each.get("workers") in numbers] if numbers else [finding]
        for told in options:
            step, best = told["predicted_step_ns"], told["best_step_ns"]
            return {"finding": finding["id"], "step_ns": step, "best_step_ns": best}
    return None


def without_cure(document: Report, *, of_keras: bool) -> list[UncuredFinding]:
    """The findings of a diagnosis that no cure of its job answers, or whose reads of numbers none leaves out, whatever
    was asked for."""
    profile = document["profile"]
    cures = fitting(profile["framework"], has_device=bool(profile["devices"]), of_keras=of_keras)
    answered = {rule for cure in cures for rule in cure.answers}
    return [
        {"finding": each["id"], "title": each["title"], "why": why}
        for each in document["findings"]
        if (why := _why_not(each, answered)) is not None
    ]


def _why_not(finding: FindingEntry, answered: set[str]) -> str | None:
    if finding["rule"] not in answered:
        return WHY_NOT.get(finding["rule"], _FROM_OUTSIDE)
    return _READS if any(reads_numbers(place["op"] or "") for place in finding["where"]) else None


_FROM_OUTSIDE = "No cure of it can be put in from outside."
_NEEDED = "Whether the job needs the value at once, or could read it every N steps, cannot be seen from outside."
_READS = f"Of what it advises, reading numbers less often: {_NEEDED[0].lower()}{_NEEDED[1:]}"
_LOOP = "What the job's loop runs over cannot be made ahead from outside."
WHY_NOT = {
    "callback_time": _NEEDED, "loop_sync": _NEEDED, "python_overhead": _NEEDED, "sync_bound": _NEEDED,
    "input_bound": _LOOP, "transfer_bound": _LOOP,
}  # fmt: skip
"""Of rules whose cures are known and not tried, by what the finding's own advice asks for."""


def _most(runs: Sequence[TrialRun], kind: str) -> int | None:
    return max((size for ran in runs if (size := ran.memory(kind)) is not None), default=None)


_LAST = {"refused": 1, "failed": 2, "not_run": 3}


def _rank(row: TrialEntry) -> tuple[int, int]:
    """Best first."""
    return _LAST.get(row["verdict"], 0), -row["measured"]["saving_ns"] if row["measured"] else 0
