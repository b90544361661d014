"""What the viewer says of a single slice beside its times: the columns of the tables that extend slices, and costs."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.analysis.facts import Facts
from stepscope.analysis.peaks import device_peaks
from stepscope.analysis.roofline import ABOVE_COMPUTE, ABOVE_MEMORY, Work, row_peaks
from stepscope.trace.codes import used_codes
from stepscope.trace.tables import F64, I32, I64, NULL, Table, is_null
from stepscope.web.columns import Sections

LONGEST_TEXT = 2_000
"""Characters of a name or argument that are kept: enough for the longest template names of real kernels."""
MOST_TEXT = 8_000_000
"""Characters of arguments kept in all; of more, later ones are left out and said to be."""
_TABLES = ("host_ops", "device_ops", "device_waits", "xla_ops", "nodes")
_LEFT_OUT = "(left out: the pack keeps 8 million characters of arguments; open the profile itself)"


def bounded(text: str) -> str:
    """A text of no more than ``LONGEST_TEXT`` characters, saying what was cut."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"


def add_details(sections: Sections, facts: Facts, place: I32) -> None:
    """Add the extending tables; ``place`` maps slices to their places in the pack (its last value is -1)."""
    trace, texts = facts.trace, _Dictionary(facts.trace.strings)
    about = [_table(sections, name, getattr(trace, name), place, texts) for name in _TABLES]
    about.append(_costs(sections, facts, place))
    sections.json("details.tables", [table for table in about if table is not None])
    sections.json("details.texts", texts.kept)


class _Dictionary:
    """Texts of arguments, each once."""

    def __init__(self, strings: tuple[str, ...]) -> None:
        self.kept: list[str] = []
        self._strings = strings
        self._number: dict[int, int] = {}
        self._room = MOST_TEXT

    def numbers(self, codes: Any) -> Any:
        """Codes of the trace as numbers of the kept texts."""
        table = np.full(len(self._strings) + 1, -1, np.int32)
        for code in used_codes(codes, len(self._strings)).tolist():
            if code not in self._number:
                text = bounded(self._strings[code])
                self._room -= len(text)
                self._number[code] = len(self.kept)
                self.kept.append(text if self._room >= 0 else _LEFT_OUT)
            table[code] = self._number[code]
        return table[codes]


def _table(sections: Sections, name: str, table: Table, place: I32, texts: _Dictionary) -> dict[str, Any] | None:
    at = place[getattr(table, "slice")]  # noqa: B009 - every one of them has it, the base class has not
    order = np.argsort(at, kind="stable")
    order = order[at[order] >= 0]
    if not order.size:
        return None
    columns = []
    for field in dataclasses.fields(table):
        values, meta = getattr(table, field.name)[order], field.metadata
        if field.name in ("slice", "launch") or is_null(values).all():
            continue
        column = f"details.{name}.{field.name}"
        if meta["text"]:
            sections.ints(column, texts.numbers(values), nullable=True)
        elif values.dtype == np.float64:
            sections.floats(column, values)
        else:
            sections.ints(column, values, nullable=meta["nullable"])
        labels = [member.name.lower() for member in meta["labels"]] if meta["labels"] is not None else None
        form = {"text": True} if meta["text"] else {"labels": labels} if labels else {}
        columns.append({"name": field.name, "unit": meta["unit"], "doc": meta["doc"], **form})
    sections.ints(f"details.{name}.at", at[order], delta=True)
    return {"name": name, "columns": columns}


_COSTS = {
    "flops": ("FLOP", "Operations of the op this kernel works for."),
    "bytes_least": ("bytes", "Bytes the op has to move at least."),
    "op_kernels_ns": ("ns", "Time of all device ops that work for the same op."),
    "peak_flops": ("FLOP/s", "Peak rate of the device for this kernel's operands."),
    "bandwidth": ("bytes/s", "Memory bandwidth of the device."),
    "flops_per_s": ("FLOP/s", "Operations of the op over the time of its device ops."),
    "flops_share": ("share", "Operations per second as a share of the peak rate."),
    "bytes_per_s": ("bytes/s", "Bytes the op has to move at least over the time of its device ops."),
    "bandwidth_share": ("share", "Bytes per second as a share of the memory's bandwidth."),
}
# Why a share above one cannot be taken as it stands; `unknown` is not shown.
_DOUBTS = ("unknown", ABOVE_COMPUTE, ABOVE_MEMORY)


def _costs(sections: Sections, facts: Facts, place: I32) -> dict[str, Any] | None:
    """What kernels compute and the roofs over them."""
    rows = [_work(facts, work) for work in facts.work]
    if not rows:
        return None
    slices, *columns = (np.concatenate(column) for column in zip(*rows, strict=True))
    at = place[slices]
    order = np.argsort(at, kind="stable")
    kept: list[dict[str, Any]] = []
    for (name, (unit, doc)), values in zip(_COSTS.items(), columns, strict=True):
        if is_null(values).all():
            continue
        if values.dtype == np.float64:
            sections.floats(f"details.cost.{name}", values[order])
        else:
            sections.ints(f"details.cost.{name}", values[order], nullable=True)
        kept.append({"name": name, "unit": unit, "doc": doc})
    by_name = dict(zip(_COSTS, columns, strict=True))
    doubt = np.where(by_name["flops_share"] > 1, 1, np.where(by_name["bandwidth_share"] > 1, 2, 0))
    if doubt.any():
        sections.ints("details.cost.doubt", doubt[order])
        kept.append({"name": "doubt", "unit": None, "doc": "Why a share is above one.", "labels": list(_DOUBTS)})
    sections.ints("details.cost.at", at[order], delta=True)
    return {"name": "cost", "columns": kept} if kept else None


def _work(facts: Facts, work: Work) -> tuple[Any, ...]:
    """Slices, operations, bytes, time and roofs of the kernels whose op's cost is known."""
    rows = np.flatnonzero(work.owner >= 0)
    owner = work.owner[rows]
    total = np.zeros(len(facts.trace.slices), np.int64)
    np.add.at(total, owner, work.ns[rows])
    peaks = device_peaks(facts.trace, work.activity.device)
    bandwidth = NULL if peaks is None or peaks.memory_bandwidth is None else int(peaks.memory_bandwidth.value)
    flops, moved, ns, peak = work.costs.flops[owner], work.costs.bytes[owner], total[owner], row_peaks(work, rows)
    per_second = _ratio(flops, ns) * 1e9, _ratio(moved, ns) * 1e9
    roof = np.full(rows.size, bandwidth, np.int64)
    return (
        work.activity.slice[work.rows[rows]], flops, moved, ns, peak, roof,
        per_second[0], np.where(flops == 0, 0.0, _ratio(per_second[0], peak)),
        per_second[1], _ratio(per_second[1], roof),
    )  # fmt: skip


def _ratio(part: npt.NDArray[Any], whole: I64) -> F64:
    """Quotients; NaN where either is absent or nothing is there to divide by."""
    known = ~is_null(part) & (whole > 0)
    ratio: F64 = np.divide(part, whole, out=np.full(whole.size, np.nan), where=known)
    return ratio
