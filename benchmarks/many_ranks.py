"""How fast the ranks of a job are read and put together, how much memory the coordinator takes, and what Dask costs.

``python benchmarks/many_ranks.py [--ranks 100,1000] [--workers N] [--dask]``. Ranks are generated: eight steps of data
parallel training each, on clocks of their own, with one rank that is late. Prints one line of JSON per run: wall time,
CPU seconds of the coordinator and of its workers, and the coordinator's peak memory. With ``--dask`` each job is read
by the process pool, by Dask's LocalCluster, by that again and by the pool again; a last line compares the two.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cluster.jobs import clocks, data_parallel
from tests.kit.cluster import simulate

STEPS, LATE, MS = 8, 7, 1_000_000
_MEASURE = """
import json, resource, sys, time

def cpu(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime

def peak_bytes():
    # Not ru_maxrss: a process inherits that of the one that started it.
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

def main():
    from stepscope import pipeline
    from stepscope.cluster.ranks import ranks_of
    from stepscope.formats.find import MOST_RANKS, find
    begin = time.monotonic()
    ranks = ranks_of(find(sys.argv[1], MOST_RANKS).sources)
    found = time.monotonic()
    job = pipeline.read_ranks(ranks, workers=int(sys.argv[2]), scheduler=sys.argv[3] or None)
    read = time.monotonic()
    document = job.document()
    done = time.monotonic()
    print(json.dumps({
        "find_s": found - begin, "read_s": read - found, "document_s": done - read, "took_s": done - begin,
        "coordinator_cpu_s": cpu(resource.RUSAGE_SELF), "workers_cpu_s": cpu(resource.RUSAGE_CHILDREN),
        "peak_bytes": peak_bytes(),
        "stragglers": [one["rank"] for one in document["analyses"]["ranks"]["stragglers"]],
    }))

if __name__ == "__main__":
    main()
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


def measure(folder: Path, workers: int, scheduler: str = "") -> dict[str, Any]:
    """Figures of one run, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        script = Path(place) / "measure.py"
        script.write_text(_MEASURE)
        command = [sys.executable, str(script), str(folder), str(workers), scheduler]
        figures: dict[str, Any] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    ranks, size = 0, 0
    for path in folder.iterdir():
        ranks, size = ranks + 1, size + path.stat().st_size
    times = {name: round(figures[name], 2) for name in figures if name.endswith("_s")}
    return {
        "ranks": ranks, "bytes": size, "workers": workers, "read_by": scheduler or "pool", **times,
        "ranks_per_s": round(ranks / figures["took_s"], 1), "bytes_per_s": round(size / figures["took_s"]),
        "coordinator_peak_mb": round(figures["peak_bytes"] / 1e6), "stragglers": figures["stragglers"],
    }  # fmt: skip


def compared(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What Dask's runs take beyond the pool's, as a share of those: wall time, and CPU time of all processes."""
    took = {"wall": lambda run: run["took_s"], "cpu": lambda run: run["coordinator_cpu_s"] + run["workers_cpu_s"]}
    sums = {
        name: [sum(of(run) for run in runs if (run["read_by"] == "pool") is pool) for pool in (True, False)]
        for name, of in took.items()
    }
    return {f"dask_overhead_{name}": round(dask / pool - 1, 3) for name, (pool, dask) in sums.items()}


def main() -> None:
    """Measure every number of ranks that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="100,1000")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--dask", action="store_true")
    options = parser.parse_args()
    random.seed(0)
    for count in map(int, options.ranks.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            write(Path(folder), count)
            print(json.dumps({"made_ranks": count, "made_s": round(time.monotonic() - began, 1)}), flush=True)
            runs = []
            for scheduler in ("", "local", "local", "") if options.dask else ("",):
                runs.append(measure(Path(folder), options.workers, scheduler))
                print(json.dumps(runs[-1]), flush=True)
            if options.dask:
                print(json.dumps(compared(runs)), flush=True)


if __name__ == "__main__":
    main()
