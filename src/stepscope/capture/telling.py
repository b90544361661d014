"""What is said of a recording: its manifest, and why there is no profile."""

from __future__ import annotations

import os
import time
from typing import Any

from .backend import Backend
from .manifest import Manifest
from .options import Options, fewest_steps
from .periods import Periods
from .phases import SETTLING, RecordingPhase
from .place import rank_and_world
from .raised import raised
from .settling import Settling
from .steps import CALL, SOURCES, StepFinder
from .window import Window

JOB_ENDED = "the job ended"


def why_none(
    options: Options, ended: str | None, steps: int, *, waited: bool, lasted_s: float, ended_by: str | None = None
) -> str:
    """Words that end "no profile was written because".

    Of a recording that ``ended`` so, or never began, in a process that made so many ``steps``; ``waited`` says that the
    job's own profiler was at work when it would have begun, ``ended_by`` which exception ended the process.
    """
    fewest = fewest_steps(options, rank_and_world()[1])
    if ended not in (None, JOB_ENDED):
        return str(ended)
    if ended_by is not None:
        return f"it ended with {ended_by} {f'after {steps} steps' if steps else 'before its first step'}"
    if waited:
        return "the job's own profiler was at work, and only one can record at a time"
    if not steps:
        return f"no steps were found in {lasted_s:.1f} s; call stepscope.step() once per iteration"
    if steps < fewest:
        return f"fewer than {fewest} steps ran ({steps} did); --skip and --active take fewer"
    return f"the {steps} steps that ran were over before step time had settled; --skip begins earlier"


class Telling:
    """The half of a recorder that tells how it stands."""

    options: Options
    manifest: Manifest
    phase: RecordingPhase
    backend: Backend | None
    trial: Any
    _finder: StepFinder
    _settling: Settling
    _window: Window
    _periods: Periods
    _waited: bool
    """Whether the job's own profiler is waited for."""
    parameters: dict[str, int] | None = None
    """How many numbers of which type an optimizer changes."""
    _told: dict[str, Any] | None
    """What is said of a profile that is kept if nothing better comes."""

    def wrote_itself(self, path: str) -> None:
        """The job's own profiler wrote a trace. Never raises."""
        if os.path.dirname(os.path.abspath(path)) != os.path.abspath(self.options.out):
            self.manifest.wrote_itself(path)
            self._guarded_write()

    @property
    def seeks_calls(self) -> bool:
        """Whether calls of models may be steps, and none has been found to be one."""
        return self.phase in SETTLING and self._finder.weakest >= CALL and self._finder.anchor is None

    @property
    def seen_calls(self) -> bool:
        """Whether anything was called that may be a step when it is called again."""
        return self._finder.most > 0

    def _guarded_write(self) -> None:
        try:
            self._write()
        except Exception as error:  # noqa: BLE001  The disk is full, say: the job goes on.
            self.manifest.failed("writing the manifest", error)

    def _write(self) -> None:
        self.manifest.write(self.options, **self._facts())

    def _facts(self) -> dict[str, Any]:
        backend, source = self.backend, self._finder.source
        if self._told is not None:
            return {**self._told, "phase": self.phase.value}
        return {
            "framework": backend.framework if backend else None,
            "framework_version": backend.version() if backend else None,
            "phase": self.phase.value,
            "steps_seen": self._finder.steps,
            "steps_from": SOURCES[source] if source is not None else None,
            **self._window.facts(self._settling.last(), settled=self._settling.settled),
            "parameters": self.parameters,
            "switches": backend.switches() if backend else {},
            "no_profile": self._why_none(),
            "raised": raised(),
            **({"periods": list(self._periods.over)} if self.options.watch else {}),
            **({"trial": self.trial.facts(self._window.after)} if self.trial is not None else {}),
        }

    def _why_none(self) -> str | None:
        """Why there is no profile; None where there is one."""
        if self.manifest.files or self.phase in (
            RecordingPhase.WARMING,
            RecordingPhase.RECORDING,
            RecordingPhase.EXPORTING,
        ):
            return None
        lasted_s = (time.time_ns() - self.manifest.started_ns) / 1e9
        ended, steps, ended_by = self._window.ended, self._finder.most, raised()
        return why_none(self.options, ended, steps, waited=self._waited, lasted_s=lasted_s, ended_by=ended_by)
