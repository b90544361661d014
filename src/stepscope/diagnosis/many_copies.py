"""Copies of one size, from one place in the program, many times in every step: whether they are, and the cure. The ops
of a graph of TensorFlow, each of which runs once, are one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from stepscope.analysis.copies import Copies
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.diagnosis.limits import REPEATED_COPIES
from stepscope.diagnosis.remedies import PYTORCH, Remedies
from stepscope.names.scopes import is_tensorflow_op
from stepscope.trace.codes import among

WITHIN_DEVICE: Remedies = {
    PYTORCH: """\
Write in place, or keep one memory layout: `.contiguous()`, `.clone()` and changes of layout copy each time. Concatenate
small tensors once instead of copying them one by one.""",
    None: "Write in place, keep one memory layout, and concatenate small arrays once instead of one by one.",
}
TO_DEVICE: Remedies = {
    PYTORCH: """\
Copy once: concatenate the small tensors and send them together, keep what does not change on the device, and create
tensors where they are used (`device=...`).""",
    None: """\
Copy once: concatenate the small arrays and send them together, keep what does not change on the device, and create
arrays where they are used.""",
}
TO_HOST: Remedies = {
    None: "Read all values of a step with one copy: keep them on the device, and stack them before they are read.",
}


def size_of_many(facts: Facts, copies: Copies) -> int | None:
    """The size all of them have; None where they differ, are few per step, or come in some steps only."""
    if copies.count < REPEATED_COPIES * len(facts.used) or len(copies.steps) < RECURS_SHARE * len(facts.used):
        return None
    ops = facts.trace.device_ops
    sizes = np.unique(ops.bytes[among(ops.slice, copies.slices)])
    return int(sizes[0]) if sizes.size == 1 and sizes[0] > 0 else None


class Many(NamedTuple):
    """Many copies of one size."""

    place: str
    """In words."""
    copies: int
    """In the used steps."""
    size: int


def many_of_one_size(facts: Facts, of_step: Iterable[Copies]) -> list[Many]:
    """The copies of which there are many, by place; those that ops of a graph make one by one together."""
    alone: list[Many] = []
    of_graph: dict[int, list[int]] = {}
    for copies in of_step:
        size = size_of_many(facts, copies)
        if size is not None:
            alone.append(Many(f"`{copies.op}`" if copies.op else "one place", copies.count, size))
        elif copies.op and is_tensorflow_op(copies.op) and copies.bytes and copies.bytes % copies.count == 0:
            of_graph.setdefault(copies.bytes // copies.count, []).append(copies.count)
    least = REPEATED_COPIES * len(facts.used)
    graph = [
        Many(f"{len(counts)} ops of the graph", sum(counts), size)
        for size, counts in of_graph.items()
        if sum(counts) >= least and len(counts) > 1
    ]
    return [*alone, *sorted(graph, key=lambda many: -many.copies)]
