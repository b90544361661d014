"""How fast the ranks of a job are read and put together, and how much memory the coordinator takes.

``python benchmarks/many_ranks.py [--ranks 100,1000] [--workers N]``. Ranks are generated: eight steps of data parallel
training each, on clocks of their own, with one rank that is late. Prints one line of JSON per number of ranks.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cluster.jobs import clocks, data_parallel
from tests.kit.cluster import simulate

STEPS, LATE, MS = 8, 7, 1_000_000
_MEASURE = """
import json, resource, sys, time
from stepscope import pipeline
begin = time.monotonic()
ranks = pipeline.ranks_of(pipeline.find(sys.argv[1], pipeline.MOST_RANKS).sources)
found = time.monotonic()
job = pipeline.read_ranks(ranks, workers=int(sys.argv[2]))
read = time.monotonic()
document = job.document()
done = time.monotonic()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
straggler = [one["rank"] for one in document["analyses"]["ranks"]["stragglers"]]
print(json.dumps({"find_s": found - begin, "read_s": read - found, "document_s": done - read, "peak_bytes": peak,
                  "stragglers": straggler}))
"""


def write(folder: Path, count: int) -> int:
    """Write a job of so many ranks; its size in bytes."""
    extra = lambda rank, step: {"input": 4 * MS} if rank == LATE else {}  # noqa: E731
    job = simulate(count, data_parallel(extra, world=count), STEPS, clocks(1, count))
    total = 0
    for rank in range(count):
        data = job.bytes_of(rank)
        (folder / f"rank{rank}.json").write_bytes(data)
        total += len(data)
    return total


def measure(count: int, workers: int) -> dict[str, object]:
    """Figures of a job of so many ranks."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        size = write(Path(folder), count)
        made = time.monotonic() - began
        ran = subprocess.run(
            [sys.executable, "-c", _MEASURE, folder, str(workers)], check=True, capture_output=True, text=True
        )
    figures = json.loads(ran.stdout)
    took = figures["find_s"] + figures["read_s"] + figures["document_s"]
    return {
        "ranks": count, "bytes": size, "workers": workers, "made_s": round(made, 1),
        **{name: round(figures[name], 2) for name in ("find_s", "read_s", "document_s")},
        "ranks_per_s": round(count / took, 1), "bytes_per_s": round(size / took),
        "coordinator_peak_mb": round(figures["peak_bytes"] / 1e6), "stragglers": figures["stragglers"],
    }  # fmt: skip


def main() -> None:
    """Measure every number of ranks that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="100,1000")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    random.seed(0)
    for count in map(int, options.ranks.split(",")):
        print(json.dumps(measure(count, options.workers)), flush=True)


if __name__ == "__main__":
    main()
