"""Reports of jobs of many ranks: the example's, its usual rank repeated and its late one put in a place of its own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from stepscope import pipeline
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
    ranks.update(present=world, world_size=world)
    made["profile"].update(ranks=list(range(world)), world_size=world)
    return made


def page_of(folder: Path, world: int, late: int) -> str:
    """The address of its pages."""
    out = folder / f"{world}.html"
    out.write_text(html_file([ShownRun(f"{world} ranks", document_of(world, late), None)]), encoding="utf-8")
    return out.as_uri()
