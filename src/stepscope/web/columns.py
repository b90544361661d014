"""Columns as bytes for the browser: integers as byte planes, texts as JSON, each section gzipped by itself.

A plane holds one byte of every value, so that the high bytes (nearly all 0) cost next to nothing, and a reader finds
value ``i`` without decoding the others. A section of integers is described by ``width`` (planes), ``zigzag`` (signed
values as 0, -1, 1, -2, ...), ``nullable`` (0 is absent and every other value is one more) and ``delta`` (differences).
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.trace.tables import NULL

MAGIC = b"SSPACK01"
_LEVEL = 5
"""zlib's level: 6 takes half as long again for one percent."""
_GZIP = 31


class Sections:
    """The sections of a pack in the order in which they are added."""

    def __init__(self) -> None:
        self._described: dict[str, dict[str, Any]] = {}
        self._parts: list[bytes] = []
        self._bytes = 0

    def ints(self, name: str, values: npt.NDArray[Any], *, delta: bool = False, nullable: bool = False) -> None:
        """Add integers: int64 range, of which :data:`NULL` (or -1 for other types) may be absent."""
        values = np.asarray(values)
        absent = values == (NULL if values.dtype == np.int64 else -1) if nullable else None
        whole = values.astype(np.int64)
        if absent is not None:
            whole = np.where(absent, 0, whole)
        if delta:
            whole = np.diff(whole, prepend=np.int64(0))
        zigzag = bool((whole < 0).any())
        coded = ((whole << 1) ^ (whole >> 63)).view(np.uint64) if zigzag else whole.view(np.uint64)
        if absent is not None:
            coded = np.where(absent, np.uint64(0), coded + np.uint64(1))
        width = max((int(coded.max(initial=0)).bit_length() + 7) // 8, 1)
        planes = np.ascontiguousarray(coded.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width].T)
        about = {"type": "ints", "count": int(values.size), "width": width}
        flags = {"delta": delta, "zigzag": zigzag, "nullable": nullable}
        self._add(name, planes.tobytes(), about | {flag: True for flag, is_set in flags.items() if is_set})

    def floats(self, name: str, values: npt.NDArray[np.float64]) -> None:
        """Add floats; NaN is absent."""
        planes = np.ascontiguousarray(values.astype("<f8").view(np.uint8).reshape(-1, 8).T)
        self._add(name, planes.tobytes(), {"type": "floats", "count": int(values.size), "width": 8})

    def json(self, name: str, value: Any) -> None:
        """Add anything JSON holds."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # A lone surrogate (a name cut in the middle of a character) has no UTF-8.
        self._add(name, text.encode("utf-8", "replace"), {"type": "json"})

    def packed(self, header: dict[str, Any]) -> bytes:
        """The whole: magic, length of the header, the header as JSON, the sections."""
        text = json.dumps(header | {"sections": self._described}, separators=(",", ":"), allow_nan=False).encode()
        return b"".join((MAGIC, struct.pack("<I", len(text)), text, *self._parts))

    def _add(self, name: str, raw: bytes, about: dict[str, Any]) -> None:
        coder = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        part = coder.compress(raw) + coder.flush()
        self._described[name] = about | {"offset": self._bytes, "bytes": len(part), "raw": len(raw)}
        self._parts.append(part)
        self._bytes += len(part)
