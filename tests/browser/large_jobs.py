"""Reports of jobs of many ranks: the example's, its usual rank repeated and its late one put in a place of its own."""

from __future__ import annotations

import copy
from math import nan
from pathlib import Path
from typing import Any

import numpy as np

from stepscope import pipeline
from stepscope.cluster.uses import RankUses, Uses
from stepscope.report.over_ranks import over_ranks
from stepscope.web.assemble import ShownRun, html_file
from tests.kit import example_ranks


def document_of(world: int, late: int) -> dict[str, Any]:
    """The report of ``world`` ranks, of which the others wait for ``late``."""
    made: dict[str, Any] = copy.deepcopy(pipeline.open(example_ranks.FOLDER).document())
    ranks = made["analyses"]["ranks"]

    def spread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Each rank's rows: those of the late one, and of all others rank 0's."""
        by_rank = {rank: [row for row in rows if row["rank"] == rank] for rank in (0, example_ranks.LATE)}
        return [
            {**row, "rank": rank} for rank in range(world)
            for row in by_rank[example_ranks.LATE if rank == late else 0]
        ]  # fmt: skip

    for holder, key in ((made, "steps"), (made, "accounting"), (ranks, "per_rank"), (ranks, "clocks")):
        holder[key] = spread(holder[key])
    for row in [*ranks["steps"], *ranks["stragglers"], *made["findings"]]:
        row["rank"] = late if row["rank"] is not None else None
    made["analyses"]["over_ranks"] = _over_ranks(world, late)
    ranks.update(present=world, world_size=world)
    made["profile"].update(ranks=list(range(world)), world_size=world)
    return made


def _over_ranks(world: int, late: int) -> dict[str, Any]:
    """Fifty kernels, of which the late rank's take twice as long."""
    names = tuple((f"kernel {k:02}", "") for k in range(50))
    usual = np.arange(50, 0, -1, dtype=np.float64) * 10_000
    uses = [Uses(names, usual * (1 + (rank == late)), np.ones(50)) for rank in range(world)]
    peak = [Uses((("peak", "device"),), np.array([(1 + rank) * 2.0**20]), np.array([nan])) for rank in range(world)]
    none = [Uses((), np.empty(0), np.empty(0))] * world
    each = [RankUses(*of) for of in zip(uses, uses, none, none, peak, strict=True)]
    return dict(over_ranks(range(world), each))


def page_of(folder: Path, world: int, late: int) -> str:
    """The address of its pages."""
    out = folder / f"{world}.html"
    out.write_text(html_file([ShownRun(f"{world} ranks", document_of(world, late), None)]), encoding="utf-8")
    return out.as_uri()
