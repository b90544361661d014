"""Keras's loop on TensorFlow as an XPlane shows it: frames without folders, host events of TensorFlow, no markers.

Names as TensorFlow 2.21 with Keras 3.15 wrote them, and those of Keras 2 from its ``callbacks.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.kit.xplanes import Ev, Plane, line, space

US = 1_000_000
"""Picoseconds."""
KERAS_3 = ("callback_list.py:194 on_train_batch_end", "callback_list.py:217 _on_train_batch_end")
KERAS_2 = (
    "callbacks.py:437 on_train_batch_end",
    "callbacks.py:296 _call_batch_hook",
    "callbacks.py:337 _call_batch_end_hook",
    "callbacks.py:395 _call_batch_hook_helper",
)
COMPUTES_US = 3_000
"""What the train function takes of each step."""
MARGIN_US = 100
"""Between the parts of a step."""


def nested(frames: Iterable[str], start: int, dur: int) -> list[Ev]:
    """Frames one in the other, outermost first, each a µs shorter at both ends."""
    return [Ev(f"${name}", (start + i) * US, (dur - 2 * i) * US) for i, name in enumerate(frames)]


def calls_function(name: str, start: int, dur: int) -> list[Ev]:
    """A call of a ``tf.function``."""
    inference = f"__inference_{name}_260"
    return [
        Ev(name, start * US, dur * US),
        Ev("EagerExecute", (start + 10) * US, (dur - 20) * US),
        Ev(f"EagerLocalExecute: {inference}", (start + 12) * US, (dur - 24) * US),
        Ev("EagerKernelExecute", (start + 15) * US, (dur - 30) * US),
    ]


def fit(
    steps: int,
    callback_us: int,
    callback: Sequence[str] = ("slow.py:10 on_train_batch_end", "slow.py:12 write"),
    *,
    way: Sequence[str] = KERAS_3,
    more: Sequence[Ev] = (),
    ranges: str = "",
) -> bytes:
    """So many steps, each the train function and then a callback of so many µs; ``ranges`` stand in its place."""
    length = COMPUTES_US + callback_us + 3 * MARGIN_US
    events = list(more)
    for step in range(steps):
        at = MARGIN_US + step * length
        events += nested(["trainer.py:237 function"], at, COMPUTES_US)
        events += calls_function("multi_step_on_iterator", at + 20, COMPUTES_US - 40)
        at += COMPUTES_US + MARGIN_US
        if ranges:
            events.append(Ev(ranges, at * US, callback_us * US))
        elif callback_us:
            events += nested([*way, *callback], at, callback_us)
    return space(Plane("/host:CPU", (line("python", *events, id=5),)))
