"""A small profile with a device for the tests of commands, and its path."""

from __future__ import annotations

from pathlib import Path

from tests.kit.builder import TraceDrawing
from tests.kit.kineto_writer import write_kineto

STEPS = 5


def write_profile(path: Path, cut: int | None = None) -> Path:
    """Steps 3 to 7 of 100 us with an op, a launch and a kernel of 60 us each; ``cut`` takes bytes off its end."""
    drawing = TraceDrawing()
    for step in range(STEPS):
        at = 100 * step
        drawing.step(3 + step, at, 100)
        drawing.host("aten::mm", at + 10, 40)
        drawing.kernel(drawing.launch(at + 20, 5), f"gemm\x1b[31m{3 + step}", at + 30, 60)
    data = write_kineto(drawing.events())
    path.write_bytes(data if cut is None else data[:-cut])
    return path
