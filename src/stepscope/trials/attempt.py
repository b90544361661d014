"""All of ``stepscope try``: the job recorded, its cures tried in turns with it, what came of them as one document."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture.options import Options
from stepscope.errors import UsageError
from stepscope.trials import document, patch
from stepscope.trials.arguments import batch_sizes
from stepscope.trials.arms import Arm, chosen, named, refined
from stepscope.trials.baseline import Baseline, recorded
from stepscope.trials.kept import Kept
from stepscope.trials.process import Command, TrialRun
from stepscope.trials.schedule import TrialSchedule, best_of_groups, improved
from stepscope.units import format_ns

if TYPE_CHECKING:
    from stepscope.document.trials import CureEntry, TrialsDocument

FEWEST_STEPS, MOST_STEPS = 20, 200
"""Steps timed in a trial, unless it is said: as many as take ``STEPS_S``, between these."""
STEPS_S = 3.0
_SKIP = 5
"""Steps at least that are never timed: what is compiled is, within these."""
_LONGER, _START_S = 4, 120.0
"""A trial may take so many times what recording took, and so long besides: compiling."""
_NAMED = 5


@dataclass(frozen=True)
class TrialRequest:
    """What the user wants."""

    command: tuple[str, ...]
    """As it was typed."""
    words: tuple[str, ...]
    """What is started."""
    folder: Path
    cures: tuple[str, ...] = ()
    steps: int | None = None
    budget_s: float = 600.0
    seed: int = 0
    watch_value: str | None = None
    batch_argument: str | None = None
    """The argument of the command that says the batch size, where that is to be tried too."""
    writes_again: bool = False
    """Whether files that the job writes may be written again by every trial."""
    scratch: Path | None = None
    kept: tuple[Path, ...] = ()
    """What each trial finds as it was, with ``scratch``."""
    say: Callable[[str], None] = field(default=lambda _: None)


def attempt(asked: TrialRequest) -> tuple[TrialsDocument, patch.Patch]:
    """Try, and tell: the document ``stepscope.try/1`` and the change that has the same effect as what helped.

    Ctrl-C while trials run ends them, and what is known is told. Raises StepscopeError where nothing can be tried.
    """
    named(asked.cures, (), cores=1)  # What there is none of is said before anything runs.
    until = time.monotonic() + asked.budget_s
    kept = Kept(asked.scratch, asked.kept) if asked.scratch is not None else None
    job = Command(asked.words, asked.folder)
    sizes = [] if asked.batch_argument is None else batch_sizes(asked.words, asked.batch_argument)
    asked.say("recording the job as it is …")
    with kept.trial("recorded") if kept else nullcontext():
        base = recorded(job, asked.budget_s)
    asked.say(f"it was diagnosed: {base.document['summary']['verdict']}")
    _check_files(base, asked)
    if asked.cures:
        arms = named(asked.cures, base.document["findings"], base.cores)
    else:
        arms = [] if sizes else chosen(base.document, base.cores, of_keras=base.of_keras)
    arms += [Arm((), argument=size) for size in sizes]
    schedule = TrialSchedule(Arm(()), _Starting(asked, job, base, kept), until)
    best: list[Arm] = []
    together: Arm | None = None
    try:
        schedule.compare(arms)
        best = best_of_groups(arms, schedule.baseline)
        for base_arm, further in refined(best, arms):
            arms += further
            schedule.compare(further, base_arm)
            best = improved(best, base_arm, further)
        cures = [arm for arm in best if arm.argument is None]
        if len(cures) > 1 and schedule.ended is None:
            together = Arm(tuple(spec for arm in cures for spec in arm.specs))
            schedule.compare([together])
    except KeyboardInterrupt:
        schedule.ended = "it was interrupted"
        best = best or best_of_groups(arms, schedule.baseline)
    helped = _helped(best, together, schedule.baseline)
    change = patch.made(document.applied(helped), base.script, Path.cwd())
    return document.make(asked.command, base, schedule, document.Tried(arms, together, helped), change), change


def _helped(best: list[Arm], together: Arm | None, baseline: Arm) -> list[Arm]:
    """What to keep: all that helps where together it gains more than the best alone, else that one."""
    if together is None or together.out is not None or not best:
        return best
    gained = together.against(baseline)
    alone = max(best, key=lambda arm: _saving(arm, baseline))
    return best if gained is not None and gained.saving_ns > _saving(alone, baseline) else [alone]


def _saving(arm: Arm, baseline: Arm) -> float:
    compared = arm.against(baseline)
    return compared.saving_ns if compared is not None else 0.0


def _check_files(base: Baseline, asked: TrialRequest) -> None:
    """Raises UsageError where every trial would write again what the job wrote while it was recorded."""
    covered = tuple(path.absolute() for path in asked.kept)
    files = [name for name in base.ran.files if not any(Path(name).is_relative_to(path) for path in covered)]
    if files and not asked.writes_again:
        raise UsageError(
            "the job writes files that every trial would write again: nothing was tried",
            *files[:_NAMED],
            *([f"and {len(files) - _NAMED} more"] if len(files) > _NAMED else []),
            "--scratch DIR --keep PATH gives each trial PATH as it is now; --writes-again lets them be written",
        )


class _Starting:
    """Starts an arm's job with its cures."""

    def __init__(self, asked: TrialRequest, job: Command, base: Baseline, kept: Kept | None) -> None:
        self._asked, self._job, self._kept = asked, job, kept
        self._steps = asked.steps or _steps(base.step_ns)
        self._skip = max(_SKIP, base.first_step)
        self._limit_s = _LONGER * base.ran.wall_s + _START_S
        self._number = 0

    def __call__(self, arm: Arm) -> TrialRun:
        self._number += 1
        name = f"{self._number:03}-{arm.name.replace('=', '-')[:100]}"
        asked = self._asked
        options = Options(
            skip=self._skip, settle=0, after=self._steps, trial=True, notes_writes=True,
            cures=arm.specs, seed=asked.seed, watch_value=asked.watch_value,
        )  # fmt: skip
        more = {
            key: value
            for cure, value_ in arm.cures
            if cure.environment
            for key, value in cure.environment(value_).items()
        }
        with self._kept.trial(name) if self._kept else nullcontext():
            words = arm.argument.put_into(self._job.words) if arm.argument else self._job.words
            ran = replace(self._job, words=words).start(name, options, more, self._limit_s)
        took = format_ns(round(ran.step_ns)) if ran.step_ns is not None else "not timed"
        asked.say(f"{self._number:>3}  {arm.name:<24} {took}")
        return ran


def _steps(step_ns: int | None) -> int:
    return FEWEST_STEPS if not step_ns else max(FEWEST_STEPS, min(MOST_STEPS, round(STEPS_S * 1e9 / step_ns)))


def listed() -> Sequence[CureEntry]:
    """Every cure there is."""
    from stepscope.capture.cures import CURES

    return [document.of_cure(cure) for cure in CURES]
