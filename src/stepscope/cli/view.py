"""``stepscope view``: the report and the trace in a browser."""

from __future__ import annotations

import os
import socket
import sys
import threading
import webbrowser
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.progress import ProgressBar
from stepscope.cli.run_folders import last_runs
from stepscope.cli.streams import say
from stepscope.errors import Exit, StepscopeError, UsageError

if TYPE_CHECKING:
    from stepscope.inputs.source import Source
    from stepscope.jobs import Job
    from stepscope.pipeline import Progress
    from stepscope.report.phrases import Document
    from stepscope.web.app import Entry, Opened
    from stepscope.web.captures import Captures


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--captures", metavar="DIR", default="stepscope-captures", show_default=True,
    help="Folder of the profiles that are captured from the page.",
)  # fmt: skip
def view(paths: tuple[str, ...], port: int, no_browser: bool, captures: str) -> int:
    """Show the diagnosis of profiles, and their traces, in a browser.

    PATH is what `stepscope diagnose` takes; without it, it is the last run in stepscope-run. Ranks of one job are shown
    as the job, with each of them behind it; of two other profiles, what changed from the first to the second is shown
    too. The server answers this machine only, to who has the printed address; nothing leaves it. Its page can record a
    running job, as `stepscope capture HOST:PORT` does, and shows the new profile. Ctrl-C ends it.

    Exit status: 0 ended by Ctrl-C, 1 the first profile could not be read, 2 wrong usage.
    """
    from stepscope.web.app import App
    from stepscope.web.server import Server

    shown = entries_of(paths or tuple(last_runs(1)))
    compared = len(shown) == 2 and shown[0].opened().side is not None  # Not a job and its only rank.
    comparison = partial(comparison_of, *shown) if compared else None
    app = App(lambda: shown, comparison=comparison, captures=captures_in(Path(os.path.abspath(captures))))
    try:
        server = Server(app, port)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used: {error.strerror}") from error
    with server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        if os.environ.get("SSH_CONNECTION"):
            say(
                "from your own machine: run the line below there, then open the address above",
                f"ssh -N -L {server.server_port}:127.0.0.1:{server.server_port} {socket.gethostname()}",
            )
        elif not no_browser and _has_screen():
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
    return Exit.OK


def entries_of(paths: tuple[str, ...]) -> list[Entry]:
    """Every profile the paths lead to, the first of them read; of ranks of one job the job first."""
    from stepscope import pipeline
    from stepscope.cluster.ranks import ranks_of
    from stepscope.formats.find import MOST_PROFILES, MOST_RANKS, find
    from stepscope.web.app import Entry

    found = [find(path, most=MOST_RANKS) for path in paths]
    sources = [source for one in found for source in one.sources]
    skipped = [file for one in found for file in one.skipped]
    ranks = ranks_of(sources, skipped=skipped) if len(sources) + len(skipped) > 1 else None
    if ranks is not None:
        with ProgressBar() as progress:
            job = pipeline.read_ranks(ranks, progress=progress)
        return _of_job(job)
    most = max(MOST_PROFILES, len(paths))
    if len(sources) > most:
        say(f"{paths[0]}: the first {most} of {len(sources):,} profiles are shown; name others to see them")
    titles = _titles(sources[:most])
    entries = [Entry(title, partial(_opened, source, title)) for title, source in zip(titles, sources, strict=False)]
    with ProgressBar() as progress:
        first = _opened(sources[0], titles[0], progress)
    return [Entry(titles[0], lambda: first), *entries[1:]]


def _titles(sources: list[Source]) -> list[str]:
    """What tells each profile from the others."""
    names = [source.path.name for source in sources]
    titles = [
        name if names.count(name) == 1 else str(source.path) for name, source in zip(names, sources, strict=True)
    ]
    return [f"before: {titles[0]}", f"after: {titles[1]}"] if len(titles) == 2 else titles


def _of_job(job: Job) -> list[Entry]:
    """A job, and behind it each of its ranks, which is read when it is looked at."""
    from stepscope.web.app import Entry, Opened

    run = job.run({rank: at for at, rank in enumerate(job.ranks, 1)})
    opened = Opened(run, lambda ids: [])
    titles = [f"rank {rank}: {job.sources[rank].path.name}" for rank in job.ranks]
    ranks = [
        Entry(title, partial(_opened, job.sources[rank], title)) for rank, title in zip(job.ranks, titles, strict=True)
    ]
    return [Entry(run.title, lambda: opened), *ranks]


def _opened(source: Source, title: str, progress: Progress | None = None) -> Opened:
    from stepscope import pipeline
    from stepscope.web.app import Opened

    profile = pipeline.read(source, progress=progress)
    return Opened(replace(profile.run(), title=title), profile.arguments, lambda: profile.side)


def comparison_of(before: Entry, after: Entry) -> Document:
    """What changed from one profile to the other. Raises StepscopeError where one cannot be read."""
    from stepscope.comparison.compare import compare
    from stepscope.report import comparison

    opened = [entry.opened() for entry in (before, after)]
    sides = [each.side() for each in opened if each.side is not None]
    paths = [each.run.document["profile"]["files"][0]["path"] for each in opened]
    return comparison.make(compare(*sides), paths)


def captures_in(folder: Path) -> Captures:
    """Captures from the page; profiles lie below ``folder``, which the first one makes."""
    from importlib.util import find_spec

    from stepscope.remote.addresses import parsed
    from stepscope.remote.client import INSTALL
    from stepscope.web.captures import Captures

    def check(address: str) -> None:
        if len(parsed(address)) > 1:
            raise UsageError("the page records one address at a time; stepscope capture records several")

    def record(address: str, seconds: float, stop: threading.Event) -> Entry:
        from stepscope.inputs.source import Source
        from stepscope.remote.collect import Wanted, capture
        from stepscope.web.app import Entry

        wanted = Wanted(seconds, token=os.environ.get("STEPSCOPE_TOKEN"))
        (captured,) = capture(parsed(address), folder, wanted, stop)
        path = captured.path
        if path is None:
            raise captured.failure or StepscopeError(f"{address}: no profile came")
        title = f"captured {path.parent.name}: {path.name}"
        entry = Entry(title, partial(_opened, Source(path), title))
        entry.opened()
        return entry

    return Captures(record, check, None if find_spec("grpc") else INSTALL)


def _has_screen() -> bool:
    """Whether a browser would open in a window, not in this terminal."""
    on_unix = os.name == "posix" and sys.platform != "darwin"
    return not on_unix or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
