"""Which collective of one rank is which of another, for the trace viewer: columns per rank, joined by number.

``<rank>.start`` (ns from the origin of the rank's trace), ``<rank>.device`` (-1 for its host) and ``<rank>.link``,
which is equal on all ranks that took part in the same collective.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from stepscope.cluster.job import JobFacts
from stepscope.trace.tables import I32
from stepscope.web.columns import Sections
from stepscope.web.limits import LINKED_COLLECTIVES
from stepscope.web.pack import VERSION


def links(facts: JobFacts, ranks: Iterable[int]) -> bytes:
    """The collectives of some ranks that others of them took part in too (``static/trace/links.js`` reads them); of
    very many ranks the first."""
    wanted = set(_first(facts, ranks))
    rows: dict[int, list[tuple[I32, I32]]] = defaultdict(list)
    number = 0
    for group in facts.groups:
        matched = group.matched
        kept = [row for row, lane in enumerate(matched.lanes) if lane.partial in wanted]
        shared = np.flatnonzero(matched.present[kept].sum(axis=0) > 1)
        for row in kept:
            known = shared[matched.at[row, shared] >= 0]
            rows[matched.lanes[row].partial].append((matched.at[row, known], (number + known).astype(np.int32)))
        number += matched.at.shape[1]
    sections = Sections()
    for partial, parts in rows.items():
        at, link = (np.concatenate(column) for column in zip(*parts, strict=True))
        table, rank = facts.partials[partial].collectives, facts.ranks[partial]
        order = np.argsort(table.start[at], kind="stable")
        sections.ints(f"{rank}.start", table.start[at][order], delta=True)
        sections.ints(f"{rank}.device", table.device[at][order])
        sections.ints(f"{rank}.link", link[order], delta=True)
    return sections.packed({"version": VERSION, "slices": 0})


def _first(facts: JobFacts, ranks: Iterable[int]) -> Iterable[int]:
    """Partial results of the ranks, as many as the limit lets in."""
    place = {rank: at for at, rank in enumerate(facts.ranks)}
    held = 0
    for rank in ranks:
        held += len(facts.partials[place[rank]].collectives)
        if held > LINKED_COLLECTIVES:
            return
        yield place[rank]
