"""Event metadata: what all events of one name, kind and category share is written once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from stepscope.analysis.steps import Markers
from stepscope.formats.xplane.stats import CATEGORY, KIND
from stepscope.formats.xplane.writing.distinct import distinct
from stepscope.formats.xplane.writing.plane import Plane, Value
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import tables as t
from stepscope.trace.codes import used_codes
from stepscope.trace.trace import Trace

_COPIES = {t.Direction.H2D: "MemcpyHToD", t.Direction.D2H: "MemcpyDToH", t.Direction.D2D: "MemcpyDToD"}
"""Beginnings of names by which XProf knows copies (tf_op_utils.cc)."""

_NUMBER = regex(r"[# ]\d+$")

_XLA_TEXTS = (("category", "hlo_category"), ("scope", "tf_op"), ("source", "source"))
_XLA_NUMBERS = (("flops", "flops"), ("bytes_accessed", "bytes_accessed"))


@record
class EventNames:
    """Distinct combinations of what event metadata say; ids count from 1."""

    trace: Trace
    of_slice: npt.NDArray[np.int64]
    """Per slice, the id of its metadata."""
    example: t.Rows
    """Per id - 1, a slice that has it."""
    xla_row: t.I32
    """Per slice, its row of ``xla_ops``, -1 without one."""
    direction: t.U8
    """Per slice, which way the copy goes that it is."""
    steps: frozenset[int]
    """Dictionary codes of the names of step markers."""

    @classmethod
    def of(cls, trace: Trace, markers: Markers) -> EventNames:
        """The names of a trace that has slices."""
        slices, xla, ops = trace.slices, trace.xla_ops, trace.device_ops
        xla_row, told = np.full(len(slices), -1, np.int32), np.full(len(slices), -1, np.int64)
        if len(xla):
            told_by = [getattr(xla, column) for column, _ in (*_XLA_TEXTS, *_XLA_NUMBERS)]
            xla_row[xla.slice], told[xla.slice] = np.arange(len(xla)), distinct(told_by)[1]
        direction = np.zeros(len(slices), np.uint8)
        direction[ops.slice] = ops.direction
        first, ids = distinct([slices.name, slices.kind, slices.category, direction, told])
        steps = frozenset(slices.name[markers.slices[markers.slices >= 0]].tolist())
        return cls(trace, ids.astype(np.int64) + 1, first, xla_row, direction, steps)

    def describe(self, plane: Plane, slices: t.Rows) -> None:
        """Write the metadata of a plane's slices."""
        for id in used_codes(self.of_slice[slices], len(self.example) + 1).tolist():
            row = int(self.example[id - 1])
            name = self.trace.name_of(row)
            known = self._known_name(row, name)
            plane.name_events(id, known, name if known != name else None, self._stats(row))

    def _known_name(self, row: int, name: str) -> str:
        """The name by which XProf knows what the slice is; people see the recorded one."""
        slices = self.trace.slices
        if name and slices.kind[row] == t.Kind.COPY:
            return _COPIES.get(t.Direction(self.direction[row]), name)
        if slices.kind[row] == t.Kind.STEP and int(slices.name[row]) in self.steps:
            return _NUMBER.sub("", name) or name  # XProf adds the number
        return name

    def _stats(self, row: int) -> dict[str, Value]:
        strings, category = self.trace.strings, self.trace.slices.category[row]
        stats: dict[str, Value] = {KIND: t.Kind(self.trace.slices.kind[row]).name.lower()}
        if category >= 0:
            stats[CATEGORY] = strings[category]
        if (xla := int(self.xla_row[row])) >= 0:
            for column, stat in _XLA_TEXTS:
                if (code := getattr(self.trace.xla_ops, column)[xla]) >= 0:
                    stats[stat] = strings[code]
            for column, stat in _XLA_NUMBERS:
                if (number := getattr(self.trace.xla_ops, column)[xla]) != t.NULL:
                    stats[stat] = int(number)
        return stats
