"""NVTX ranges: what PyTorch writes into their text, and which of them cross."""

from __future__ import annotations

import numpy as np

from stepscope.compiled import filling, inlined
from stepscope.formats.chrome.kineto_kinds import annotation_kind
from stepscope.formats.nsys.sqlite import ColumnTexts
from stepscope.formats.nsys.sqlite.pages import byte_at
from stepscope.formats.nsys.sqlite.texts import TextPlaces
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.tables import I64, NULL, U8, Bools, Kind

_PATTERNS = (
    np.frombuffer(b", seq = ", np.uint8),
    np.frombuffer(b", op_id = ", np.uint8),
    np.frombuffer(b", sizes = ", np.uint8),
    np.frombuffer(b", input_op_ids = ", np.uint8),
)


@record
class OpTexts:
    """The parts of ``aten::mm, seq = 5, op_id = 7, sizes = [[2, 3]], input_op_ids = [...]``, one value per range.

    That is how ``torch.autograd.profiler.emit_nvtx`` and ``nsys --pytorch`` write ops (``getNvtxStr`` in
    ``torch/csrc/autograd/profiler``); other ranges are names alone. Left out: the op's own number, which makes every
    text a different one, and its inputs'.
    """

    name: ColumnTexts
    sequence: I64
    sizes: ColumnTexts
    is_op: Bools
    """Whether there was more than a name."""


def split(texts: ColumnTexts) -> OpTexts:
    """Take the texts of ranges apart."""
    count = len(texts)
    bounds = np.full((len(_PATTERNS), count), -1, np.int64)
    sequence = np.full(count, NULL, np.int64)
    if texts.encoding == "utf-8":
        _split(texts.places, _PATTERNS, bounds, sequence)
    here = bounds >= 0
    end = np.where(here, bounds, texts.size).min(axis=0)
    begin = bounds[2] + len(_PATTERNS[2])
    sizes = ColumnTexts(
        texts.data,
        texts.spill,
        np.where(here[2], texts.start + begin, -1),
        np.where(here[3], bounds[3], texts.size) - begin,
        texts.encoding,
    )
    return OpTexts(
        ColumnTexts(texts.data, texts.spill, texts.start, end, texts.encoding), sequence, sizes, here[0] | here[1]
    )


_OP_NAME = regex(
    r"(?:aten|prims?|c10d|_c10d_functional|torch\w*|quantized|inductor|autograd::engine)::|\w+Backward\d*$"
)


def range_kind(name: str) -> Kind:
    """What a range of this name is: an op, a step or an annotation."""
    return Kind.HOST_OP if _OP_NAME.match(name) else annotation_kind(name)


def op_kind(name: str) -> Kind:
    """The same for a range that PyTorch numbered as it numbers ops: a custom op's namespace may be any."""
    return Kind.HOST_OP if "::" in name else range_kind(name)


def crossing(thread: I64, start: I64, end: I64) -> Bools:
    """Which ranges of a thread cross another: neither lies in the other, nor are they apart.

    Brackets that nest pair up level by level: each that opens at a depth is closed by the next that closes there.
    """
    rows = np.flatnonzero(end > start)  # One of no length crosses nothing.
    rows = rows[np.lexsort((-end[rows], start[rows], thread[rows]))]
    count = np.arange(rows.size)
    time = np.concatenate((end[rows], start[rows]))
    opens = np.repeat([False, True], rows.size)
    # At one instant ranges close before others open, the inner ones first, and open with the outer ones first.
    order = np.lexsort((np.concatenate((-count, count)), opens, time, np.tile(thread[rows], 2)))
    who, opens = np.tile(rows, 2)[order], opens[order]
    level = np.cumsum(np.where(opens, 1, -1)) - opens
    pairs = who[np.lexsort((np.arange(level.size), level))].reshape(-1, 2)
    crosses = np.zeros(start.size, np.bool_)
    crosses[pairs[pairs[:, 0] != pairs[:, 1]].ravel()] = True
    return crosses


@inlined
def _stands_at(data: U8, spill: U8, start: int, left: int, pattern: U8) -> bool:
    k = 0
    while k < pattern.size and k < left and byte_at(data, spill, start + k) == pattern[k]:
        k += 1
    return k == pattern.size


@filling
def _split(texts: TextPlaces, patterns: tuple[U8, ...], bounds: I64, sequence: I64) -> None:
    data, spill, start, size = texts
    for row in range(start.size):
        if start[row] < 0:
            continue
        for at in range(size[row]):
            if byte_at(data, spill, start[row] + at) == 44:  # A comma begins each.
                for p in range(4):
                    if bounds[p, row] < 0 and _stands_at(data, spill, start[row] + at, size[row] - at, patterns[p]):
                        bounds[p, row] = at
        if bounds[0, row] >= 0:
            at = bounds[0, row] + patterns[0].size
            value = np.int64(0)
            digits = 0
            while at < size[row] and digits < 18:
                byte = byte_at(data, spill, start[row] + at)
                if not 48 <= byte <= 57:
                    break
                value = value * 10 + byte - 48
                digits += 1
                at += 1
            if digits > 0:
                sequence[row] = value
