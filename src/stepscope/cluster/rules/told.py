"""What a rule says of a job."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.diagnosis.finding import Finding


@dataclass(frozen=True, slots=True)
class RankFinding:
    """A finding and the rank it is told of: the one where it costs most; None where it is the whole job's."""

    finding: Finding
    rank: int | None
    ranks: int = 1
    """How many ranks have it."""
