"""The event tables of one export: whose rows are read, which of them have usable times, and what is lost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.formats.limits import FAR_NS
from stepscope.formats.nsys import schema
from stepscope.formats.nsys.sqlite import UNREADABLE, Database, TableRows
from stepscope.record import record
from stepscope.trace import tables as t
from stepscope.trace.tables import I64, NULL, Bools
from stepscope.trace.trace import Loss

PROCESS_BITS = 24
"""A ``globalTid`` is hardware, virtual machine, process (24 bits) and thread (24 bits)."""


@record
class EventRows:
    """Rows of one table that have usable times."""

    rows: TableRows
    start: I64
    end: I64
    origin: t.Rows
    """Where each stands among all rows of the table."""

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.rows)

    def number(self, column: str) -> I64:
        """An integer column, NULL where it is absent or no integer."""
        return known(self.rows.numbers[column])

    def __getitem__(self, rows: Bools) -> EventRows:
        """Some of the rows."""
        if rows.all():
            return self
        return EventRows(self.rows[rows], self.start[rows], self.end[rows], self.origin[rows])


def known(values: I64) -> I64:
    """A column with NULL also where a value is no integer."""
    return np.where(values == UNREADABLE, NULL, values)


class Losses:
    """What becomes no row, and what one should know, added up over the tables."""

    def __init__(self) -> None:
        self._by_kind: dict[tuple[str, str], Loss] = {}

    def add(self, loss: Loss) -> None:
        """Count a loss; those of the same code and text are one."""
        key = loss.code, loss.text
        if (before := self._by_kind.get(key)) is not None:
            first = [at for at in (before.first_offset, loss.first_offset) if at is not None]
            loss = Loss(
                loss.code,
                before.count + loss.count,
                loss.text,
                min(first, default=None),
                before.lost_events + loss.lost_events,
                before.lost_bytes + loss.lost_bytes,
                loss.damaged,
            )
        self._by_kind[key] = loss

    def rows(self, which: Bools, offset: I64, code: str, text: str, *, lost: bool = True) -> None:
        """Count rows."""
        count = int(which.sum())
        if count:
            self.add(Loss(code, count, text, int(offset[which].min()), lost_events=count if lost else 0))

    def all(self) -> tuple[Loss, ...]:
        """Everything counted, in the order of its first occurrence."""
        return tuple(self._by_kind.values())


@record
class ExportedProcess:
    """A process of the export: its key (``globalPid`` without the thread), and how much it did."""

    key: int
    work: int
    """Rows of device work."""
    rows: int

    @property
    def pid(self) -> int:
        """Its number in the system."""
        return self.key & 0xFFFFFF


class Export:
    """The rows of the process that did most on devices; ``others`` are the processes that are not read."""

    def __init__(self, database: Database, losses: Losses, progress: Callable[[int, int], None] | None) -> None:
        self.losses = losses
        self._raw: dict[str, TableRows] = {}
        self._broken = 0
        for done, name in enumerate(schema.TABLES, 1):
            self._raw[name] = self._table(database, name)
            if progress:
                progress(len(database.data) * done // len(schema.TABLES), len(database.data))
        processes = self._processes()
        self.process = max(processes, key=lambda p: (p.work, p.rows), default=None)
        self.others = [process for process in processes if process is not self.process]
        for name, rows in self._raw.items():
            self._raw[name] = rows[self._mine(name, rows)]
        self.count = sum(map(len, self._raw.values())) + self._broken
        """Rows of this process, usable or not, and those too damaged to tell whose they are."""
        self._median = self._middle()
        self.last = self._last()
        """The last instant that any row of this process names."""

    def raw(self, table: str) -> TableRows:
        """The rows of this process in a table, usable or not; none where the table is not there."""
        return self._raw[table]

    def _table(self, database: Database, name: str) -> TableRows:
        spec = schema.TABLES[name]
        times = [column for column in (spec.start, spec.end) if column]
        rows = database.read(name, [*times, *spec.numbers], spec.texts)
        if rows.broken_pages or rows.broken_rows:
            counts = (rows.broken_pages, "page"), (rows.broken_rows, "row")
            parts = [f"{count:,} {word}{'s' * (count > 1)}" for count, word in counts if count]
            text = f"damaged in table {name}: {' and '.join(parts)}; the rest was read"
            self._broken += rows.broken_rows
            lost = rows.broken_pages * database.page_size
            damage = rows.first_broken, rows.broken_rows, lost
            if name in schema.DEVICE_WORK and rows.broken_pages:
                self.losses.add(Loss("device_table", 1, text, *damage, damaged=True))
            else:
                self.losses.add(Loss("table", 1, text, *damage, damaged=True))
        return rows

    def _keys(self, name: str, rows: TableRows) -> I64:
        owner = known(rows.numbers[schema.TABLES[name].owner])
        return np.where(owner == NULL, NULL, owner >> PROCESS_BITS)

    def _mine(self, name: str, rows: TableRows) -> Bools:
        """Rows that name no process count as this one's."""
        keys = self._keys(name, rows)
        return np.asarray((keys == NULL) | (keys == (NULL if self.process is None else self.process.key)))

    def _processes(self) -> list[ExportedProcess]:
        work: dict[int, int] = {}
        total: dict[int, int] = {}
        for name, rows in self._raw.items():
            keys, counts = np.unique(self._keys(name, rows), return_counts=True)
            for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
                total[key] = total.get(key, 0) + count
                work[key] = work.get(key, 0) + count * (name in schema.DEVICE_WORK)
        return [ExportedProcess(key, work[key], count) for key, count in sorted(total.items()) if key != NULL]

    def _middle(self) -> int | None:
        """The median start, which tells the time of the file even where many stamps are zero."""
        starts = [known(r.numbers[s.start]) for n, r in self._raw.items() if (s := schema.TABLES[n]).start]
        stamps = np.concatenate([np.empty(0, np.int64), *starts])
        stamps = stamps[(stamps != NULL) & (stamps != 0)]
        # As a float the median of the largest stamps is larger than any.
        return min(int(np.median(stamps)), np.iinfo(np.int64).max) if stamps.size else None

    def _last(self) -> int:
        last = self._median or 0
        for name, rows in self._raw.items():
            for column in filter(None, (schema.TABLES[name].start, schema.TABLES[name].end)):
                times = rows.numbers[column]
                last = max(last, int(times[self._near(times)].max(initial=last)))
        return last

    def events(self, table: str, among: Bools | None = None, endless: Bools | None = None) -> EventRows:
        """The rows of a table (those ``among`` them) that have usable times; the others are counted.

        An ``endless`` row needs no end: it ends where it starts. A table is handed out once: all of them, and the
        trace, are more than memory should hold.
        """
        rows, spec = self._raw.pop(table), schema.TABLES[table]
        start = rows.numbers[spec.start]
        end = start if spec.end is None else rows.numbers[spec.end]
        if endless is not None:
            end = np.where(endless, start, end)
        left = np.ones(len(rows), np.bool_) if among is None else among.copy()
        zero = (start == 0) & (end == 0)
        for bad, code, text in (
            (known(start) == NULL, "time_missing", "events without a readable start time"),
            (known(end) == NULL, "duration_missing", "events without a readable end time"),
            (zero | ~self._near(start), "time_out_of_range", "events with a zero or impossible start time"),
            (end < start, "duration_negative", "events that end before they start"),
            (~self._near(end), "time_out_of_range", "events with a zero or impossible start time"),
        ):
            self.losses.rows(left & bad, rows.offset, code, text)
            left &= ~bad
        return EventRows(rows[left], start[left], end[left], np.flatnonzero(left))

    def _near(self, times: I64) -> Bools:
        middle = self._median or 0
        return np.asarray((times > middle - FAR_NS) & (times < middle + FAR_NS))
