"""The unchanged job, recorded and diagnosed: what its findings call for is tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope import pipeline
from stepscope.capture.options import Options
from stepscope.capture.results import Recording
from stepscope.capture.steps import BATCH, SOURCES
from stepscope.cluster.ranks import ranks_of
from stepscope.errors import InputError
from stepscope.formats.find import joined
from stepscope.inputs.source import Source
from stepscope.jobs import Job
from stepscope.pipeline import Profile
from stepscope.trials.process import Command, TrialRun

if TYPE_CHECKING:
    from stepscope.document.report import Report

NAME = "recorded"
_LONGEST_S = 1800.0
"""A job whose steps are not recorded by then is given up."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is known of the job before anything is tried."""

    ran: TrialRun
    document: Report
    """The diagnosis, ``stepscope.report/1``."""
    first: Recording

    @property
    def step_ns(self) -> int | None:
        """A step while nothing was recorded."""
        unrecorded = (self.first.facts.get("step_ns") or {}).get("unrecorded")
        return unrecorded if isinstance(unrecorded, int) else None

    @property
    def of_keras(self) -> bool:
        """Whether Keras's loop makes the steps."""
        return bool(self.first.facts.get("steps_from") == SOURCES[BATCH])

    @property
    def first_step(self) -> int:
        """The step at which recording began: the job's start-up was over."""
        return int((self.first.facts.get("window") or {}).get("first_step") or 0)

    @property
    def cores(self) -> int:
        """Cores for each process of the job."""
        machine = self.first.facts.get("machine") or {}
        return max(1, (machine.get("cores") or 1) // (machine.get("ranks_here") or 1))

    @property
    def script(self) -> Path | None:
        """The file that the job runs."""
        command = self.first.facts.get("command") or [""]
        path = Path(str(command[0]))
        return path.absolute() if path.suffix == ".py" and path.is_file() else None


def recorded(job: Command, budget_s: float) -> Baseline:
    """Record the job once. Raises InputError where there are no steps to time, OSError where it cannot be started."""
    ran = job.start(NAME, Options(notes_writes=True), {}, min(budget_s, _LONGEST_S))
    with_profiles = [each for each in ran.recordings if each.profiles]
    if not with_profiles:
        raise InputError(f"nothing can be tried: {_why_none(ran)}", *([ran.last_words] if ran.last_words else []))
    return Baseline(ran, opened(with_profiles).document(), with_profiles[0])


def _why_none(ran: TrialRun) -> str:
    if ran.late:
        return "the job's steps were not recorded within the time given (--budget)"
    told = [each.facts.get("no_profile") for each in ran.recordings]
    why = next((str(each) for each in told if each), "no process of the job made steps of a framework that is known")
    return f"no step of the job was recorded because {why}" if any(told) else why


def opened(recordings: Sequence[Recording]) -> Profile | Job:
    """What processes of one job recorded: all ranks together, the first process where they are no ranks of one job.

    Raises StepscopeError where a profile cannot be read.
    """
    # TensorFlow 1 leaves a profile per step, which are one; of several windows the last is no start-up.
    source, *rest = [joined([Source(path) for path in each.profiles])[-1] for each in recordings]
    ranks = ranks_of([source, *rest]) if rest else None
    return pipeline.read(source) if ranks is None else pipeline.read_ranks(ranks)
