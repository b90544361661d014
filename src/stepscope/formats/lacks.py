"""What a written format has no place for: declared once per writer, counted per trace, listed in docs/formats.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace

Count = Callable[[Trace], int]


@record
class Lack:
    """Something a format does not hold, or not as it was."""

    what: str
    """In the plural, as it stands behind a number."""
    columns: tuple[str, ...]
    """The tables (``memory``) and columns (``slices.category``) it concerns, and ``info.<field>`` of what is known of
    the run."""
    count: Count | None
    """How many of them a trace has; None for what is spelled otherwise and takes nothing away."""


def whole(table: str, what: str) -> Lack:
    """A table that is left out."""
    return Lack(what, (table,), lambda trace: len(getattr(trace, table)))


def column(table: str, name: str, what: str) -> Lack:
    """A column that is left out."""
    return Lack(what, (f"{table}.{name}",), lambda trace: int((~t.is_null(getattr(getattr(trace, table), name))).sum()))


def spelled(what: str, *columns: str) -> Lack:
    """What is told in other words."""
    return Lack(what, columns, None)


def notices(trace: Trace) -> int:
    """Notices about what was lost or cut out before."""
    return len(trace.completeness.losses)


def counted(trace: Trace, lacks: Sequence[Lack]) -> list[tuple[int, str]]:
    """What a trace has of what a format lacks: number and words."""
    counts = [(lack.count(trace), lack.what) for lack in lacks if lack.count is not None]
    return [(number, what) for number, what in counts if number]


def programs() -> Lack:
    """What XLA says of programs."""
    return Lack("programs compiled by XLA, with their graphs", ("hlo",), lambda trace: sum(map(bool, trace.hlo)))


def parts_of_microseconds(trace: Trace) -> int:
    """Slices whose start or end is no whole microsecond of Unix time."""
    start = trace.slices.start_ns + (trace.info.origin_epoch_ns or 0)
    return int(np.count_nonzero((start % 1000 != 0) | (trace.slices.dur_ns % 1000 != 0)))
