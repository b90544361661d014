"""Copies of one size, from one place in the program, many times in every step: whether they are, and the cure."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.copies import Copies
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.remedies import PYTORCH, Remedies
from stepscope.limits import RECURS_SHARE, REPEATED_COPIES

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
    sizes = np.unique(ops.bytes[np.isin(ops.slice, copies.slices)])
    return int(sizes[0]) if sizes.size == 1 and sizes[0] > 0 else None
