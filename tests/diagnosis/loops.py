"""Training loops of which every microsecond is chosen, for thresholds: one device, one cause, any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.formats.beside.rows import table_of
from stepscope.trace.tables import NULL, Looks, TrackKind
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.kit.kineto_writer import write_kineto
from tests.support import trace_of_bytes

STEPS = 6
"""Four of them are used: the first and last are left out."""

CALL = 5
"""Duration of a launch call."""

Step = Callable[[TraceDrawing, int, int], None]
"""Draws one step: the drawing, the step's number, its start."""


def loop(step_us: int, step: Step, steps: int = STEPS) -> list[Event]:
    """Steps of one length one after another, each marked."""
    drawing = TraceDrawing()
    for number in range(steps):
        drawing.step(number, number * step_us, step_us)
        step(drawing, number, number * step_us)
    return drawing.events()


def facts_with(events: list[Event], **header: Any) -> Facts:
    """Facts of events in a profile with some root keys."""
    return analyse(trace_of_bytes(write_kineto(events, header=header)))


def diagnosed(events: list[Event], header: Mapping[str, Any] | None = None) -> Diagnosis:
    return diagnose(facts_with(events, **(header or {})))


def looked(events: list[Event], *seen: tuple[int, int, str]) -> Diagnosis:
    """What is diagnosed where the host thread was looked at: when (µs), at which line of ``train.py``, and in what."""
    trace = trace_of_bytes(write_kineto(events))
    (track,) = np.flatnonzero(trace.tracks.kind == TrackKind.HOST_THREAD).tolist()
    rows = [(at * 1_000, track, "/job/train.py", line, function, NULL) for at, line, function in seen]
    strings, looks = table_of(trace.strings, Looks, rows)
    return diagnose(analyse(replace(trace, strings=strings, looks=looks)))


def rules(diagnosis: Diagnosis) -> list[str]:
    """The rules of the findings, in order."""
    return [finding.rule for finding in diagnosis.findings]


def work(drawing: TraceDrawing, start: float, end: float, name: str = "k") -> None:
    """The device is idle until ``start`` + a call, then works until ``end``."""
    drawing.kernel(drawing.launch(start, CALL), name, start + CALL, end - start - CALL)


def waiting_for_input(step_us: int, input_us: int, name: str = "", **stages: int) -> list[Event]:
    """Each step waits for its batch for exactly so long; ``stages`` are ops inside the input range."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if name:
            drawing.annotation(name, start, input_us)
        else:
            drawing.input_wait(start, input_us)
        at = start
        for frame, dur in stages.items():
            drawing.host(frame, at, dur, "python_function" if "(" in frame or "<" in frame else "cpu_op")
            at += dur
        work(drawing, start + input_us, start + step_us)

    return loop(step_us, step)


def launching(step_us: int, launch_us: int) -> list[Event]:
    """The device waits once a step, exactly as long as the host takes to dispatch an op and launch it."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if launch_us > CALL:
            drawing.host("aten::add", start, launch_us)
        call = drawing.launch(start + launch_us - CALL, CALL)
        drawing.kernel(call, "k", start + launch_us, step_us - launch_us)

    return loop(step_us, step)


def synchronising(step_us: int, after_us: int, *ops: str, call: str = "cudaStreamSynchronize") -> list[Event]:
    """The host waits in nested ops for the step's only kernel; then it works so long before the next launch."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(61): log_loss", start, step_us)
        if number:
            drawing.host("aten::view", start, after_us - CALL)
        work(drawing, start + after_us - CALL, start + step_us)
        inner = start + after_us + 10
        for op in ops:
            drawing.host(op, inner, start + step_us - inner)
        drawing.sync(inner, start + step_us - inner, call)

    return loop(step_us, step)


def copying(
    step_us: int,
    copy_us: int,
    direction: Any = "HtoD",
    memory: str = "Pageable",
    *,
    every: int = 1,
    launched: bool = True,
) -> list[Event]:
    """Each step (or every so many) begins with a copy beside which nothing runs; a kernel takes the rest."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(52): to_device", start, 40)
        drawing.host("aten::to", start, 40)
        copies = copy_us if number % every == 0 else 0
        if copies:
            call = drawing.call("cudaMemcpyAsync", start, CALL) if launched else None
            drawing.copy(call, direction, start + CALL, copies, 1 << 20, memory)
        drawing.kernel(drawing.launch(start + 10, CALL), "k", start + CALL + 10 + copies, step_us - copies - CALL - 10)

    return loop(step_us, step)


def running(*kernels: tuple[str, int]) -> list[Event]:
    """Steps of nothing but kernels of so many µs, one after another."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        at = start + CALL
        for i, (name, dur) in enumerate(kernels):
            drawing.kernel(drawing.launch(start + CALL * i, CALL), name, at, dur)
            at += dur

    return loop(CALL + sum(dur for _, dur in kernels), step)
