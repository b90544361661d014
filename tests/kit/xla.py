"""Small traces of XLA jobs made straight in the tables: host ranges, executions and their ops on devices."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Completeness, Device, Info, Trace

US = 1_000


@dataclass(frozen=True)
class HostRange:
    """Something the main thread, or another, did; times in µs."""

    name: str
    start: int
    dur: int
    kind: Kind = Kind.ANNOTATION
    step: int | None = None
    """A step marker's number."""
    thread: str = "python"


@dataclass(frozen=True)
class Op:
    """An op of a compiled module on a device; times in µs."""

    name: str
    start: int
    dur: int
    device: int = 0
    execute: int = -1
    """Position of the execute call among the host's ranges."""
    module: str = "jit_step"
    program: int = 1
    run: int | None = None
    kind: Kind = Kind.KERNEL
    scope: str | None = None
    source: str | None = None


@dataclass(frozen=True)
class Line:
    """A slice on a device's derived line; times in µs."""

    line: str
    name: str
    start: int
    dur: int
    device: int = 0
    number: int | None = None


@dataclass(frozen=True)
class Job:
    """What a trace is made of."""

    host: list[HostRange]
    ops: list[Op]
    lines: list[Line] = field(default_factory=list)
    programs: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Program id to module and parameters."""
    framework: str | None = "JAX"
    kind: str = "tpu"
    infeeds: list[tuple[int, int]] = field(default_factory=list)
    """Start and duration of infeed ops on device 0, in µs."""


def build(job: Job) -> Trace:
    """The trace of a job."""
    b = TraceBuilder()
    threads = {
        label: b.track(t.TrackKind.HOST_THREAD, "/host:CPU", str(at), label=label)
        for at, label in enumerate(dict.fromkeys(r.thread for r in job.host), 1)
    }
    streams = {
        d: b.track(t.TrackKind.DEVICE_STREAM, f"/device:TPU:{d}", "3", label="XLA Ops", device=d, stream=3)
        for d in sorted({op.device for op in job.ops})
    }
    lines = {
        key: b.track(t.TrackKind.DEVICE_LINE, f"/device:TPU:{key[0]}", key[1], label=key[1], device=key[0])
        for key in sorted({(line.device, line.line) for line in job.lines})
    }
    rows = [(threads[r.thread], r.start, r.dur, r.name, r.kind) for r in job.host]
    rows += [(streams[op.device], op.start, op.dur, op.name, op.kind) for op in job.ops]
    kinds = {"Steps": Kind.STEP, "XLA Modules": Kind.MODULE}
    rows += [(lines[x.device, x.line], x.start, x.dur, x.name, kinds[x.line]) for x in job.lines]
    _infeeds(b, job, len(rows))
    rows += [(streams[0], start, dur, "infeed.5", Kind.DEVICE_WAIT) for start, dur in job.infeeds]
    track, start, dur, name, kind = zip(*rows, strict=True)
    b.slices(
        track=np.array(track, np.int32),
        start_ns=np.array(start, np.int64) * US,
        dur_ns=np.array(dur, np.int64) * US,
        name=np.array([b.text(text) for text in name], np.int32),
        kind=np.array(kind, np.uint8),
    )
    first_op, first_line = len(job.host), len(job.host) + len(job.ops)
    marks = [(at, t.MarkerSource.STEP_NUM_ROOT, r.step) for at, r in enumerate(job.host) if r.step is not None]
    for at, x in enumerate(job.lines):
        if x.line == "Steps":
            marks.append((first_line + at, t.MarkerSource.STEPS_LINE, t.NULL if x.number is None else x.number))
    slices, sources, numbers = zip(*marks, strict=True) if marks else ((), (), ())
    b.table(t.StepMarks(np.array(slices, np.int32), np.array(sources, np.uint8), np.array(numbers, np.int64)))
    _ops(b, job, first_op)
    b.table(
        t.Programs(
            program=np.array(list(job.programs), np.int64),
            module=np.array([b.text(module) for module, _ in job.programs.values()], np.int32),
            parameters=np.array([b.text(shapes) for _, shapes in job.programs.values()], np.int32),
        )
    )
    devices = tuple(Device(d, kind=job.kind) for d in streams)
    info = Info("XPlane", framework=job.framework, devices=devices)
    return b.build(info, Completeness(len(rows), {"slices": len(rows)}))


def _infeeds(b: TraceBuilder, job: Job, first: int) -> None:
    count = len(job.infeeds)
    absent = np.full(count, t.NULL, np.int64)
    b.table(
        t.DeviceWaits(
            slice=np.arange(first, first + count, dtype=np.int32),
            device=np.zeros(count, np.int32),
            stream=np.full(count, 3, np.int64),
            wait_on_stream=absent,
            wait_on_correlation=absent.copy(),
        )
    )


def _ops(b: TraceBuilder, job: Job, first: int) -> None:
    count = len(job.ops)
    ids = np.arange(first, first + count, dtype=np.int32)
    calls = np.array([op.execute for op in job.ops], np.int32)
    known = calls >= 0
    b.table(t.Launches(calls[known], ids[known], np.full(int(known.sum()), t.LaunchBasis.EXECUTION, np.uint8)))
    empty = t.DeviceOps.empty()
    columns = {name: np.full(count, -1 if getattr(empty, name).dtype == np.int32 else t.NULL) for name in (
        "bytes", "grid", "block", "registers", "shared_memory", "graph", "collective", "process_group", "dtype",
        "message_elements", "group_size")}  # fmt: skip
    zeros = np.zeros(count, np.uint8)
    b.table(
        t.DeviceOps(
            slice=ids,
            device=np.array([op.device for op in job.ops], np.int32),
            stream=np.full(count, 3, np.int64),
            launch=calls,
            direction=zeros,
            source_memory=zeros,
            target_memory=zeros,
            occupancy_pct=np.full(count, np.nan),
            **{name: value.astype(getattr(empty, name).dtype) for name, value in columns.items()},
        )
    )

    def texts(values: list[str | None]) -> t.I32:
        return np.array([b.text(value) for value in values], np.int32)

    absent = np.full(count, t.NULL, np.int64)
    b.table(
        t.XlaOps(
            slice=ids,
            module=texts([op.module for op in job.ops]),
            program=np.array([op.program for op in job.ops], np.int64),
            run=np.array([t.NULL if op.run is None else op.run for op in job.ops], np.int64),
            op=texts([op.name for op in job.ops]),
            category=texts([None] * count),
            scope=texts([op.scope for op in job.ops]),
            flops=absent,
            bytes_accessed=absent,
            source=texts([op.source for op in job.ops]),
            replica_groups=texts([None] * count),
        )
    )
