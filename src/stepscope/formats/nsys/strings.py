"""Names in an Nsight Systems export: texts of their own, or numbers of a text in ``StringIds``."""

from __future__ import annotations

import numpy as np

from stepscope.formats.nsys.sqlite import ColumnTexts, TableRows
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.tables import I32, I64, NULL, Bools


class StringIds:
    """The table ``StringIds``, and the dictionary of the trace that its texts go to."""

    def __init__(self, rows: TableRows, builder: TraceBuilder) -> None:
        self.builder = builder
        self._order = np.argsort(rows.numbers["id"], kind="stable")
        self._ids = rows.numbers["id"][self._order]
        self._texts = rows.texts["value"]

    def at(self, ids: I64) -> ColumnTexts:
        """The text behind each number, absent where the table lacks it."""
        place = np.searchsorted(self._ids, ids)
        known = np.flatnonzero((place < self._ids.size) & (ids != NULL))
        known = known[self._ids[place[known]] == ids[known]]
        return self._texts.spread(self._order[place[known]], known, ids.size)

    def codes(self, ids: I64) -> I32:
        """The dictionary code of each number's text, -1 where the table lacks it."""
        used, which = np.unique(ids, return_inverse=True)
        return self.of(self.at(used))[which]

    def of(self, texts: ColumnTexts) -> I32:
        """The dictionary code of each text, -1 where it is absent."""
        code, distinct = texts.distinct()
        return np.array([*map(self.builder.text, distinct), -1], np.int32)[code]

    def named(self, codes: I32, ids: I64) -> tuple[I32, Bools]:
        """The codes, with the number itself as the name where there is none; and which rows those are."""
        missing = codes < 0
        if missing.any():
            used, which = np.unique(ids[missing], return_inverse=True)
            names = ["unnamed" if number == NULL else f"StringIds[{number}]" for number in used.tolist()]
            codes = codes.copy()
            codes[missing] = np.array([self.builder.text(name) for name in names], np.int32)[which]
        return codes, missing
