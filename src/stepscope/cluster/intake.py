"""Partial results as they arrive: what many ranks have alike is kept once.

Of a finding or a notice that several ranks have, one rank's words are told; of the others the figures are enough.
Arrays that came through a pipe hang on the message they came in: each is copied out of it.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from stepscope.cluster.partial import Partial
from stepscope.cluster.rules import DECLARED
from stepscope.cluster.uses import RankUses
from stepscope.diagnosis.finding import Finding, Notice
from stepscope.diagnosis.ranking import kind_of


def weight(finding: Finding) -> tuple[int, int]:
    """Of findings told as one the heaviest speaks for all; of several such the lowest rank's."""
    return finding.saving_ns_per_step or 0, finding.cost_ns_per_step or 0


class Intake:
    """Takes in the partial results of a job's ranks, in any order."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}
        self._speaker: dict[Any, tuple[int, ...]] = {}

    def take(self, partial: Partial, rank: int) -> Partial:
        """The same as this rank's, holding nothing that others hold too and little that nobody asks for."""
        own: Partial = _apart(partial)
        return replace(
            own,
            rank=rank,
            collectives=replace(own.collectives, groups=self._once(own.collectives.groups)),
            kernels=tuple(replace(kernel, name=self._once(kernel.name)) for kernel in own.kernels),
            uses=self._uses(own.uses),
            findings=tuple(self._finding(finding, rank) for finding in own.findings),
            minor=tuple(self._finding(finding, rank) for finding in own.minor),
            notices=tuple(self._notice(notice, rank) for notice in own.notices),
            devices=self._once(own.devices),
            unused=self._once(own.unused),
            rows=replace(own.rows, phase=self._once(own.rows.phase)),
        )

    def _uses(self, uses: RankUses) -> RankUses:
        named = {field.name: getattr(uses, field.name) for field in fields(uses)}
        return RankUses(
            **{
                name: replace(of, names=self._once(tuple(self._once(one) for one in of.names)))
                for name, of in named.items()
            }
        )

    def _once(self, value: Any) -> Any:
        return self._known.setdefault(value, value)

    def _speaks(self, subject: Any, order: tuple[int, ...]) -> bool:
        """Whether nobody that has come before him has more to say of a subject."""
        if order < self._speaker.get(subject, order):
            return False
        self._speaker[subject] = order
        return True

    def _finding(self, finding: Finding, rank: int) -> Finding:
        if self._speaks(kind_of(finding, DECLARED), (*weight(finding), -rank)):
            return finding
        rule, title = self._once(finding.rule), self._once(finding.title)
        return replace(finding, rule=rule, title=title, why="", fix="", where=(), evidence=(), fix_set=(), id="")

    def _notice(self, notice: Notice, rank: int) -> Notice:
        return notice if self._speaks(notice.code, (-rank,)) else self._once(replace(notice, text=""))


def _apart(value: Any) -> Any:
    """A dataclass with its arrays, and those of dataclasses in it, copied."""
    changed: dict[str, Any] = {}
    for field in fields(value):
        held = getattr(value, field.name)
        if isinstance(held, np.ndarray):
            changed[field.name] = held.copy()
        elif is_dataclass(held):
            changed[field.name] = _apart(held)
    return replace(value, **changed)
