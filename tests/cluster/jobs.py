"""Jobs with a planted cause, and what must come back of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

from stepscope import pipeline
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.partial import Partial
from stepscope.readers.source import Source
from tests.kit.cluster import Clock, Cluster, Op, Program, simulate
from tests.kit.events import US

MS = 1_000 * US
WORLD = 8
Extra = Callable[[int, int], Mapping[str, float]]
"""What is planted in a rank's step: more ``input`` or ``python`` (ns), kernels ``scale`` times as long, ``expert``."""


def clocks(seed: int, world: int = WORLD) -> dict[int, Clock]:
    """Clocks apart by milliseconds that drift by tens of microseconds per second."""
    drawn = random.Random(seed)
    return {rank: Clock(drawn.uniform(-5e6, 5e6), drawn.uniform(-20e-6, 20e-6)) for rank in range(world)}


def data_parallel(
    extra: Extra = lambda rank, step: {},
    *,
    world: int = WORLD,
    noise: float = 0.03,
    seed: int = 0,
    overlaps: bool = False,
) -> Program:
    """Four times: four kernels and an all-reduce over all ranks."""

    def program(rank: int, step: int) -> list[Op]:
        drawn, planted = random.Random(f"{seed}/{rank}/{step}"), extra(rank, step)

        def vary(ns: float) -> int:
            return round(ns * (1 + drawn.uniform(-noise, noise)))

        ops = [Op("input", round(planted.get("input", vary(100 * US))))]
        if "python" in planted:
            ops.append(Op("python", round(planted["python"])))
        for _ in range(4):
            scale = planted.get("scale", 1.0)
            ops += [Op("compute", vary(300 * US * scale), f"gemm_{k}") for k in range(3)]
            ops.append(Op("compute", vary(400 * US * scale * planted.get("expert", 1.0)), "expert_gemm"))
            ops.append(Op("collective", 200 * US, members=tuple(range(world)), overlaps=overlaps))
        return ops

    return program


def tensor_and_data_parallel(late: int) -> Program:
    """Pairs that exchange data within a layer, and fours that reduce gradients; the host of one rank is late."""

    def program(rank: int, step: int) -> list[Op]:
        drawn = random.Random(f"{rank}/{step}")
        pair = (rank // 2 * 2, rank // 2 * 2 + 1)
        replicas = tuple(other for other in range(WORLD) if other % 2 == rank % 2)
        ops = [Op("input", 50 * US)]
        if rank == late:
            ops.append(Op("python", 2 * MS))
        for _ in range(3):
            ops.append(Op("compute", round(300 * US * drawn.uniform(0.98, 1.02)), "gemm"))
            ops.append(Op("collective", 100 * US, members=pair, kind="all_gather"))
        return [*ops, Op("collective", 300 * US, members=replicas, elements=1 << 22)]

    return program


def pipeline_stages(slow: int, stages: int = 4) -> Program:
    """Four micro-batches through stages, of which one has more work."""

    def program(rank: int, step: int) -> list[Op]:
        ops = []
        for _ in range(4):
            if rank > 0:
                ops.append(Op("collective", 20 * US, members=(rank - 1, rank), kind="send_recv"))
            ops.append(Op("compute", (1200 if rank == slow else 500) * US, "stage"))
            if rank < stages - 1:
                ops.append(Op("collective", 20 * US, members=(rank, rank + 1), kind="send_recv"))
        return ops

    return program


def facts_of(job: Cluster, tmp_path: Path, ranks: list[int] | None = None) -> JobFacts:
    """A simulated job, written and read."""
    folder = job.write(tmp_path / "job", ranks)
    found = [pipeline.reduce_rank(Source(path)) for path in sorted(folder.iterdir())]
    return combine([one for one in found if isinstance(one, Partial)])


__all__ = [
    "MS",
    "WORLD",
    "clocks",
    "data_parallel",
    "facts_of",
    "pipeline_stages",
    "simulate",
    "tensor_and_data_parallel",
]
