"""``stepscope slice``: a part of a profile as a smaller profile."""

from __future__ import annotations

import click

from stepscope.cli import outputs, spans
from stepscope.cli.progress import ProgressBar
from stepscope.errors import UsageError


@click.command("slice")
@click.argument("path", metavar="IN")
@click.argument("out", metavar="OUT")
@click.option(
    "--steps", metavar="A:B",
    help="Keep steps A to B-1, by their numbers in reports (10:13 is 10, 11 and 12), or one step A. An end may be left "
    "out.",
)  # fmt: skip
@click.option(
    "--time", metavar="A:B",
    help="Keep what overlaps the time from A to B after the profile's start, as 1.2s:1.5s (ns, us, ms, s), uncut.",
)  # fmt: skip
@click.option("--min-dur", metavar="TIME", help="Drop slices shorter than this, as 10us; steps and annotations stay.")
@outputs.to_option
@outputs.force_option
def slice_(  # noqa: PLR0913  One per option.
    path: str, out: str, steps: str | None, time: str | None, min_dur: str | None, to: str | None, force: bool
) -> int:
    """Write a part of a profile as a smaller profile, which every command reads.

    Several of the options narrow it down together. Device ops of the steps kept are kept however late they ran.
    What was cut out is noted in the profile. OUT's name says the format as for convert; without an ending it is
    stepscope's own.

    Exit status: 0 done, 1 the profile could not be read, 2 wrong usage or nothing left, 3 the profile was damaged.
    """
    from stepscope import pipeline

    if steps is None and time is None and min_dur is None:
        raise UsageError("say what to keep: --steps, --time or --min-dur")
    wanted_steps = None if steps is None else spans.steps(steps)
    wanted_time = None if time is None else spans.time(time)
    shortest = None if min_dur is None else spans.duration(min_dur, "--min-dur")
    writer = outputs.chosen_writer(out, to, without_ending="stepscope")
    outputs.check_target(out, path, force)
    with ProgressBar() as progress:
        profile = pipeline.open_profile(path, progress=progress)
        part = profile.slice(steps=wanted_steps, time_ns=wanted_time, min_dur_ns=shortest)
    outputs.write(part.trace, out, writer)
    return profile.exit_status
