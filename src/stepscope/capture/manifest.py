"""What one process recorded, and what failed: a JSON file beside its profiles (``stepscope.capture/1``)."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import Any

from .files import moved, written
from .options import Options
from .place import file_stem, host, rank_and_world

SCHEMA = "stepscope.capture/1"
ENDING = ".stepscope.json"
_WITH_METRICS = 64
"""Of many windows the last so many keep what was counted in them: the file is written anew with each."""
_OWN_TRACES = 16


def command() -> list[str]:
    """How this process's program was started, without its Python: a script or ``-m`` and a module, and arguments."""
    words: list[str] = list(getattr(sys, "argv", []))
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is None or not words or spec.name == "__main__":  # "__main__" of a folder or archive, which the path names.
        return words
    return ["-m", spec.name.removesuffix(".__main__"), *words[1:]]


class Manifest:
    """Facts of one recording, written again whenever they change, so that a process that is killed leaves them too."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.started_ns = time.time_ns()
        self.files: list[dict[str, Any]] = []
        self.failures: list[dict[str, str]] = []
        self.own_traces: list[str] = []
        """Traces that the job's own profiler wrote."""
        self.facts: dict[str, Any] = {"framework": None, "framework_version": None}
        self._path: str | None = None
        self._place: tuple[int | None, int | None] = (None, None)

    def failed(self, when: str, error: BaseException) -> None:
        """Note what went wrong; the last hundred are kept."""
        text = " ".join(str(error).split())[:1_000]
        self.failures = [*self.failures[-99:], {"when": when, "what": f"{type(error).__name__}: {text}"}]

    def wrote(self, paths: list[str], **facts: Any) -> None:
        """Note finished files, with what else is known of each."""
        self.files += [
            {"path": os.path.relpath(path, self.folder), "bytes": os.path.getsize(path), **facts} for path in paths
        ]
        for file in self.files[:-_WITH_METRICS]:
            file.pop("metrics", None)
            file.pop("looks", None)

    def wrote_itself(self, path: str) -> None:
        """Note a trace that the job's own profiler wrote; the last few are kept."""
        path = os.path.abspath(path)
        self.own_traces = [*(each for each in self.own_traces if each != path), path][-_OWN_TRACES:]

    def keep(self, limit: int) -> None:
        """Remove the oldest files while all have more than ``limit`` bytes; the newest stays."""
        while len(self.files) > 1 and sum(file["bytes"] for file in self.files) > limit:
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, self.files[0]["path"]))
            self.files = self.files[1:]

    def write(self, options: Options | None, **facts: Any) -> str:
        """Write the file, in one step; its path. Raises OSError where the disk does."""
        self.facts.update(facts)
        place = rank_and_world()
        # A job that has ended its process group no longer knows.
        rank, world = self._place = place if place[0] is not None else self._place
        os.makedirs(self.folder, exist_ok=True)
        if self._path is None:
            self._path = os.path.join(self.folder, file_stem() + ENDING)
        document = {
            "schema": SCHEMA,
            "host": host(),
            "pid": os.getpid(),
            "rank": rank,
            "world_size": world,
            "python": sys.version.split()[0],
            "command": command(),
            "started_ns": self.started_ns,
            "options": dict(vars(options)) if options is not None else None,
            **self.facts,
            "files": self.files,
            "own_traces": self.own_traces,
            "failures": self.failures,
        }
        part = self._path + ".part"
        written(part, json.dumps(document, indent=1, default=str).encode())
        moved(part, self._path)
        return self._path
