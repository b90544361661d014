"""``stepscope view``: the report and the trace in a browser."""

from __future__ import annotations

import os
import socket
import sys
import webbrowser
from typing import TYPE_CHECKING

import click

from stepscope.cli.progress import ProgressBar
from stepscope.cli.streams import say
from stepscope.errors import Exit, UsageError

if TYPE_CHECKING:
    from stepscope.pipeline import Progress
    from stepscope.readers.source import Source
    from stepscope.web.app import Entry, Opened


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: any that is free.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def view(paths: tuple[str, ...], port: int, no_browser: bool) -> int:
    """Show the diagnosis of profiles, and their traces, in a browser.

    PATH is what `stepscope diagnose` takes. The server answers this machine only, to who has the printed address;
    nothing leaves it. Ctrl-C ends it.

    Exit status: 0 ended by Ctrl-C, 1 the first profile could not be read, 2 wrong usage.
    """
    from stepscope.web.app import App, Server

    entries = _entries(paths)
    with ProgressBar() as progress:
        opened = _opened(entries[0][1], progress)
    shown = [_entry(title, source, opened if not at else None) for at, (title, source) in enumerate(entries)]
    try:
        server = Server(App(lambda: shown), port)
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


def _entries(paths: tuple[str, ...]) -> list[tuple[str, Source]]:
    """Every profile the paths lead to, with a title that tells it from the others."""
    from stepscope import pipeline

    sources = [source for path in paths for source in pipeline.find(path).sources]
    names = [source.path.name for source in sources]
    return [
        (name if names.count(name) == 1 else str(source.path), source)
        for name, source in zip(names, sources, strict=True)
    ]


def _entry(title: str, source: Source, opened: Opened | None) -> Entry:
    from stepscope.web.app import Entry

    return Entry(title, lambda: opened or _opened(source, None))


def _opened(source: Source, progress: Progress | None) -> Opened:
    from stepscope import pipeline
    from stepscope.web.app import Opened

    profile = pipeline.read(source, progress=progress)
    return Opened(profile.run(), profile.arguments)


def _has_screen() -> bool:
    """Whether a browser would open in a window, not in this terminal."""
    on_unix = os.name == "posix" and sys.platform != "darwin"
    return not on_unix or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
