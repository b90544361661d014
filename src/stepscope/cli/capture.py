"""``stepscope capture``: record a job that runs already."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from stepscope.cli import spans
from stepscope.cli.streams import say
from stepscope.errors import Exit, StepscopeError, UsageError
from stepscope.remote import kineto_daemon
from stepscope.units import NS_PER_S

_DEFAULTS = kineto_daemon.Request()
_LONGEST_S = 3600.0


@click.command()
@click.option(
    "--pid", "pids", metavar="PID[,PID]...", required=True,
    help="PyTorch processes on this machine that were started with KINETO_USE_DAEMON=1, or what launched them.",
)  # fmt: skip
@click.option("--duration", metavar="TIME", help="Record so long, as 2s or 500ms. Default: 2s.")
@click.option("--steps", type=click.IntRange(1), metavar="N", help="Record so many optimizer steps instead.")
@click.option("-o", "--out", metavar="DIR", default="stepscope-capture", show_default=True, help="Folder of profiles.")
@click.option(
    "--stacks/--no-stacks", default=True, help="Record Python stacks, for source lines; --no-stacks leaves them out."
)
@click.option("--shapes", is_flag=True, help="Record shapes.")
@click.option("--memory", is_flag=True, help="Record allocations.")
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0.1), default=_DEFAULTS.timeout_s, show_default=True, metavar="S",
    help="How long a profile may take to arrive.",
)  # fmt: skip
def capture(pids: str, duration: str | None, steps: int | None, out: str, **chosen: Any) -> int:
    """Record a PyTorch job that runs already; neither its script nor its process is touched.

    The job must have been started with KINETO_USE_DAEMON=1 in its environment. A process counts as recorded only when
    its profile has arrived, is readable and is not empty.

    Exit status: 0 every process was recorded, 1 one was not, 2 wrong usage.
    """
    if duration is not None and steps is not None:
        raise UsageError("--duration and --steps say the same in two ways: give one")
    duration_s = _DEFAULTS.duration_s if duration is None else spans.duration(duration, "--duration") / NS_PER_S
    if not 0.001 <= duration_s <= _LONGEST_S:
        raise UsageError(f"--duration {duration}: give 1ms to {_LONGEST_S:g}s")
    request = kineto_daemon.Request(duration_s, steps, **chosen)
    outcomes = kineto_daemon.capture(_pids(pids), Path(os.path.abspath(out)), request)
    arrived = [_said(outcome) for outcome in outcomes]
    return Exit.OK if all(arrived) else Exit.UNREADABLE


def _pids(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isascii() and word.isdecimal() and 0 < int(word) < 1 << 31 for word in words):
        raise UsageError(f"--pid {text}: give numbers of processes, as 4711 or 4711,4712")
    return [int(word) for word in words]


def _said(outcome: kineto_daemon.Outcome) -> bool:
    """Say what became of one process; whether a profile of it has arrived."""
    if outcome.profile is None:
        say(f"process {outcome.pid}: no profile: {outcome.reason}")
        return False
    from stepscope import pipeline  # Reads profiles.

    try:
        pipeline.open(outcome.profile)
    except StepscopeError as error:
        say(f"process {outcome.pid}: its profile says nothing: {error.sentence}", *error.details)
        return False
    print(outcome.profile)
    return True
