"""An allocator that writes what it does into a drawing, with totals as PyTorch's CUDA allocator reports them."""

from __future__ import annotations

from tests.kit.builder import Micros, TraceDrawing
from tests.kit.events import US, Event, Thread

Block = tuple[int, int]
"""Address and bytes."""


class Ledger:
    """Draws allocations and frees; ``in_use`` bytes were allocated before."""

    def __init__(self, drawing: TraceDrawing, in_use: int = 0, reserved: int = 256 << 20) -> None:
        self.total = in_use
        self._drawing = drawing
        self._reserved = reserved
        self._next = 0x7F00_0000_0000

    def take(self, at: Micros, size: int, thread: str = "main") -> Block:
        """Allocate."""
        block = self._next, size
        self._next += size
        self.total += size
        self._write(at, block[0], size, thread)
        return block

    def give(self, at: Micros, block: Block, thread: str = "main") -> None:
        """Free."""
        self.total -= block[1]
        self._write(at, block[0], -block[1], thread)

    def take_more(self, at: Micros, size: int) -> None:
        """Allocate for a moment, taking as much from the device for it; nothing where there is nothing to take."""
        if size:
            self._reserved += size
            self.give(at + 1, self.take(at, size))

    def _write(self, at: Micros, address: int, size: int, thread: str) -> None:
        args = {
            "Total Reserved": self._reserved,
            "Total Allocated": self.total,
            "Bytes": size,
            "Addr": address,
            "Device Id": 0,
            "Device Type": 1,
        }
        self._drawing.add(Event("memory", "[memory]", Thread(thread), round(at * US), None, args=args))
