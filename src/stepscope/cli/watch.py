"""What ``stepscope run --watch`` does beside the job: reads its windows as they come, and says when the run drifts."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import threading
import time
from pathlib import Path
from typing import Any

from stepscope.capture.manifest import ENDING
from stepscope.capture.results import Recording, recordings
from stepscope.cli.early import give_way
from stepscope.cli.streams import say
from stepscope.diagnosis.drift import DriftChange, RecordedWindow, RunCourse, UnrecordedPeriod
from stepscope.errors import StepscopeError
from stepscope.report.labels import CATEGORIES
from stepscope.units import format_bytes, format_ns

SCHEMA = "stepscope.watch/1"
WATCH_ENDING = ".watch.jsonl"
EVERY_S = 1.0
"""How often the folder is looked at."""
_NAMED = 3
"""Categories named as causes of a drift."""
_NO_CAUSE = "what was recorded does not say why"


class Watch:
    """Follows the processes of a run: ``start`` when the job runs, ``finish`` when it has ended."""

    def __init__(self, folder: Path, since_ns: int) -> None:
        self._folder, self._since_ns = folder, since_ns
        self._followed: dict[Path, _Followed] = {}
        self._over = threading.Event()
        self._failed: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="stepscope-watch", daemon=True)

    def start(self) -> None:
        """Look at the folder from now on, on a thread of its own."""
        self._thread.start()

    def finish(self) -> None:
        """Read what came last, and sum the run up. Raises what the thread failed with."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        if self._failed is not None:
            raise self._failed
        self._look()
        for each in self._followed.values():
            say(*each.summary())

    def _run(self) -> None:
        give_way()
        try:
            while not self._over.wait(EVERY_S):
                self._look()
        except Exception as error:  # noqa: BLE001  Raised again by ``finish``: the job runs on.
            self._failed = error

    def _look(self) -> None:
        for each in recordings(self._folder, self._since_ns):
            if each.facts.get("periods") is not None and each.profiles:
                if each.manifest not in self._followed:
                    self._followed[each.manifest] = _Followed(each)
                self._followed[each.manifest].look(each)


class _Followed:
    """One process; what is kept of it is bounded, however long it runs."""

    def __init__(self, each: Recording) -> None:
        self.path = each.manifest.with_name(each.manifest.name.removesuffix(ENDING) + WATCH_ENDING)
        """The file that holds it all: a line per window, period and change."""
        self._who = each.who
        self._course = RunCourse()
        self._names: set[str] = set()
        self._kept = self._windows = self._unread = self._periods = self._steps = 0
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._changes: list[str] = []
        about = {key: each.facts.get(key) for key in ("host", "pid", "rank", "command", "framework")}
        self._write("run", schema=SCHEMA, **about)

    def look(self, each: Recording) -> None:
        """Take what is new, in the order of its steps."""
        files = each.facts["files"]
        new = [file for file in files if file["path"] not in self._names]
        self._names = {file["path"] for file in files}
        self._kept = sum(file["bytes"] for file in files)
        periods = [period for period in each.facts["periods"] if period["number"] >= self._periods]
        for one in sorted([*new, *periods], key=lambda fact: int(fact["first_step"] or 0)):
            if "path" in one:
                self._window(each.manifest.parent / one["path"], int(one["first_step"] or 0))
            else:
                self._period(one)

    def _window(self, path: Path, first_step: int) -> None:
        from stepscope import pipeline  # Reads profiles.

        self._windows += 1
        try:
            told = pipeline.open_profile(path).brief()["summary"]
        except StepscopeError as error:  # It was removed meanwhile, for one.
            self._unread += 1
            self._write("window", first_step=first_step, profile=path.name, unread=error.sentence)
            return
        step_ns, parts = told["step_time_ns"]["median"], told["parts_ns_per_step"]
        self._write(
            "window", first_step=first_step, profile=path.name, step_ns=step_ns,
            device_busy_share=told["device_busy_share"], parts_ns_per_step=parts,
        )  # fmt: skip
        if step_ns is not None and parts:
            self._say(self._course.window(RecordedWindow(first_step, step_ns, parts)))

    def _period(self, facts: dict[str, Any]) -> None:
        self._periods = facts["number"] + 1
        self._steps += facts["steps"]
        self._write("period", **facts)
        if facts["block_ns"]:
            self._last_ns = int(statistics.median(facts["block_ns"]))
            self._first_ns = self._first_ns or self._last_ns
        change = self._course.period(UnrecordedPeriod(facts["first_step"], tuple(facts["block_ns"])))
        self._say([change] if change else [])

    def _say(self, changes: list[DriftChange]) -> None:
        for change in changes:
            self._changes.append(_words(change))
            self._write("drift", **dataclasses.asdict(change))
            say(f"{self._who}: {self._changes[-1]}", f"more in {self.path}")

    def summary(self) -> list[str]:
        """The whole run in a sentence, and what changed in it."""
        text = f"{self._who} was watched over {self._steps} steps in {_count(self._periods, 'period')}"
        if self._first_ns is not None and self._last_ns is not None:
            text += f": a step took {format_ns(self._first_ns)} at first and {format_ns(self._last_ns)} at last"
        windows = f"{_count(self._windows, 'window')} recorded, {len(self._names)} kept ({format_bytes(self._kept)})"
        unread = [f"{self._unread} of them could not be read"] if self._unread else []
        return [text, *(self._changes or ["no drift was found"]), windows, *unread, str(self.path)]

    def _write(self, kind: str, **facts: Any) -> None:
        line = json.dumps({"kind": kind, "time_ns": time.time_ns(), **facts}) + "\n"
        size = self.path.stat().st_size if self.path.exists() else 0
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as error:  # A full disk takes a part of a line.
            if self.path.exists():
                os.truncate(self.path, size)
            raise OSError(error.errno, error.strerror, str(self.path)) from error


def _words(change: DriftChange) -> str:
    before, after = change.drift.before_ns, change.drift.after_ns
    if change.category is not None:
        return (
            f"{CATEGORIES[change.category].words}: {format_ns(after)} of each step instead of {format_ns(before)}, "
            f"from step {change.first_step} on"
        )
    words = (
        f"steps have become {'slower' if after > before else 'faster'}: {format_ns(after)} instead of "
        f"{format_ns(before)}, from step {change.first_step} on"
    )
    causes = [f"{CATEGORIES[name].words} {format_ns(abs(ns))}" for name, ns in list(change.causes.items())[:_NAMED]]
    more = "more" if after > before else "less"
    return f"{words}; recorded steps show {more} of: {', '.join(causes)}" if causes else f"{words}; " + _NO_CAUSE


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
