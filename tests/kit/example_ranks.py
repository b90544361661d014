"""The simulated job of ``examples/ranks``: four ranks, of which one is slow to read its input.

``python -m tests.kit.example_ranks`` writes it.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

from tests.kit.cluster import Clock, Cluster, Op, simulate
from tests.kit.events import US

FOLDER = Path(__file__).parents[2] / "examples" / "ranks"
WORLD, LATE = 4, 2


def job() -> Cluster:
    """Six steps of data parallel training; clocks are milliseconds apart."""
    drawn = random.Random(11)
    clocks = {rank: Clock(drawn.uniform(-3e6, 3e6), drawn.uniform(-1e-5, 1e-5)) for rank in range(WORLD)}
    return simulate(WORLD, _step, steps=6, clocks=clocks, hosts=lambda rank: f"node{rank // 2}-{rank % 2}")


def _step(rank: int, step: int) -> list[Op]:
    drawn = random.Random(f"{rank}/{step}")
    ops = [Op("input", round((6_000 if rank == LATE else 200) * US * drawn.uniform(0.95, 1.05)))]
    for layer in range(4):
        ops += [Op("compute", round(900 * US * drawn.uniform(0.98, 1.02)), f"layer_{layer}_{k}") for k in range(3)]
        last = layer == 3
        ops.append(Op("collective", 700 * US, members=tuple(range(WORLD)), elements=13 << 20, overlaps=not last))
    return ops


def files() -> dict[str, bytes]:
    """Name and content of each file."""
    made = job()
    return {f"rank{rank}.json.gz": gzip.compress(made.bytes_of(rank), 9, mtime=0) for rank in range(WORLD)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, data in files().items():
        (FOLDER / name).write_bytes(data)
