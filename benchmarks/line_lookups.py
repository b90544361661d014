"""What looking up the lines of a thread costs it, where it never leaves Python: the worst case.

Two figures. Of the time that passed, the processor time of the thread that looks, or how long it kept the interpreter,
whichever is more: what the rate of looks is held by. And by how much the loop became slower: blocks with and without
looks take turns in one run, so that the machine's own swings fall on both.

    python benchmarks/line_lookups.py
"""

from __future__ import annotations

import statistics
import threading
import time

from stepscope.capture.lines import ThreadLines

STEPS, ROUNDS, CUT = 60, 120, 12
LOOKED_S = 10.0


def step() -> int:
    """About a millisecond of Python."""
    return sum(number * number for number in range(15_000))


def block() -> float:
    """Seconds that some steps take."""
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return time.perf_counter() - began


def looking() -> tuple[float, int]:
    """The share of the time that looking takes by its own count, and how many looks there were in it."""
    lines = ThreadLines()
    lines.start(threading.get_ident())
    over = time.perf_counter() + LOOKED_S
    while time.perf_counter() < over:
        step()
    lines.stop()
    return lines.spent_ns / lines.passed_ns, len(lines.looks()["time_ns"])  # type: ignore[index]


def slower() -> tuple[float, float]:
    """By what share the loop becomes slower: mean without the largest and smallest tenth, standard error."""
    found = []
    for _ in range(ROUNDS):
        before, lines = block(), ThreadLines()
        lines.start(threading.get_ident())
        looked = block()
        lines.stop()
        found.append(2 * looked / (before + block()) - 1)
    kept = sorted(found)[CUT:-CUT]
    return statistics.mean(kept), statistics.stdev(kept) / len(kept) ** 0.5


def main() -> None:
    """Print both."""
    block()
    share, count = looking()
    print(f"looking took {share:.2%} of the time, in {count / LOOKED_S:.0f} looks a second")
    mean, error = slower()
    print(f"the loop was slower by {mean:.2%} ± {error:.2%}")


if __name__ == "__main__":
    main()
