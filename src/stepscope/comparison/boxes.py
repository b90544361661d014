"""The work of two runs as one tree: layers, the ops in them, the kernels of those (without a device the ops alone)."""

from __future__ import annotations

from collections import defaultdict

from stepscope.analysis.alike import numberless
from stepscope.comparison.work import StepWork
from stepscope.record import record

_LISTED = 400


@record
class Box:
    """Work that stands in one place, mean ns per step and device; 0 on the side that has none there."""

    path: tuple[str, ...]
    """Layers with ``*`` in place of their numbers, the op, the kernel."""
    before_ns: int
    after_ns: int


def boxes(before: StepWork, after: StepWork) -> tuple[Box, ...]:
    """Those that take most on either side."""
    sums: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for side, run in enumerate((before, after)):
        for item in run.by("layer", "op", "name"):
            sums[_path(*item.labels)][side] += int(item.per_step_ns.sum()) // max(run.steps, 1)
    made = [Box(path, *both) for path, both in sums.items() if any(both)]
    return tuple(sorted(made, key=lambda box: (-max(box.before_ns, box.after_ns), box.path))[:_LISTED])


def _path(layer: str | None, op: str | None, name: str | None) -> tuple[str, ...]:
    layers = tuple(map(numberless, layer.split("/"))) if layer else ()
    return (*layers, *dict.fromkeys(one for one in (op, name) if one))
