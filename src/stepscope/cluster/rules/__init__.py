"""The rules that need all ranks of a job, files like those of ``stepscope.diagnosis.rules``, and the list of all."""

from __future__ import annotations

from typing import Protocol

from stepscope.analysis import limits as of_analysis
from stepscope.cluster import limits as of_jobs
from stepscope.cluster.job import JobFacts
from stepscope.cluster.rules import pipeline_bubbles, rank_skew, slow_link, straggler
from stepscope.diagnosis import limits as of_diagnosis
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.rule import Rule
from stepscope.diagnosis.rules import DECLARED as of_profiles
from stepscope.whatif import limits as of_replay


class JobRuleFile(Protocol):
    """What the file of such a rule holds."""

    @property
    def RULE(self) -> Rule:
        """Its declaration."""

    def find(self, facts: JobFacts, /) -> list[Finding]:
        """What the rule says of a job."""


_FIRST: tuple[JobRuleFile, ...] = (straggler, slow_link)
"""What one rank or link does to all others stands before what each rank has for itself."""

JOB_RULES: tuple[JobRuleFile, ...] = (
    *_FIRST,
    pipeline_bubbles,
    rank_skew,
)

DECLARED: dict[str, Rule] = {
    **{file.RULE.id: file.RULE for file in _FIRST},
    **of_profiles,
    **{file.RULE.id: file.RULE for file in JOB_RULES},
}
"""Every rule by its id, in the order in which one should work."""

SHARED_LIMITS: dict[str, float] = {
    name: value
    for room in (of_analysis, of_replay, of_diagnosis, of_jobs)
    for name, value in vars(room).items()
    if name.isupper()
}
"""The thresholds that rules share with others, by name."""
