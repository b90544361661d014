"""Collectives that XLA writes as two ops, a start and a done between which others run: one collective each.

A done belongs to the start before it of the same name (``all-reduce-start.3``, ``all-reduce-done.3``); numbers may
differ, then starts and dones of a kind follow each other in one order. A start without a done (GPUs run none) or a
done whose start was not recorded is left as it is.
"""

from __future__ import annotations

import numpy as np

from stepscope.names.collectives import Half, half
from stepscope.trace.tables import I32, I64, Bools
from stepscope.trace.trace import Trace


def joined(trace: Trace, slices: I32, end: I64) -> tuple[Bools, I64]:
    """Of a device's collectives in order of start: which begin one, and when each is over."""
    begins, over = np.ones(slices.size, np.bool_), end.copy()
    of_slice = dict(zip(trace.xla_ops.slice.tolist(), trace.xla_ops.op.tolist(), strict=True))
    codes = [of_slice.get(one, -1) for one in slices.tolist()]
    names = trace.slices.name[slices].tolist()
    halves = {code: half(trace.strings[code]) for code in {*codes, *names} if code >= 0}
    parts: list[Half | None] = [halves.get(code) or halves[name] for code, name in zip(codes, names, strict=True)]
    for exact in (True, False):
        waiting: dict[tuple[str, ...], list[int]] = {}
        for at, part in enumerate(parts):
            if part is None:
                continue
            waits = waiting.setdefault((part.kind, part.suffix) if exact else (part.kind,), [])
            if not part.done:
                waits.append(at)
            elif waits:
                # Of one name the last start; of one kind they come in order.
                first = waits.pop() if exact else waits.pop(0)
                over[first], begins[at] = max(end[first], end[at]), False
                parts[first] = parts[at] = None
    return begins, over
