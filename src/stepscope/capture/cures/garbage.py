"""Python's garbage collection between steps, and not of what stays."""

from __future__ import annotations

import gc
from typing import Any

from .cure import ANY, Applying, ByHand, Cure

EVERY = 20
"""Steps from one collection to the next: every trial has some."""


def _into(applying: Applying, _: Any, recorder: Any) -> None:
    begun: list[int] = []

    def ended(step: int) -> None:
        if not begun:
            begun.append(step)
            gc.collect()
            gc.freeze()
            gc.disable()
            applying.applied()
        elif step % EVERY == 0:
            gc.collect()

    applying.on_edge.append(ended)


GARBAGE = Cure(
    name="garbage",
    title="garbage collected between steps, and what stays left alone",
    answers=("slow_steps", "between_steps"),
    sets=f"gc.freeze() and gc.disable() after the first step, gc.collect() every {EVERY} steps",
    may_break="memory held by cycles is given back later",
    undone="leave the calls out",
    module=ANY,
    framework=None,
    into=_into,
    patch=lambda _: (
        ByHand(
            "import gc\n"
            "# Behind the first step:\n"
            "gc.collect(); gc.freeze(); gc.disable()\n"
            "# At the end of each step:\n"
            f"if step % {EVERY} == 0:\n"
            "    gc.collect()"
        ),
    ),
)
