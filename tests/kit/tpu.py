"""Profiles of TPU chips with the structure of real ones: what the planted cases of the tests are made of.

Ops are named by the whole text of their instruction and carry the device's own times beside the host's; modules, waits
at barriers and transfers in flight are drawn on lines of their own, by the host's times alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.kit.xplanes import Ev, Plane, Stats, line, space

US = 1_000_000
"""Picoseconds."""

ARRAY, MIB = "f32[16,1024,1024]{2,1,0:T(8,128)", 64
"""An array of 64 MiB, its layout left open for a memory space."""
FETCH = f"%copy-start = ({ARRAY}}}, {ARRAY}S(5)}}, u32[]{{:S(2)}}) copy-start({ARRAY}S(5)}} %param.0)"
FETCHED = f"%copy-done = {ARRAY}}} copy-done(({ARRAY}}}, {ARRAY}S(5)}}, u32[]{{:S(2)}}) %copy-start)"
STORE = f"%copy-start.1 = ({ARRAY}S(5)}}, {ARRAY}}}, u32[]{{:S(2)}}) copy-start({ARRAY}}} %fusion.1)"
STORED = f"%copy-done.1 = {ARRAY}S(5)}} copy-done(({ARRAY}S(5)}}, {ARRAY}}}, u32[]{{:S(2)}}) %copy-start.1)"
NEAR = f"%copy-done.2 = {ARRAY}S(1)}} copy-done(({ARRAY}S(1)}}, {ARRAY}}}, u32[]{{:S(2)}}) %copy-start.2)"
COMPUTE = f"%fusion.1 = {ARRAY}}} fusion({ARRAY}}} %copy-done), kind=kLoop, calls=%fused_computation"
INFEED = "%infeed.1 = ((f32[8]{0}), token[]) infeed(token[] %after-all)"
OUTFEED = "%outfeed.2 = token[] outfeed(f32[8]{0} %x, token[] %after-all.1)"
SENT = f"%send-done.3 = token[] send-done(({ARRAY}}}, u32[], token[]) %send.3), channel_id=2"
RECEIVED = f"%recv-done.4 = ({ARRAY}}}, token[]) recv-done(({ARRAY}}}, u32[], token[]) %recv.4), channel_id=2"
HOST_RECEIVED = "%recv-done.5 = (f32[8]{0}, token[]) recv-done((f32[8]{0}, u32[], token[]) %r), is_host_transfer=true"
SPARSE = (
    f"%async-done.6 = {ARRAY}}} async-done((({ARRAY}}}), {ARRAY}}}, u32[]{{:S(2)}}) %async-start.6), "
    'async_execution_thread="sparsecore", calls=%embedding'
)
REDUCED = f"%all-reduce-done.7 = {ARRAY}}} all-reduce-done({ARRAY}}} %all-reduce-start.7)"
BARRIER = "barrier-cores"
_CATEGORIES = {COMPUTE: "loop fusion", SPARSE: "async-done", HOST_RECEIVED: "host recv-done"}


@dataclass(frozen=True)
class Chip:
    """What one chip runs in every step: instructions, or a wait at a ``BARRIER``, and how long each takes in µs, one
    after another."""

    ops: Sequence[tuple[str, float]]
    number: int = 0


def profile(*chips: Chip, steps: int = 8, step_us: float, free_bytes: int | None = None) -> bytes:
    """Chips that run a program of the same length back to back, each started once by the host well ahead."""
    planes = [_plane(chip, steps, step_us) for chip in chips]
    started = [
        Ev("DoEnqueueProgram", (10 + 20 * at + run) * US // 10, US // 20,
           {"run_id": run + 1, "device_ordinal": chip.number, "queue_id": 0})
        for at, chip in enumerate(chips) for run in range(steps)
    ]  # fmt: skip
    allocated = [] if free_bytes is None else [
        Ev("MemoryAllocation", 9 * US, 0, {
            "bytes_reserved": 0, "bytes_allocated": 1 << 30, "bytes_available": free_bytes, "fragmentation": 0.0,
            "peak_bytes_in_use": 1 << 30, "requested_bytes": 1 << 20, "allocation_bytes": 1 << 20, "addr": 4096,
            "tf_op": "", "id": chip.number, "allocator_name": f"TPU_{chip.number}", "device_ordinal": chip.number})
        for chip in chips
    ]  # fmt: skip
    events = sorted([*started, *allocated], key=lambda event: event.start)
    host = Plane("/host:CPU", (line("main/1", Ev("PjitFunction(f)", 0, US // 10), *events, id=1),))
    return space(*planes, host)


def _plane(chip: Chip, steps: int, step_us: float) -> Plane:
    modules, ops, waits = [], [], []
    for run in range(steps):
        at = begin = round((100 + run * step_us) * US)
        modules.append(Ev("jit_f(7)", begin, round(step_us * US) - 1_000, {"run_id": run + 1, "queue_id": 0}))
        for text, us in chip.ops:
            took = round(us * US)
            own = {"device_offset_ps": at, "device_duration_ps": took}
            (waits if text == BARRIER else ops).append(Ev(text, at, took, {} if text == BARRIER else own))
            at += took
    shared: dict[str, Stats] = {text: {"hlo_category": category} for text, category in _CATEGORIES.items()}
    shown = {text: text.split(" ")[0].removeprefix("%") for text, _ in chip.ops}
    lines = (
        line("XLA Modules", *modules, id=2),
        line("XLA Ops", *ops, id=3),
        line("XLA TraceMe", *waits, id=6),
    )
    return Plane(f"/device:TPU:{chip.number}", lines, {"device_type_string": "TPU v6 Lite"}, shared, shown)
