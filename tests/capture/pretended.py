"""A profiler and a training loop that are pretended, with their clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.capture import recorder as module
from stepscope.capture import stretches, window
from stepscope.capture.backend import Backend
from stepscope.capture.options import Options
from stepscope.capture.recorder import Recorder
from stepscope.capture.steps import OPTIMIZER

MS = 1_000_000


class Pretended(Backend):
    """Writes down what is asked of it; ``failing`` methods raise."""

    framework = "pretended"
    warm_up = 1
    content: Callable[[], bytes] = staticmethod(lambda: b"x")
    """What a profile holds."""

    def __init__(self, options: Options, failing: dict[str, Exception], calls: list[Any]) -> None:
        super().__init__(options)
        self.failing, self.calls = failing, calls

    def _asked(self, method: str, *what: object) -> None:
        self.calls.append((method, *what))
        if method in self.failing:
            raise self.failing[method]

    def prepare(self, number: int) -> None:
        self._asked("prepare", number, self.options.stacks)

    def begin(self, number: int | None) -> None:
        self._asked("begin", number)

    def mark(self, number: int) -> None:
        self._asked("mark", number)

    def stop(self) -> None:
        self._asked("stop")

    def discard(self) -> None:
        self._asked("discard")

    def export(self, folder: str) -> list[str]:
        self._asked("export")
        exported = sum(call[0] == "export" for call in self.calls)
        path = Path(folder) / f"profile{exported}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self.content())
        return [str(path)]

    def lighter(self) -> Backend | None:
        if not self.options.stacks:
            return None
        failing = {} if "only heavy" in str(self.failing.get("prepare")) else self.failing
        return Pretended(replace(self.options, stacks=False), failing, self.calls)


class Job:
    """A training loop on a pretended clock."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch, failing: dict[str, Exception], **chosen: Any) -> None:
        self.now = 0
        for each in (stretches, window):
            patch.setattr(each, "time", SimpleNamespace(monotonic=lambda: self.now / 1e9, sleep=lambda _: None))
        patch.setattr(module, "perf_counter_ns", lambda: self.now)
        patch.setattr(module, "Watchdog", lambda *_: SimpleNamespace(start=lambda: None))
        self.calls: list[Any] = []
        self.taken_out = 0
        self.options = Options(out=str(tmp_path), **chosen)
        self.recorder = Recorder(self.options, lambda options, _: Pretended(options, failing, self.calls))
        self.recorder.on_done.append(self._take_out)

    def _take_out(self) -> None:
        self.taken_out += 1

    def steps(self, count: int, ms: Callable[[int], int] = lambda _: 2, source: int = OPTIMIZER) -> None:
        for number in range(count):
            self.now += ms(number) * MS
            self.recorder.call(source, ("pretended", "sgd" if source == OPTIMIZER else "model"))
            if self.recorder._exporting is not None:
                self.recorder._exporting.join()

    def end(self) -> dict[str, Any]:
        """Finish the process; its manifest."""
        self.recorder.finish()
        (path,) = Path(self.options.out).glob("*.stepscope.json")
        manifest: dict[str, Any] = json.loads(path.read_text())
        return manifest
