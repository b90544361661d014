"""``stepscope what-if``: the step time if some findings were fixed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli.progress import ProgressBar
from stepscope.units import format_ns, format_share

if TYPE_CHECKING:
    from stepscope.diagnosis.what_if import Prediction
    from stepscope.pipeline import Profile

_SCHEMA = "stepscope.what-if/1"


@click.command("what-if")
@click.argument("path", metavar="PATH")
@click.option(
    "--remove", "names", metavar="FINDING", multiple=True,
    help="What is fixed: a finding (sync_bound.1), one part of its fix set (sync_bound.1/2) or a category (gc). "
    "May be given several times. Without it everything is tried, each by itself.",
)  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def what_if(path: str, names: tuple[str, ...], form: str) -> int:
    """Predict the step time if some findings were fixed.

    The profile is replayed without their cause: what the host and the device did keeps its measured duration, and
    what waited for something that is gone comes earlier.

    Exit status: 0 done, 1 the profile could not be read, 2 wrong usage or nothing can be predicted, 3 the profile was
    damaged.
    """
    from stepscope import pipeline
    from stepscope.diagnosis.what_if import replay_of

    with ProgressBar() as progress:
        profile = pipeline.open(path, progress=progress)
        found = [profile.what_if(*names)] if names else []  # a wrong name is told first
        replayed = replay_of(profile.diagnosis)
        found = found or _each(profile)
    made = {
        "schema": _SCHEMA,
        "step_ns": profile.facts.mean_step_ns,
        "replay_error": replayed.error,
        "residual_share": replayed.residual_share,
        "predictions": [_row(prediction) for prediction in found],
    }
    click.echo(json.dumps(made, indent=2) if form == "json" else "\n".join(_lines(made, found)))
    return profile.exit_status


def _each(profile: Profile) -> list[Prediction]:
    """Each finding and part of one by itself, the causes that gain what no finding says, and all findings at once."""
    from stepscope.diagnosis.what_if import targets

    found = [profile.what_if(target.name) for target in targets(profile.facts, profile.diagnosis)]
    told = {0, *(prediction.saving_ns for prediction in found if "." in prediction.removed[0])}
    found = [one for one in found if "." in one.removed[0] or one.saving_ns not in told]
    findings = [finding.id for finding in profile.findings if finding.change is not None]
    return [*found, profile.what_if(*findings)] if len(findings) > 1 else found


def _row(prediction: Prediction) -> dict[str, Any]:
    return {
        "removed": list(prediction.removed),
        "title": prediction.title,
        "predicted_step_ns": prediction.predicted_step_ns,
        "saving_ns": prediction.saving_ns,
    }


def _lines(made: dict[str, Any], found: Sequence[Prediction]) -> list[str]:
    from stepscope.report.names import visible

    kept = made["residual_share"]
    off = f"Replayed unchanged it is {format_share(made['replay_error'])} off"
    off += f", with {format_share(kept)} of it kept as measured." if kept else "."
    lines = [f"A step takes {format_ns(made['step_ns'])} on average. {off}", ""]
    if not found:
        return [*lines, "There is nothing to take out."]
    for prediction in found:
        name = " + ".join(prediction.removed)
        saved = f"saves {format_ns(prediction.saving_ns)}" if prediction.saving_ns else "saves nothing"
        lines.append(f"{format_ns(prediction.predicted_step_ns):>9}  {saved:<16} without {name}")
        if prediction.title and len(prediction.removed) == 1:
            lines.append(f"{'':>27}  {visible(prediction.title).replace('`', '')}")
    return lines
