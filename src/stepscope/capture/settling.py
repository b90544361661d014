"""Whether the start-up of a job is over: its steps take alike times."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .options import BACKLOG_SHARE, MOST_BACKLOG, RANKS_SKIP, SETTLED_HALF, SETTLED_SPREAD, SETTLED_STEPS, Options
from .place import rank_and_world

_KEPT_TIMES = 64


class Settling:
    """Times of the steps before the first window."""

    def __init__(self) -> None:
        self.settled = False
        """Whether the window began since step time had settled."""
        self._times: deque[int] = deque(maxlen=_KEPT_TIMES)
        self._worked_off = 0

    def add(self, times: Iterable[int]) -> None:
        """Steps ended."""
        self._times.extend(times)

    def forget(self) -> None:
        """What was timed were no steps."""
        self._times.clear()

    def is_over(self, options: Options, number: int) -> bool:
        """Whether step ``number`` may be recorded: step time has settled, or never will."""
        if number < options.skip:
            return False
        _, world = rank_and_world()
        if world is not None and world > 1:
            self.settled = False
            return number >= max(options.skip, RANKS_SKIP)
        self.settled = _settled(list(self._times))
        return self.settled or number >= options.skip + options.settle

    def last(self) -> list[int]:
        """Times of the steps that are no start-up."""
        return list(self._times)[-SETTLED_STEPS:]

    def is_backlog(self, dur: int | None) -> bool:
        """Whether a call that is made for answers works off what came in while the profiler started, or stopped: it
        was so much shorter than the last ones that it waited for nothing, as they did. Asked of so many at most."""
        last = sorted(self.last())
        if dur is None or not last or self._worked_off >= MOST_BACKLOG:
            return False
        is_one = dur < BACKLOG_SHARE * last[len(last) // 2]
        self._worked_off += is_one
        return is_one


def _settled(times: list[int]) -> bool:
    """Whether the last steps took alike times, or came in bursts that did."""
    last = sorted(times[-SETTLED_STEPS:])
    if len(last) == SETTLED_STEPS:
        middle = last[SETTLED_STEPS // 2]
        if max(last[-1] - middle, middle - last[0]) <= SETTLED_SPREAD * middle:
            return True
    if len(times) < 2 * SETTLED_HALF:
        return False
    now, earlier = sum(times[-SETTLED_HALF:]), sum(times[-2 * SETTLED_HALF : -SETTLED_HALF])
    return abs(now - earlier) <= SETTLED_SPREAD * min(now, earlier)
