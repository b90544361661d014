"""``stepscope what-if``: the step time if some findings were fixed."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli.progress import ProgressBar
from stepscope.errors import UsageError
from stepscope.units import format_ns, format_share

if TYPE_CHECKING:
    from stepscope.diagnosis.what_if import LargerBatch, Prediction
    from stepscope.pipeline import Profile

_SCHEMA = "stepscope.what-if/1"


@click.command("what-if")
@click.argument("path", metavar="PATH")
@click.option(
    "--remove", "names", metavar="FINDING", multiple=True,
    help="What is fixed: a finding (sync_bound.1), one part of its fix set (sync_bound.1/2) or a category (gc). "
    "May be given several times. Without it everything is tried, each by itself.",
)  # fmt: skip
@click.option(
    "--every", type=click.IntRange(min=1), default=1, metavar="N",
    help="With --remove: it is not gone but happens every N steps (logging, checkpoints, reading the loss).",
)  # fmt: skip
@click.option("--batch", type=float, metavar="K", help="Instead: a batch K times as large.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
    help="How to write it.",
)  # fmt: skip
def what_if(path: str, names: tuple[str, ...], every: int, batch: float | None, form: str) -> int:
    """Predict the step time if some findings were fixed.

    The profile is replayed without their cause: what waited for something that is gone comes earlier.

    Exit status: 0 done, 1 the profile could not be read, 2 wrong usage or nothing can be predicted, 3 the profile was
    damaged.
    """
    from stepscope import pipeline
    from stepscope.diagnosis.what_if import replay_of

    if (batch is not None and names) or (every > 1 and not names):
        raise UsageError("--every needs --remove, and --batch stands alone")
    with ProgressBar() as progress:
        profile = pipeline.open_profile(path, progress=progress)
        predictions = [profile.what_if(*names, every=every)] if names else []  # a wrong name is told first
        replayed = replay_of(profile.diagnosis)
        larger = None if batch is None else profile.larger_batch(batch)
        predictions = predictions if names or larger else _each(profile)
    made = {
        "schema": _SCHEMA,
        "step_ns": profile.facts.mean_step_ns,
        "replay_error": replayed.error,
        "residual_share": replayed.residual_share,
        "every": every,
        "predictions": [_row(prediction) for prediction in predictions],
        "larger_batch": None if larger is None else dataclasses.asdict(larger),
    }
    lines = _lines(made, predictions) if larger is None else _batch_lines(larger)
    click.echo(json.dumps(made, indent=2) if form == "json" else "\n".join(lines))
    return profile.exit_status


def _each(profile: Profile) -> list[Prediction]:
    """Each finding and part of one by itself, the causes that gain what no finding says, and all findings at once."""
    from stepscope.diagnosis.what_if import targets

    predictions = [profile.what_if(target.name) for target in targets(profile.facts, profile.diagnosis)]
    told = {0, *(prediction.saving_ns for prediction in predictions if "." in prediction.removed[0])}
    predictions = [one for one in predictions if "." in one.removed[0] or one.saving_ns not in told]
    findings = [finding.id for finding in profile.findings if finding.change is not None]
    return [*predictions, profile.what_if(*findings)] if len(findings) > 1 else predictions


def _row(prediction: Prediction) -> dict[str, Any]:
    return {
        "removed": list(prediction.removed),
        "title": prediction.title,
        "predicted_step_ns": prediction.predicted_step_ns,
        "saving_ns": prediction.saving_ns,
    }


def _batch_lines(larger: LargerBatch) -> list[str]:
    times, left = f"{larger.factor:g}", format_ns(larger.predicted_step_ns)
    gained = larger.step_ns - larger.per_present_batch_ns
    fits = {True: "By the memory recorded it fits the device.", False: "By the memory recorded it does not fit."}
    return [
        f"With a batch {times} times as large a step takes about {left} instead of {format_ns(larger.step_ns)}: "
        f"{format_ns(larger.per_present_batch_ns)} for as many samples as today's"
        + (f", {format_ns(gained)} less." if gained > 0 else ", which gains nothing."),
        f"Assumed: kernels and copies take {times} times as long, collectives and the host as long as now. Loading",
        f"the input takes {times} times as long too, which is not in the figure.",
        larger.changes,
        "Whether it fits the memory is not recorded." if larger.has_room is None else fits[larger.has_room],
    ]


def _lines(made: dict[str, Any], predictions: Sequence[Prediction]) -> list[str]:
    from stepscope.report.names import visible

    kept = made["residual_share"]
    off = f"Simulated as it is, it comes out {format_share(made['replay_error'])} off"
    off += f", with {format_share(kept)} of it taken over." if kept else "."
    lines = [f"A step takes {format_ns(made['step_ns'])} on average. {off}", ""]
    if not predictions:
        return [*lines, "There is nothing to take out."]
    for prediction in predictions:
        name = " + ".join(prediction.removed)
        saved = f"saves {format_ns(prediction.saving_ns)}" if prediction.saving_ns else "saves nothing"
        how = f"with only every {made['every']} steps" if made["every"] > 1 else "without"
        lines.append(f"{format_ns(prediction.predicted_step_ns):>9}  {saved:<16} {how} {name}")
        if prediction.title and len(prediction.removed) == 1:
            lines.append(f"{'':>27}  {visible(prediction.title).replace('`', '')}")
    return lines
