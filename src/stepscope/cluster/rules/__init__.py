"""The one list of what is said of a job as a whole. Each lives in a file of its own; what its ranks have each for
themselves comes from the rules of ``stepscope.diagnosis``."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.cluster.job import JobFacts
from stepscope.cluster.rules import pipeline_bubbles, rank_skew, slow_link, straggler
from stepscope.cluster.rules.told import RankFinding

JOB_RULES: tuple[Callable[[JobFacts], list[RankFinding]], ...] = (
    straggler.find,
    slow_link.find,
    pipeline_bubbles.find,
    rank_skew.find,
)
