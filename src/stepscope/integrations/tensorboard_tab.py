"""What TensorBoard's tab shows: the pages of every profile below the log directory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope import pipeline
from stepscope.formats.find import every
from stepscope.inputs.source import Source
from stepscope.web.app import App
from stepscope.web.entries import Entry, Opened

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_PREFIX = "/data/plugin/stepscope"
_MODULE = b"export function render() { document.location.href = 'index.html'; }\n"
"""TensorBoard imports it in a frame of its own; the frame then shows the pages."""
_STALE_S = 20
"""A look at the log directory serves this long; TensorBoard itself looks every 5 s, at files it has open."""
_PATIENCE_S = 1.0
"""How long TensorBoard waits for the first look before it draws its tabs."""

_Wsgi = Callable[["WSGIEnvironment", "StartResponse"], Iterable[bytes]]


class Tab:
    """The profiles below some folders, looked for in the background."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders
        self._known: dict[tuple[str, int], Entry] = {}  # Only ever grows: requests name entries by position.
        self._looked = threading.Event()
        self._lock = threading.Lock()
        self._last = float("-inf")
        app = App(lambda: list(self._known.values()), prefix=_PREFIX)
        pages = ("/index.html", "/app.js", "/app.css", "/worker.js", "/api/*")
        self.routes: dict[str, _Wsgi] = {"/index.js": _index, **dict.fromkeys(pages, app)}

    @classmethod
    def of(cls, logdir: str | None, spec: str | None) -> Tab:
        """From ``--logdir`` and ``--logdir_spec`` (``name:path,…``); places that are no folders hold nothing."""
        given = [logdir or "", *(part.split(":", 1)[-1] for part in (spec or "").split(","))]
        return cls([os.path.expanduser(folder) for folder in given if folder])

    def is_active(self) -> bool:
        """Whether a profile is known; starts a look where the last was long ago."""
        with self._lock:
            if time.monotonic() - self._last > _STALE_S:
                self._last = time.monotonic()
                threading.Thread(target=self._look, name="stepscope-look", daemon=True).start()
        self._looked.wait(_PATIENCE_S)
        return bool(self._known)

    def _look(self) -> None:
        try:
            for folder in filter(os.path.isdir, self._folders):
                for source in every(folder):
                    self._add(folder, source)
        finally:
            self._looked.set()

    def _add(self, folder: str, source: Source) -> None:
        key = (str(source.path), source.size)
        if key not in self._known:
            inside = Path(source.path)
            title = str(inside.relative_to(folder)) if inside.is_relative_to(folder) else str(inside)
            self._known[key] = Entry(title, partial(_opened, source))


def _opened(source: Source) -> Opened:
    profile = pipeline.read(source)
    return Opened(profile.run(), profile.arguments, query=profile.query)


def _index(_: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    headers = [("Content-Type", "text/javascript; charset=utf-8"), ("X-Content-Type-Options", "nosniff")]
    start_response("200 OK", [*headers, ("Content-Length", str(len(_MODULE)))])
    return [_MODULE]
