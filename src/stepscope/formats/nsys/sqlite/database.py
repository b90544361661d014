"""An SQLite file: its header, its tables, and chosen columns of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from stepscope.errors import InputError
from stepscope.formats.nsys.recognise import SQLITE
from stepscope.formats.nsys.sqlite import pages
from stepscope.formats.nsys.sqlite.pages import UNREADABLE
from stepscope.formats.nsys.sqlite.statement import DeclaredColumns, declared
from stepscope.formats.nsys.sqlite.texts import ColumnTexts
from stepscope.record import record
from stepscope.trace.tables import I32, I64, NULL, U8, Bools

__all__ = ["UNREADABLE", "ColumnTexts", "Database", "DatabaseTable", "TableRows"]

_HEADER_BYTES = 100
_ENCODINGS = {1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
_SCHEMA = DeclaredColumns(("type", "name", "tbl_name", "rootpage", "sql"), -1)


@record
class DatabaseTable:
    """A table: its name, the page its tree begins at, and its columns."""

    name: str
    root: int
    layout: DeclaredColumns

    def has(self, column: str) -> bool:
        """Whether it has a column of that name, in upper or lower case."""
        return column.lower() in (name.lower() for name in self.layout.columns)


_NO_TABLE = DatabaseTable("", 0, DeclaredColumns((), -1))


@record
class TableRows:
    """Chosen columns of one table: integers (NULL where absent, UNREADABLE where no integer) and texts.

    ``offset`` is where each row begins in the file. Rows in ``broken_pages`` are not known; ``broken_rows`` were
    seen but made no sense. ``first_broken`` is the offset of the first of either.
    """

    numbers: Mapping[str, I64]
    texts: Mapping[str, ColumnTexts]
    offset: I64
    broken_pages: int = 0
    broken_rows: int = 0
    first_broken: int | None = None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.offset)

    def __getitem__(self, rows: Bools) -> TableRows:
        """Some of the rows; what was broken is not repeated where any is left out."""
        if rows.all():
            return self
        return TableRows(
            {name: column[rows] for name, column in self.numbers.items()},
            {name: column[rows] for name, column in self.texts.items()},
            self.offset[rows],
        )


class Database:
    """The tables of an SQLite file held (or mapped) in memory.

    Raises InputError with one sentence where the header or the list of tables cannot be read.
    """

    def __init__(self, data: U8, path: str) -> None:
        self.data = np.asarray(data).view()
        self.data.setflags(write=False)
        self.path = path
        head = self.data[:_HEADER_BYTES].tobytes()
        size = int.from_bytes(head[16:18])
        self.page_size = 65_536 if size == 1 else size
        self.usable = self.page_size - (head[20] if len(head) > 20 else 0)
        if len(head) < _HEADER_BYTES or not head.startswith(SQLITE) or not self._plausible():
            raise InputError(f"{path}: the header of this SQLite file makes no sense; export it again")
        self.encoding = _ENCODINGS.get(int.from_bytes(head[56:60]), "utf-8")
        # Written by a version that keeps the size up to date (section 1.3.7 of the format).
        known = head[24:28] == head[92:96]
        self.missing_bytes = max(int.from_bytes(head[28:32]) * self.page_size - len(self.data), 0) if known else 0
        """Bytes that the header counts and the file lacks: it was cut off."""

    def _plausible(self) -> bool:
        power_of_two = self.page_size & (self.page_size - 1) == 0
        return 512 <= self.page_size <= 65_536 and power_of_two and self.usable >= 480

    @property
    def _paged(self) -> pages.Paged:
        return pages.Paged(self.data, self.page_size, self.usable)

    @cached_property
    def tables(self) -> dict[str, DatabaseTable]:
        """The ordinary tables by name: no views, no virtual tables, none of SQLite's own."""
        listed = self._read(DatabaseTable("sqlite_schema", 1, _SCHEMA), ["rootpage"], ["type", "name", "sql"])
        if not len(listed) and listed.first_broken is not None:
            raise InputError(f"{self.path}: the list of tables of this SQLite file is damaged; export it again")
        by_name = {}
        texts = [listed.texts[column].decoded() for column in ("type", "name", "sql")]
        for kind, name, sql, root in zip(*texts, listed.numbers["rootpage"].tolist(), strict=True):
            layout = declared(sql) if kind == "table" and root > 0 and not name.startswith("sqlite_") else None
            if layout is not None:
                by_name[name] = DatabaseTable(name, root, layout)
        return by_name

    def read(self, name: str, numbers: Sequence[str], texts: Sequence[str] = ()) -> TableRows:
        """Columns of one table by name; those it lacks are absent in every row. A table that is not there is empty."""
        return self._read(self.tables.get(name, _NO_TABLE), numbers, texts)

    def last_row(self, name: str) -> int:
        """The highest row id of a table: its number of rows where none was deleted; 0 where it has none."""
        page = pages.last_leaf(self.data, self.page_size, self.tables[name].root)
        numbers = self._decode(np.array([page] if page else [], np.int64), _EMPTY, _EMPTY, (1, 0, 0)).numbers
        return int(numbers[0, -1]) if numbers.size else 0

    def _read(self, table: DatabaseTable, numbers: Sequence[str], texts: Sequence[str]) -> TableRows:
        leaf, broken_pages, broken_page = np.empty(0, np.int64), 0, -1
        if table is not _NO_TABLE:
            leaf, broken_pages, broken_page = pages.leaves(self._paged, table.root)
        at = {column.lower(): place for place, column in enumerate(table.layout.columns)}
        width = max((at.get(column.lower(), -1) for column in (*numbers, *texts)), default=-1) + 1
        place = _places(numbers, at, width), _places(texts, at, width)
        rowid = int(place[0][table.layout.rowid]) if 0 <= table.layout.rowid < width else -1
        raw = self._decode(leaf, *place, (len(numbers), len(texts), rowid))
        broken = [raw.first_broken] if raw.broken else []
        if broken_pages:
            broken.append(min(max(broken_page - 1, 0) * self.page_size, len(self.data)))
        return TableRows(
            dict(zip(numbers, raw.numbers, strict=True)),
            {
                name: ColumnTexts(self.data, raw.spill, start, size, self.encoding)
                for name, start, size in zip(texts, raw.starts, raw.sizes, strict=True)
            },
            raw.offsets,
            broken_pages,
            raw.broken,
            min(broken, default=None),
        )

    def _decode(self, leaf: I64, numbers: I32, texts: I32, shape: tuple[int, int, int]) -> _Raw:
        """The wanted columns of all rows of some leaf pages; ``shape``: how many of either, and the row id's."""
        counts, overflow = pages.measure(self._paged, leaf)
        total = int(counts.sum())
        # Sound payloads lie in the file once; where they claim more, those beyond it count as broken.
        spill = np.empty(min(overflow, len(self.data)), np.uint8)
        places = np.empty((4, total), np.int64)
        cells, first_broken = pages.locate(self._paged, leaf, counts, spill, places)
        begin, end, rowid, offset = places[:, :cells]
        out = pages.Cells(
            np.full((shape[0], cells), NULL, np.int64),
            np.full((shape[1], cells), -1, np.int64),
            np.zeros((shape[1], cells), np.int64),
            np.zeros(cells, np.bool_),
        )
        spill.setflags(write=False)  # Of the same type as the file, so that one compiled loop serves both.
        for buffer, shift in ((self.data, 0), (spill, len(self.data))):
            if len(buffer):
                pages.decode(buffer, shift, (begin, end, rowid), (numbers, texts, shape[2]), out)
        good, held = out.good, (out.numbers, out.starts, out.sizes)
        if not good.all():
            at = int(offset[~good][0])
            first_broken = at if first_broken < 0 else min(at, first_broken)
            held, offset = (out.numbers[:, good], out.starts[:, good], out.sizes[:, good]), offset[good]
        # Copied, or the other places would stay as long as it does.
        return _Raw(*held, offset.copy(), spill, total - len(offset), first_broken)


@record
class _Raw:
    numbers: I64
    starts: I64
    sizes: I64
    offsets: I64
    spill: U8
    broken: int
    first_broken: int


_EMPTY = np.empty(0, np.int32)


def _places(wanted: Sequence[str], at: Mapping[str, int], width: int) -> I32:
    """Per column of a table, which of the wanted ones it is, -1 for none."""
    place = np.full(width, -1, np.int32)
    for k, column in enumerate(wanted):
        if column.lower() in at:
            place[at[column.lower()]] = k
    return place
