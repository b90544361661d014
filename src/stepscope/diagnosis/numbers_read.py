"""Numbers that a host that computes reads of its tensors one at a time (``.item()``, ``float(tensor)``): how often in
each step, where, and what it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.learning import own_ops
from stepscope.analysis.own_code import asking, is_users
from stepscope.analysis.where import Where
from stepscope.names.producing import reads_numbers
from stepscope.record import record
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import outermost
from stepscope.trace.tables import I32, Bools
from stepscope.units import format_mean, format_ns

MANY = 10
"""Reads at one line in each step from which they are told: fewer are logging."""


@record
class Reads:
    """Numbers read at one line."""

    where: Where
    per_step: float
    ns: int
    """Time in the ops that read, in all used steps."""
    spans: iv.Intervals
    """When they ran."""

    def told(self, facts: Facts) -> str:
        """In words."""
        op = f"`{self.where.op}`" if self.where.op else "a number of a tensor"
        taken = f"{format_mean(self.per_step)} times per step, {format_ns(facts.per_step(self.ns))} in the reads alone"
        place = f" in `{self.where.function}` ({self.where.at})" if self.where.at else ""
        return f"{op}{place} {taken}"


def outer_reads(facts: Facts) -> I32:
    """The ops that read a number, but for those that another op makes inside."""
    reading = mapped(facts.trace.slices.name, facts.trace.strings, reads_numbers, np.bool_)
    return np.flatnonzero(reading & own_ops(facts.trace)).astype(np.int32)


def by_program(facts: Facts, rows: I32) -> Bools:
    """Which of some ops the program's own functions ask for: what an optimizer reads of its state is none of theirs."""
    slices, strings = facts.trace.slices, facts.trace.strings
    reader = asking(facts.trace)[rows]
    own = mapped(slices.name[reader], strings, is_users, np.bool_)
    return np.asarray((reader >= 0) & own)


def most_reads(facts: Facts, but: Bools) -> Reads | None:
    """The line of the program at which most numbers are read, where they are ``MANY`` in each used step; ``but`` are
    slices told elsewhere, with what is inside them."""
    slices, rows = facts.trace.slices, outer_reads(facts)
    step = np.searchsorted(facts.markers.start, slices.start_ns[rows], "right") - 1
    mine = among(step, facts.used) & (slices.track[rows] == facts.host.main)
    rows = rows[mine & (outermost(but, slices.parent)[rows] < 0) & by_program(facts, rows)]
    if rows.size < MANY * max(len(facts.used), 1):
        return None
    groups = facts.locator.group(rows)
    most = rows[groups == np.bincount(groups - groups.min()).argmax() + groups.min()]
    if most.size < MANY * len(facts.used):
        return None
    where, ns = facts.locator.where(int(most[0])), int(slices.dur_ns[most].sum())
    if where.file is None:
        return None
    if where.defined:  # Where the function begins is no line of a read.
        where = replace(where, line=None, defined=False)
    spans = iv.of(slices, most)
    return Reads(replace(where, ns_per_step=facts.per_step(ns)), most.size / len(facts.used), ns, spans)
