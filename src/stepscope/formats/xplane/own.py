"""What stepscope's own XPlane files (``writing``) say beside what any file does, so that reading one gives the
trace back that was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from stepscope.formats.restated import OwnPart, OwnSpace
from stepscope.formats.xplane.stats import LAUNCH, MARKER, NUMBER, OWN_COLUMNS, PART, RUN
from stepscope.formats.xplane.view import View
from stepscope.trace import tables as t
from stepscope.trace.codes import united

Stated = TypeVar("Stated")

_MARKERS = {source.name.lower(): source for source in t.MarkerSource}
_BASES = len(t.LaunchBasis)


def restated_run(headers: Sequence[dict[str, Any]]) -> OwnSpace | None:
    """What the file says of its run, taken out of the statistics of its planes; None where it says nothing sound."""
    texts = [stats.pop(RUN) for stats in headers if RUN in stats]
    return _decoded(texts, OwnSpace)


def restated_part(headers: Sequence[dict[str, Any]]) -> OwnPart | None:
    """What the file says it is a part of, likewise; of a part of a part, the last one."""
    texts = [stats.pop(PART) for stats in headers if PART in stats]
    return _decoded(texts[-1:], OwnPart)


def _decoded(texts: list[Any], kind: type[Stated]) -> Stated | None:
    try:
        return msgspec.json.decode(texts[0], type=kind) if texts else None
    except (msgspec.DecodeError, RecursionError, TypeError):
        return None


def launch_number(call: t.I64, basis: t.U8) -> t.I64:
    """The number that a call shares with the ops it launched, and that tells how they were matched."""
    return call * _BASES + basis


def restated_launches(view: View, calls: t.Rows, ops: t.Rows, call: t.Rows, basis: t.U8) -> None:
    """Set the calls of the ops that share a launch number with one; ``calls`` are the events they may be.

    What a reader infers besides correlation ids was not known when the file was written.
    """
    stats = view.space.stats
    call[basis == t.LaunchBasis.EXECUTION] = -1
    calls = np.intersect1d(stats.rows(LAUNCH).astype(np.intp), calls)
    known, first = np.unique(stats.integers(LAUNCH, calls), return_index=True)
    if known.size:
        wanted = stats.integers(LAUNCH, ops)
        at = np.minimum(np.searchsorted(known, wanted), known.size - 1)
        is_known = (known[at] == wanted) & (wanted >= 0)
        call[is_known] = calls[first[at[is_known]]]
        basis[is_known] = wanted[is_known] % _BASES


def restated_marks(view: View, slices: t.Bools, slice_id: t.I32) -> t.StepMarks:
    """The marks of steps."""
    stats = view.space.stats
    rows = stats.rows(MARKER).astype(np.intp)
    rows = rows[slices[rows]]
    words, places = stats.texts(MARKER, rows)
    sources = np.array([*(_MARKERS.get(word, -1) for word in words), -1])[places]
    rows, sources = rows[sources >= 0], sources[sources >= 0]
    return t.StepMarks(slice_id[rows], sources.astype(np.uint8), stats.integers(NUMBER, rows))


def restated_tables(view: View, slices: t.Bools, slice_id: t.I32) -> Iterator[t.Table]:
    """What PyTorch's profiler says of its ops, and TensorFlow's graph of its nodes."""
    for table, told_by in (("host_ops", ""), ("nodes", "node")):
        columns = OWN_COLUMNS[table]
        stats = [columns[told_by]] if told_by else list(columns.values())
        rows = united(np.concatenate([view.space.stats.rows(stat) for stat in stats])).astype(np.intp)
        rows = rows[slices[rows]]
        kind = t.TABLES[table]
        restated = {"slice": slice_id[rows], **_columns(view, kind, columns, rows)}
        named = restated[told_by] >= 0 if told_by else np.ones(rows.size, np.bool_)
        yield kind(**{column: values[named] for column, values in restated.items()})


def with_restated_columns(view: View, table: t.DeviceOps | t.DeviceWaits, rows: t.Rows) -> Any:
    """A table with those of its columns that only stepscope's own files have; ``rows`` are its events."""
    columns = OWN_COLUMNS["device_ops" if isinstance(table, t.DeviceOps) else "device_waits"]
    return replace(table, **_columns(view, type(table), columns, rows))


def _columns(view: View, table: type[t.Table], columns: Mapping[str, str], rows: t.Rows) -> dict[str, Any]:
    is_text = {column: bool(table.__dataclass_fields__[column].metadata["text"]) for column in columns}
    return {
        column: view.codes(stat, rows) if is_text[column] else view.space.stats.integers(stat, rows)
        for column, stat in columns.items()
    }
