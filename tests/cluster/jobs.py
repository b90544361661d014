"""Jobs with a planted cause, and what must come back of them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from stepscope import pipeline
from stepscope.analysis.categories import Category
from stepscope.analysis.summary import COLLECTIVES
from stepscope.cluster.cause import step_numbers
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.matching import Lane
from stepscope.cluster.partial import Partial
from stepscope.inputs.source import Source
from tests.kit.cluster import COMM, Clock, Cluster, Op, Program, simulate
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


def side_by_side(late: int, ns: int, *, world: int = WORLD, noise: float = 0.03) -> Program:
    """Gradients in two halves that are reduced at the same time, on two streams; the host of one rank is late."""

    def program(rank: int, step: int) -> list[Op]:
        drawn = random.Random(f"{rank}/{step}")
        ops = [Op("python", ns)] if rank == late else []
        ops.append(Op("compute", round(500 * US * (1 + drawn.uniform(-noise, noise))), "gemm"))
        for stream in (COMM, COMM + 1):
            ops.append(Op("collective", 200 * US, members=tuple(range(world)), overlaps=True, stream=stream))
        return ops

    return program


def pairs_apart(late: int) -> Program:
    """Pairs that exchange data with nobody else; the host of one rank is late."""

    def program(rank: int, step: int) -> list[Op]:
        drawn = random.Random(f"{rank}/{step}")
        ops = [Op("python", 2 * MS)] if rank == late else []
        for _ in range(3):
            ops.append(Op("compute", round(300 * US * drawn.uniform(0.98, 1.02)), "gemm"))
            ops.append(Op("collective", 100 * US, members=(rank // 2 * 2, rank // 2 * 2 + 1)))
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


def check_booked(facts: JobFacts) -> None:
    """What the collectives of a lane's step wait together, and what nothing hides of all of a lane's, is no more than
    its accounting books."""
    waited: dict[tuple[Lane, int], int] = defaultdict(int)
    exposed: dict[Lane, int] = defaultdict(int)
    for group in facts.groups:
        for row, lane in enumerate(group.matched.lanes):
            exposed[lane] += int(group.exposed[row].sum())
            for step, ns in zip(group.matched.step.tolist(), group.exposed_wait[row].tolist(), strict=True):
                waited[lane, step] += ns
    for (lane, step), ns in waited.items():
        partial, parts = facts.partials[lane.partial], facts.parts[lane.partial]
        rows = partial.rows.device == lane.device
        of_row = np.where(partial.rows.step >= 0, step_numbers(partial)[np.maximum(partial.rows.step, 0)], -1)
        assert ns <= parts[rows & (of_row == step), Category.COLLECTIVE_WAIT.code].sum()
        assert exposed[lane] <= sum(parts[rows, category.code].sum() for category in COLLECTIVES)


__all__ = [
    "MS",
    "WORLD",
    "check_booked",
    "clocks",
    "data_parallel",
    "facts_of",
    "pairs_apart",
    "pipeline_stages",
    "side_by_side",
    "simulate",
    "tensor_and_data_parallel",
]
