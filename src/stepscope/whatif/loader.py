"""What a step takes when worker processes make its batches: as long as the slowest of what runs beside each other then.

A step waits for the rest of it (which runs meanwhile), for the workers, each of which makes every n-th batch, and for
the cores: workers and the training process share those that there are. What handing over and starting workers takes is
charged. A worker may be slower than the loop at the same work, as caches and memory are shared, and its batches are
written to memory that both see: so there is a best case and one with all that charged. Where there are more processes
than half of the cores, two of them may be threads of one: then the loop is slowed while a worker works, as that is.
"""

from __future__ import annotations

from stepscope.record import record
from stepscope.whatif.limits import (
    LOADER_HANDOVER_NS,
    LOADER_SEND_NS,
    LOADER_SLOWER,
    LOADER_START_NS,
    LOADER_STEPS,
    MOST_WORKERS,
    UNKNOWN_CORES,
)

_ENOUGH = 0.02
"""One more worker that gains less than this share is none worth having."""


@record
class WithWorkers:
    """The step with a number of workers."""

    workers: int
    best_ns: int
    step_ns: int
    """With everything charged."""


@record
class Batches:
    """What a batch takes to make; times in ns."""

    making_ns: float
    waiting_ns: float
    """Of that what nobody computes in."""
    rest_ns: float
    """The step without waiting for batches."""
    cores: int | None
    """For this process and its workers; None where that is not known, and taken for enough."""
    in_workers: bool = False
    """Whether it is measured in workers already."""

    def with_workers(self, count: int) -> WithWorkers:
        """The step with so many."""
        best = self._step_ns(count, 1.0, 0.0, 0.0)
        slower = 1.0 if self.in_workers else 1.0 + LOADER_SLOWER
        charged = self._step_ns(count, slower, LOADER_SEND_NS, LOADER_HANDOVER_NS)
        return WithWorkers(count, round(best), round(charged + count * LOADER_START_NS / LOADER_STEPS))

    def _step_ns(self, count: int, slower: float, sending: float, taking: float) -> float:
        computing = self.making_ns - self.waiting_ns
        working = computing * slower + sending
        shared = (working + self.rest_ns + taking) / self.cores if self.cores else 0.0
        beside = (slower - 1.0) * min(computing, self.rest_ns) * self._crowded(count)
        return max(self.rest_ns + taking + beside, (working + self.waiting_ns) / count, shared)

    def _crowded(self, count: int) -> float:
        """How likely a worker shares the loop's core: 0 while each process may have two threads of one for itself, 1
        where all are taken."""
        if not self.cores:
            return 0.0
        half = self.cores / 2
        return min(max((1 + count - half) / half, 0.0), 1.0)

    def best(self) -> WithWorkers:
        """The fewest workers beyond which a step gets hardly shorter; those that only wait need no core."""
        waits = self.making_ns and self.waiting_ns / self.making_ns > _MOSTLY
        most = MOST_WORKERS if waits else min(self.cores or UNKNOWN_CORES, MOST_WORKERS)
        every = [self.with_workers(count) for count in range(1, most + 1)]
        least = min(one.step_ns for one in every)
        return next(one for one in every if one.step_ns <= (1 + _ENOUGH) * least)


_MOSTLY = 0.5
