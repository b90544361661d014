"""The order of trials: blocks in which every arm runs there and back, until each can be told or time is up.

In a block the unchanged job and all arms run in one order and then in the reverse (A B C C B A): whatever drifts evenly
over the block, a machine that grows warm, adds the same to the mean of each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from stepscope.trials.arms import Arm
from stepscope.trials.interval import LOOKS, measured
from stepscope.trials.process import TrialRun

MOST_ARMS = 4
"""Arms of a block: where time is short the first are told, and no block lasts so long that drift is not even."""

Start = Callable[[Arm], TrialRun]


@dataclass
class TrialSchedule:
    """Runs arms, and keeps their runs with them."""

    baseline: Arm
    start: Start
    until: float
    """``time.monotonic()`` at which no run is begun any more."""
    ended: str | None = None
    """Why trials ended before all could be told."""
    _block: int = 0
    _wall_s: list[float] = field(default_factory=list)

    def compare(self, arms: Sequence[Arm], beside: Arm | None = None) -> None:
        """Run arms beside the unchanged job until each can be told from it, or is out.

        ``beside`` is an arm that runs with them, and from which each is to be told instead.
        """
        for _ in range(LOOKS):
            active = [arm for arm in arms if arm.out is None and not self._is_told(arm, beside or self.baseline)]
            for at in range(0, len(active), MOST_ARMS):
                if not self._there_and_back([*filter(None, [beside]), *active[at : at + MOST_ARMS]]):
                    return
            for arm in active:
                self._leave_behind(arm, active)

    def _there_and_back(self, active: Sequence[Arm]) -> bool:
        """One block; whether it was run to its end."""
        self._block += 1
        order = [self.baseline, *active]
        for arm in (*order, *reversed(order)):
            if arm.out is None and arm.argument is not None:
                arm.out = _too_large(arm, active)
            if arm.out is not None:
                continue
            if time.monotonic() + max(self._wall_s, default=0.0) > self.until:
                self.ended = "the time was up"
                return False
            ran = self.start(arm)
            self._wall_s.append(ran.wall_s)
            arm.runs.append((self._block, ran))
            arm.out = arm.out or _why_out(arm, ran)
            arm.failed = arm.failed or _failed(ran)
            if arm is self.baseline and arm.out is not None:
                self.ended = arm.out
                return False
        return True

    def _is_told(self, arm: Arm, other: Arm) -> bool:
        compared = arm.against(other)
        return compared is not None and compared.verdict != "unknown"

    def _leave_behind(self, arm: Arm, active: Sequence[Arm]) -> None:
        """Of several numbers of one cure those that are slower than the best are tried no further."""
        rivals = [each for each in active if each.group == arm.group and each.out is None]
        best = min(rivals, key=_mean, default=arm)
        if best is arm or arm.out is not None:
            return
        blocks = {block for block, _ in arm.runs} & {block for block, _ in best.runs}
        one, other = arm.step_ns(blocks), best.step_ns(blocks)
        if one and other and measured(one, other).verdict == "helps":
            arm.out = f"{best.name} is faster"


def _mean(arm: Arm) -> float:
    times = arm.step_ns(block for block, _ in arm.runs)
    return sum(times) / len(times) if times else float("inf")


def _too_large(arm: Arm, active: Sequence[Arm]) -> str | None:
    """Why a batch size is not tried: a smaller one failed, and what does not fit into memory may end more than it."""
    size = arm.argument.value if arm.argument else 0
    failed = [each for each in active if each.argument and each.argument.value < size and each.failed]
    return f"{failed[0].name} fails already" if failed else None


def _failed(ran: TrialRun) -> bool:
    return ran.step_ns is None


def _why_out(arm: Arm, ran: TrialRun) -> str | None:
    """Why a run says that an arm need not be tried again."""
    put_in = [spec for spec, (cure, _) in zip(arm.specs, arm.cures, strict=True) if cure.into is not None]
    for what in map(ran.cure, put_in):
        if ran.recordings and not what.get("applied"):
            return str(what.get("refused") or "the job does nothing that it changes")
    if ran.step_ns is None:
        if ran.late:
            return "no step was timed before its time was up"
        words = f": {ran.last_words}" if ran.last_words else ""
        return f"the job ended with status {ran.status} before its steps were timed{words}"
    return None


def best_of_groups(arms: Iterable[Arm], baseline: Arm) -> list[Arm]:
    """Of each cure the number that saves most, of those that help."""
    best: dict[str, Arm] = {}
    for arm in arms:
        gained = arm.against(baseline)
        if gained is None or gained.verdict != "helps":
            continue
        rival = best.get(arm.group)
        if rival is None or _mean(arm) < _mean(rival):
            best[arm.group] = arm
    return list(best.values())


def improved(best: Sequence[Arm], base: Arm, further: Iterable[Arm]) -> list[Arm]:
    """The best with what more was set beside one of them in its place, where that is faster than it; else that one,
    which is the smaller change."""
    faster = [arm for arm in further if (gained := arm.against(base)) is not None and gained.verdict == "helps"]
    if not faster:
        return list(best)
    other = min(faster, key=_mean)
    names = {cure.name for cure, _ in other.cures}
    kept = [arm for arm in best if arm is base or not any(cure.name in names for cure, _ in arm.cures)]
    return [other if arm is base else arm for arm in kept]
