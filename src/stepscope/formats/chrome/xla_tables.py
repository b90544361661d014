"""Tables of XLA's ops, from the statistics that an export of an XPlane keeps as arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from stepscope.formats.chrome.conversion import Conversion
from stepscope.formats.chrome.pairs import ranks
from stepscope.formats.xla_details import CopyDetails, KernelDetails, copy_details, direction_of, kernel_details
from stepscope.trace import tables as t

Parsed = TypeVar("Parsed")

_OF_OPS = ("hlo_op", "hlo_module", "program_id", "run_id", "hlo_category", "tf_op", "flops", "bytes_accessed")


def xla_ops(conversion: Conversion, ops: t.Rows, drawn: t.Bools) -> t.XlaOps:
    """What the events say of those ``ops`` that XLA compiled; ``drawn`` ones are called after the op itself."""
    columns = conversion.columns
    chosen = np.isin(ops, conversion.rows_with(*_OF_OPS)) | drawn
    rows, drawn = ops[chosen], drawn[chosen]
    op = columns.text("hlo_op", rows)
    return t.XlaOps(
        slice=conversion.slice_id[rows],
        module=columns.text("hlo_module", rows),
        program=columns.at("program_id", rows),
        run=columns.at("run_id", rows),
        op=np.where((op < 0) & drawn, conversion.names(rows), op),
        category=columns.text("hlo_category", rows),
        scope=columns.text("tf_op", rows),
        flops=columns.at("flops", rows),
        bytes_accessed=columns.at("bytes_accessed", rows),
        source=columns.text("source", rows),
        replica_groups=columns.text("replica_groups", rows),
    )


def device_ops(conversion: Conversion, ops: t.Rows, device: t.I32, stream: t.I64, launch: t.I32) -> t.DeviceOps:
    """The device ops, with what their details say of kernels and copies."""
    kernel = _Details(conversion, ops, "kernel_details", kernel_details, KernelDetails())
    copied = _Details(conversion, ops, "memcpy_details", copy_details, CopyDetails())
    cleared = _Details(conversion, ops, "Memset_details", copy_details, CopyDetails())
    text = conversion.builder.text
    size = copied.column(lambda copy: copy.bytes, np.int64)
    absent, unknown = np.full(ops.size, t.NULL, np.int64), np.full(ops.size, -1, np.int32)
    return t.DeviceOps(
        slice=conversion.slice_id[ops],
        device=device,
        stream=stream,
        launch=launch,
        bytes=np.where(size == t.NULL, cleared.column(lambda memset: memset.bytes, np.int64), size),
        direction=_directions(conversion, ops, copied),
        source_memory=copied.column(lambda copy: copy.source, np.uint8),
        target_memory=copied.column(lambda copy: copy.target, np.uint8),
        grid=kernel.column(lambda launched: text(launched.grid), np.int32),
        block=kernel.column(lambda launched: text(launched.block), np.int32),
        registers=kernel.column(lambda launched: launched.registers, np.int64),
        shared_memory=kernel.column(lambda launched: launched.shared_memory, np.int64),
        occupancy_pct=kernel.column(lambda launched: launched.occupancy_pct, np.float64),
        graph=absent,
        collective=unknown,
        process_group=unknown,
        dtype=unknown,
        message_elements=absent,
        group_size=absent,
    )


def _directions(conversion: Conversion, ops: t.Rows, copied: _Details[CopyDetails]) -> t.U8:
    """Which way each copy goes."""
    directions = np.full(ops.size, t.Direction.UNKNOWN, np.uint8)
    copies = np.flatnonzero(conversion.kinds[ops] == t.Kind.COPY)
    names = conversion.events.name[ops[copies]]
    _, first, of = np.unique(ranks(names, copied.of[copies]), return_index=True, return_inverse=True)
    ways = [
        direction_of(conversion.events.strings[names[at]], copied.distinct[copied.of[copies[at]]])
        for at in first.tolist()
    ]
    directions[copies] = np.array(ways, np.uint8)[of] if ways else 0
    return directions


class _Details(Generic[Parsed]):
    """A detail statistic of the ops, each distinct text parsed once."""

    def __init__(
        self, conversion: Conversion, ops: t.Rows, key: str, parse: Callable[[str], Parsed], absent: Parsed
    ) -> None:
        used, of = np.unique(conversion.columns.text(key, ops), return_inverse=True)
        self.of = of
        """Per op, which of ``distinct``."""
        self.distinct = [absent if code < 0 else parse(conversion.builder.string(code)) for code in used.tolist()]

    def column(self, part: Callable[[Parsed], float], dtype: type[Any]) -> npt.NDArray[Any]:
        """One part of the details as a column."""
        return np.array([part(parsed) for parsed in self.distinct], dtype)[self.of]
