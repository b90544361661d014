"""``stepscope capture``: record jobs that run already, and say where their steps' time goes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.cli import spans
from stepscope.cli.streams import say, stdout_width, wants_color
from stepscope.errors import Exit, StepscopeError, UsageError
from stepscope.remote.limits import CAPTURE_BYTES, CAPTURE_WAIT_S
from stepscope.units import NS_PER_S, format_bytes

if TYPE_CHECKING:
    from stepscope.remote.collect import Captured, CaptureWanted


@click.command()
@click.argument("addresses", metavar="[HOST:PORT[,HOST:PORT]...]", required=False)
@click.option(
    "--pid", "pids", metavar="PID[,PID]...",
    help="PyTorch processes on this machine that were started with KINETO_USE_DAEMON=1, or what launched them.",
)  # fmt: skip
@click.option(
    "--inject", is_flag=True,
    help="With --pid: also those not started so. gdb stops each for a moment, and has its Python run a file of ours.",
)  # fmt: skip
@click.option("--duration", metavar="TIME", help="Record so long, as 2s or 500ms. Default: 2s.")
@click.option("--steps", type=click.IntRange(1), metavar="N", help="Record so many steps instead (PyTorch).")
@click.option(
    "-o", "--out", metavar="DIR", default="stepscope-capture", show_default=True,
    help="Folder of profiles; those of servers lie in DIR/plugins/profile/TIME, as in TensorBoard's.",
)  # fmt: skip
@click.option(
    "--stacks/--no-stacks", default=True, help="Record Python stacks, for source lines; --no-stacks leaves them out."
)
@click.option("--shapes", is_flag=True, help="Record shapes (PyTorch).")
@click.option("--memory", is_flag=True, help="Record allocations (PyTorch).")
@click.option(
    "--token", envvar="STEPSCOPE_TOKEN", show_envvar=True, metavar="TEXT", help="What the server's start_server got."
)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0.1), default=CAPTURE_WAIT_S, show_default=True, metavar="S",
    help="How long a profile may take to arrive once its recording is over.",
)  # fmt: skip
@click.option(
    "--max-bytes", type=click.IntRange(1), default=CAPTURE_BYTES, show_default=True, metavar="N",
    help="Largest profile that is received from a server.",
)  # fmt: skip
def capture(addresses: str | None, pids: str | None, inject: bool, out: str, **chosen: Any) -> int:
    """Record jobs that run already, and say where their steps' time goes.

    HOST:PORT is where a job's profiler server listens: that of jax.profiler.start_server,
    tf.profiler.experimental.server.start, torch_xla's start_server or, in a PyTorch job, stepscope.start_server;
    --pid names PyTorch processes without one. Several are recorded at the same time; the first is then diagnosed.

    Exit status: 0 every job was recorded, 1 none was, 2 wrong usage, 3 some were.
    """
    if (addresses is None) == (pids is None):
        raise UsageError(
            "say what to record: HOST:PORT of a job's profiler server, or --pid of processes under KINETO_USE_DAEMON=1"
        )
    wanted = _wanted(**chosen)
    folder = Path(os.path.abspath(out))
    if addresses:
        captured = _from_servers(addresses, folder, wanted)
    else:
        captured = _from_processes(str(pids), folder, wanted, inject=inject)
    arrived = []
    for each in captured:
        if each.path is None or each.profile is None:
            assert each.failure is not None
            say(each.failure.sentence, *each.failure.details)
            arrived.append(False)
            continue
        say(f"{each.who}: captured {format_bytes(each.path.stat().st_size)}: {each.path}")
        if not any(arrived):
            _diagnosed(each)
        arrived.append(True)
    if arrived.count(True) > 1:
        say(f"the first of {arrived.count(True)} profiles was diagnosed: stepscope diagnose reads the others")
    return Exit.OK if all(arrived) else Exit.PARTIAL if any(arrived) else Exit.UNREADABLE


def _wanted(duration: str | None, steps: int | None, **chosen: Any) -> CaptureWanted:
    from stepscope.remote.collect import CaptureWanted  # Not loaded for --help.

    if duration is not None and steps is not None:
        raise UsageError("--duration and --steps say the same in two ways: give one")
    if duration is not None:
        chosen["duration_s"] = spans.duration(duration, "--duration") / NS_PER_S
    return CaptureWanted(steps=steps, **chosen)


def _from_servers(addresses: str, out: Path, wanted: CaptureWanted) -> Iterator[Captured]:
    from stepscope.remote.addresses import parsed
    from stepscope.remote.collect import capture

    return capture(parsed(addresses), out, wanted)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _DIGITS and 0 < int(word) < 1 << 31


_DIGITS = 20
"""No number of a process has more, with zeros before it or not."""


def _from_processes(pids: str, out: Path, wanted: CaptureWanted, *, inject: bool) -> Iterator[Captured]:
    from stepscope.remote import injection, kineto_daemon
    from stepscope.remote.collect import Captured, read

    words = pids.split(",")
    if not all(_is_number(word) for word in words):
        raise UsageError(f"--pid {pids}: give numbers of processes, as 4711 or 4711,4712")
    request = kineto_daemon.Request(
        wanted.duration_s, wanted.steps, wanted.stacks, wanted.shapes, wanted.memory, wanted.timeout_s
    )
    by = injection if inject else kineto_daemon
    for outcome in by.capture([int(word) for word in words], out, request):
        who = f"process {outcome.pid}"
        try:
            if outcome.profile is None:
                raise StepscopeError(f"{who}: no profile: {outcome.reason}")
            yield Captured(who, outcome.profile, read(who, outcome.profile))
        except StepscopeError as error:
            yield Captured(who, failure=error)


def _diagnosed(captured: Captured) -> None:
    """The diagnosis of one job, on stdout."""
    from stepscope.report import terminal

    assert captured.profile is not None
    document = captured.profile.brief()
    sys.stdout.write(terminal.render(document, width=stdout_width(), color=wants_color(), verbose=False))
    sys.stdout.flush()
