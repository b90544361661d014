"""What looking up the lines of a thread costs it, where it never leaves Python: the worst case.

Blocks with and without it alternate in one run, so that the machine's own swings fall on both.

    python benchmarks/line_lookups.py
"""

from __future__ import annotations

import statistics
import threading
import time

from stepscope.capture.lines import Lines

STEPS, ROUNDS, CUT = 60, 120, 12


def step() -> int:
    """About a millisecond of Python."""
    return sum(number * number for number in range(15_000))


def block() -> float:
    """Seconds that some steps take."""
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return time.perf_counter() - began


def main() -> None:
    """Print the mean of the ratios, without the largest and smallest tenth, with its standard error."""
    block()
    found = []
    for _ in range(ROUNDS):
        before, lines = block(), Lines()
        lines.start(threading.get_ident())
        looked = block()
        lines.stop()
        found.append(2 * looked / (before + block()) - 1)
    kept = sorted(found)[CUT:-CUT]
    print(f"{statistics.mean(kept):.2%} ± {statistics.stdev(kept) / len(kept) ** 0.5:.2%} of a step")


if __name__ == "__main__":
    main()
