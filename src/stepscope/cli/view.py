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
from stepscope.cli.timings import now, timings_option, watched
from stepscope.errors import Exit, StepscopeError, UsageError

if TYPE_CHECKING:
    from stepscope.cluster.ranks import Ranks
    from stepscope.document.comparison import ComparisonDocument
    from stepscope.inputs.source import Source
    from stepscope.pipeline import Progress
    from stepscope.web.captures import Captures
    from stepscope.web.entries import Entry, Opened
    from stepscope.web.server import PageServer

_LOOKS_S = 0.2
"""How often the server looks whether it is to end."""


@click.command()
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@timings_option
@click.option(
    "--captures", metavar="DIR", default="stepscope-captures", show_default=True,
    help="Folder of the profiles that are captured from the page.",
)  # fmt: skip
def view(paths: tuple[str, ...], port: int, no_browser: bool, captures: str) -> int:
    """Show the diagnosis of profiles, and their traces, in a browser.

    PATH is what `stepscope diagnose` takes. Ranks of one job are shown as the job, with each of them behind it; of two
    other profiles also what changed. The server answers this machine only, to who has the printed address. Its page
    can record a running job, as `stepscope capture HOST:PORT` does. Ctrl-C ends it.

    Exit status: 0 ended by Ctrl-C, 1 the first profile could not be read, 2 wrong usage.
    """
    from stepscope.web.app import App
    from stepscope.web.server import PageServer

    shown = entries_of(paths or tuple(last_runs(1)))
    app = App(lambda: shown, comparison=comparison_of, captures=captures_in(Path(os.path.abspath(captures))))
    try:
        server = PageServer(app, port)
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
            _serve(server, shown[0])
        except KeyboardInterrupt:
            say("ended")
    return Exit.OK


def _serve(server: PageServer, first: Entry) -> None:
    """Answer at once, and meanwhile read the first profile. Raises StepscopeError where it cannot be read."""
    answering = threading.Thread(target=server.serve_forever, args=(_LOOKS_S,), name="stepscope-view", daemon=True)
    answering.start()
    try:
        with ProgressBar() as progress:
            now("reading")
            first.reading.also = watched(progress)
            first.opened()
        first.reading.also = None
        now("serving")
        while answering.is_alive():
            answering.join(_LOOKS_S)
    finally:
        server.shutdown()


def entries_of(paths: tuple[str, ...]) -> list[Entry]:
    """Every profile the paths lead to, none of them read yet; of ranks of one job the job first."""
    from stepscope.cluster.ranks import ranks_of
    from stepscope.formats.find import MOST_PROFILES, MOST_RANKS, find

    inputs = [find(path, most=MOST_RANKS) for path in paths]
    sources = [source for one in inputs for source in one.sources]
    skipped = [file for one in inputs for file in one.skipped]
    ranks = ranks_of(sources, skipped=skipped) if len(sources) + len(skipped) > 1 else None
    if ranks is not None:
        return _of_job(ranks)
    most = max(MOST_PROFILES, len(paths))
    if len(sources) > most:
        say(f"{paths[0]}: the first {most} of {len(sources):,} profiles are shown; name others to see them")
    titles = _titles(sources[:most])
    return [_entry(source, title) for title, source in zip(titles, sources, strict=False)]


def _entry(source: Source, title: str) -> Entry:
    from stepscope.web.entries import Entry, ReadingProgress

    reading = ReadingProgress()
    return Entry(title, partial(_opened, source, title, reading), reading)


def _titles(sources: list[Source]) -> list[str]:
    """What tells each profile from the others."""
    names = [source.path.name for source in sources]
    titles = [name if names.count(name) == 1 else str(source.path) for name, source in zip(names, sources, strict=True)]
    return [f"before: {titles[0]}", f"after: {titles[1]}"] if len(titles) == 2 else titles


def _of_job(ranks: Ranks) -> list[Entry]:
    """A job, and behind it each of its ranks; each is read when it is looked at."""
    from stepscope.web.entries import Entry, ReadingProgress

    titles = {rank: f"rank {rank}: {source.path.name}" for rank, source in ranks.sources.items()}
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(one.path)) for one in ranks.sources.values()])
    reading = ReadingProgress()
    job = Entry(os.path.basename(folder) or f"{len(titles)} ranks", partial(_job_opened, ranks, reading), reading)
    return [job, *(_entry(source, titles[rank]) for rank, source in ranks.sources.items())]


def _job_opened(ranks: Ranks, progress: Progress) -> Opened:
    from stepscope import pipeline
    from stepscope.web.entries import Opened

    job = pipeline.read_ranks(ranks, progress=progress)
    there = {rank: at for at, rank in enumerate(ranks.sources, 1) if rank in job.ranks}
    return Opened(job.run(there), lambda ids: [])


def _opened(source: Source, title: str, progress: Progress | None = None) -> Opened:
    from stepscope import pipeline
    from stepscope.web.entries import Opened

    profile = pipeline.read(source, progress=progress)
    run = replace(profile.run(), title=title)
    return Opened(run, profile.arguments, lambda: profile.side, profile.query)


def comparison_of(before: Entry, after: Entry) -> ComparisonDocument:
    """What changed from one profile to the other. Raises StepscopeError where one cannot be read."""
    from stepscope.comparison.compare import compare
    from stepscope.report import comparison

    opened = [entry.opened() for entry in (before, after)]
    sides = [each.side() for each in opened if each.side is not None]
    if len(sides) < 2:
        raise UsageError("a job is compared with another by stepscope compare; here its ranks can be")
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
        from stepscope.remote.collect import CaptureWanted, capture
        from stepscope.web.entries import Entry

        wanted = CaptureWanted(seconds, token=os.environ.get("STEPSCOPE_TOKEN"))
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
