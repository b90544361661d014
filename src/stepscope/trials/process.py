"""One process of the user's job: started as its author would, ended once what was asked for is noted."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope.capture import launch
from stepscope.capture.options import Options
from stepscope.capture.results import Recording, recordings

_EVERY_S = 0.1
_GRACE_S = 3.0
"""A job that was asked to end gets this long."""
_LOG_BYTES = 4_096
"""Of a job's standard error so much is looked at."""


@dataclass(frozen=True, slots=True)
class TrialRun:
    """What one start of the job left."""

    recordings: tuple[Recording, ...]
    """Of the processes that made steps, ranks in order."""
    status: int | None
    """Its exit status where it ended by itself; None where it was ended, as all was noted."""
    wall_s: float
    last_words: str
    """The last line of its standard error."""
    late: bool
    """Whether it was ended because its time was up."""

    @property
    def step_ns(self) -> float | None:
        """The mean of its timed steps, of the slowest process; None where none was timed."""
        timed = ((trial_of(each).get("times_ns") or (), _batches(each)) for each in self.recordings)
        means = [sum(times) / sum(batches) for times, batches in timed if times]
        return max(means, default=None)

    @property
    def steps(self) -> int:
        """Steps timed."""
        return max((sum(_batches(each)) for each in self.recordings), default=0)

    @property
    def values(self) -> list[float | None]:
        """What its first process said of its steps: losses, from the first step on."""
        if not self.recordings:
            return []
        noted = trial_of(self.recordings[0])
        values, batches = noted.get("values") or (), noted.get("batches") or ()
        # Of several batches at once the value is that after the last.
        held = [1] * (len(values) - len(batches)) + [*batches]
        padded = ([None] * (number - 1) + [value] for value, number in zip(values, held, strict=False))
        return [value for step in padded for value in step]

    @property
    def files(self) -> list[str]:
        """Files that it wrote, and where they are no one's temporary ones."""
        return sorted({name for each in self.recordings for name in trial_of(each).get("files") or ()})

    def memory(self, kind: str) -> int | None:
        """The most bytes that a process held: ``host_bytes`` or ``device_bytes``."""
        return max((size for each in self.recordings if (size := trial_of(each).get(kind)) is not None), default=None)

    def cure(self, spec: str) -> dict[str, Any]:
        """What became of a cure: ``applied``, ``places``, ``refused``; of the process in which it came furthest."""
        told = [(each.facts.get("cures") or {}).get(spec) or {} for each in self.recordings]
        return max(told, key=lambda one: one.get("applied", 0), default={})


def _batches(recording: Recording) -> list[int]:
    """How many batches each timed step held."""
    noted = trial_of(recording)
    timed = len(noted.get("times_ns") or ())
    batches = [max(1, number) for number in noted.get("batches") or ()][-timed:] if timed else []
    return [1] * (timed - len(batches)) + batches


def trial_of(recording: Recording) -> dict[str, Any]:
    """What a process noted of its trial."""
    noted = recording.facts.get("trial")
    return noted if isinstance(noted, dict) else {}


@dataclass(frozen=True, slots=True)
class Command:
    """How the user starts it, and for how long."""

    words: tuple[str, ...]
    folder: Path
    """Logs and notes of each start lie below it."""

    def start(self, name: str, options: Options, more: Mapping[str, str], limit_s: float) -> TrialRun:
        """Run it until all of its processes that make steps have noted theirs, it ends, or ``limit_s`` is over.

        Its streams go to files, its input is empty. Raises OSError where it cannot be started.
        """
        folder = self.folder / name
        folder.mkdir(parents=True)
        options = Options(**{**vars(options), "out": str(folder)})
        environment = launch.environment_for(options, {**os.environ, **more})
        began, since = time.monotonic(), time.time_ns()
        with (folder / "stdout.txt").open("wb") as out, (folder / "stderr.txt").open("wb") as err:
            process = subprocess.Popen(
                self.words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
            try:
                late = not _wait(process, lambda: _all_noted(recordings(folder, since)), began + limit_s)
                status = process.poll()
            finally:
                _end(process)
        timed = tuple(each for each in recordings(folder, since) if each.steps)
        return TrialRun(timed, status, time.monotonic() - began, _last_words(folder / "stderr.txt"), late)


def _wait(process: subprocess.Popen[bytes], is_over: Callable[[], bool], until: float) -> bool:
    """Whether the job ended or all is noted before its time was up."""
    while time.monotonic() < until:
        if process.poll() is not None or is_over():
            return True
        time.sleep(_EVERY_S)
    return False


def _all_noted(runs: Sequence[Recording]) -> bool:
    made_steps = [each for each in runs if each.steps]
    worlds = {each.facts.get("world_size") for each in made_steps}
    wanted = max((world for world in worlds if isinstance(world, int)), default=1)
    return len(made_steps) >= min(wanted, len(runs)) > 0 and all(each.is_over for each in made_steps)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End it and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LOG_BYTES))
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else ""
