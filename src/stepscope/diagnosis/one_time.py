"""Work that is done once, in words: which calls it is made of and how long they take."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.once import Once
from stepscope.trace.tables import Kind, Rows
from stepscope.units import format_count, format_ns

_NAMED = 48
"""Characters of a kernel's name that are shown."""


def seen_in(facts: Facts, windows: list[tuple[int, int]], *kinds: Once) -> Rows:
    """The stretches of one-time work of some kinds that lie in some windows of the host."""
    once = facts.once
    rows = once.rows(*kinds)
    inside = [any(once.start[row] < end and once.end[row] > start for start, end in windows) for row in rows.tolist()]
    return rows[np.array(inside, np.bool_)]


def in_words(facts: Facts, rows: Rows) -> str:
    """How many calls, how long they take together and the longest of them, of one kind of work."""
    once = facts.once
    length = (once.end - once.start)[rows]
    longest = int(rows[length.argmax()])
    total, most = format_ns(int(length.sum())), format_ns(int(length.max()))
    count = len(rows)
    if once.kind[longest] is Once.CAPTURE:
        captures = [row for row in rows.tolist() if facts.trace.slices.kind[once.slice[row]] != Kind.COMPILE]
        graphs = f"{format_count(len(captures))} {'graph is' if len(captures) == 1 else 'graphs are'} captured"
        return f"{graphs}, which takes {total}"
    what = _name(facts, int(once.slice[longest]))
    if count == 1:
        return f"{what} takes {total}"
    return f"{format_count(count)} calls take {total}, the longest {most}: {what}"


def _name(facts: Facts, call: int) -> str:
    """A call, with the kernel that it launched for the first time."""
    launches, trace = facts.trace.launches, facts.trace
    op = launches.op[launches.call == call]
    name = f"`{trace.name_of(call)}`"
    if not op.size:
        return name
    kernel = trace.name_of(int(op[0]))
    return f"{name} of `{kernel if len(kernel) <= _NAMED else kernel[: _NAMED - 1] + '…'}`"
