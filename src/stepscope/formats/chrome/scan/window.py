"""A stretch of text in memory, padded so that no search of the kernels leaves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PADDING = 256
EVENT_LIMIT = 16 << 20
"""An event of more bytes is skipped: no profiler writes one, and memory must stay bounded."""


@dataclass(slots=True)
class TextWindow:
    """``buffer[:end]`` is the text from offset ``base`` on; ``last``: nothing follows it."""

    buffer: npt.NDArray[np.uint8]
    base: int
    end: int
    last: bool

    def __post_init__(self) -> None:
        """Write what stops every search behind the text: quotes for strings, then braces for scalars."""
        self.buffer[self.end : self.end + PADDING // 2] = ord('"')
        self.buffer[self.end + PADDING // 2 : self.end + PADDING] = ord("}")

    @property
    def view(self) -> memoryview[Any]:
        """The text and what lies behind it."""
        return self.buffer.data

    def is_enough(self, at: int) -> bool:
        """Whether an event that begins at ``at`` and does not end in this window needs no further look."""
        return self.last or self.end - at >= EVENT_LIMIT


def empty_buffer(size: int) -> npt.NDArray[np.uint8]:
    """A buffer for windows of ``size`` bytes."""
    return np.empty(size + PADDING, np.uint8)


def window_of(data: bytes | bytearray | memoryview[Any], base: int, last: bool) -> TextWindow:
    """A window on a copy of ``data``."""
    buffer = empty_buffer(len(data))
    buffer[: len(data)] = np.frombuffer(data, np.uint8)
    return TextWindow(buffer, base, len(data), last)
