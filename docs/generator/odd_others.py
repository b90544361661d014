"""Small whole profiles of other formats than Kineto's, ways to damage them, and what then becomes of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from generator.odd_case import Case, odd
from generator.odd_trace import STEPS


def message(*fields: tuple[int, int | str | bytes]) -> bytes:
    """A protocol-buffer message of small numbers, texts and messages."""
    parts = b""
    for number, value in fields:
        if isinstance(value, int):
            parts += bytes([number << 3]) + varint(value)
        else:
            content = value.encode() if isinstance(value, str) else value
            parts += bytes([number << 3 | 2]) + varint(len(content)) + content
    return parts


def varint(value: int) -> bytes:
    """A number as protocol buffers write it."""
    low = bytes([value & 127 | (128 if value > 127 else 0)])
    return low + varint(value >> 7) if value > 127 else low


def plane(first_id: int = 1) -> bytes:
    """A small XPlane: steps of one op each on the host's main thread; ids of names count from the given one."""
    step, op = first_id, first_id + 1
    roots = [(4, message((1, 2), (4, 1)))]
    events = [
        (4, message((1, step), (2, 1_000_000 * n), (3, 900_000), (4, message((1, 1), (4, n))), *roots))
        for n in range(STEPS)
    ]
    events += [(4, message((1, op), (2, 1_000_000 * n + 100_000), (3, 500_000))) for n in range(STEPS)]
    line = message((1, 7), (2, "python"), (3, 1000), *events)
    names = [(4, named(key, name)) for key, name in ((step, "train"), (op, "dot.1"))]
    stats = [(5, named(key, name)) for key, name in ((1, "step_num"), (2, "_r"))]
    return message((1, message((1, 1), (2, "/host:CPU"), *names, *stats, (3, line))))


def named(key: int, name: str) -> bytes:
    """An entry of the maps in which an XPlane keeps its names."""
    return message((1, key), (2, message((1, key), (2, name))))


def step_stats() -> bytes:
    """Small StepStats: nodes one after another on a CPU."""
    nodes = [
        (2, message((1, f"dense_{n}/MatMul"), (2, 1_700_000_000_000_000 + 100 * n), (3, 1), (4, 60), (5, 70)))
        for n in range(STEPS)
    ]
    return message((1, message((1, "/job:localhost/replica:0/task:0/device:CPU:0"), *nodes)))


def export(columns: str = "", *, events: bool = True) -> bytes:
    """A small export of Nsight Systems: a kernel per step, launched in an NVTX range; ``columns`` more of kernels."""
    database = sqlite3.connect(":memory:")
    for table, declared in (
        ("StringIds", "id INTEGER PRIMARY KEY, value TEXT"),
        ("META_DATA_EXPORT", "name TEXT, value TEXT"),
        ("CUPTI_ACTIVITY_KIND_KERNEL", f"start, end, deviceId, streamId, correlationId, globalPid, shortName{columns}"),
        ("CUPTI_ACTIVITY_KIND_RUNTIME", "start, end, globalTid, correlationId, nameId"),
        ("NVTX_EVENTS", "start, end, eventType, text, globalTid"),
    ):
        if events or not table.startswith(("CUPTI", "NVTX")):
            database.execute(f"CREATE TABLE {table} ({declared})")
    fill(database, "StringIds", [(1, "sgemm_128x64"), (2, "cudaLaunchKernel_v7000")])
    if events:
        process, thread, starts = 100 << 24, 100 << 24 | 100, [1_000_000 * n for n in range(STEPS)]
        kernels = [(at + 5000, at + 900_000, 0, 7, n, process, 1) for n, at in enumerate(starts, 1)]
        fill(database, "CUPTI_ACTIVITY_KIND_KERNEL", kernels, columns.count(","))
        calls = [(at + 1000, at + 4000, thread, n, 2) for n, at in enumerate(starts, 1)]
        fill(database, "CUPTI_ACTIVITY_KIND_RUNTIME", calls)
        ranges = [(at, at + 990_000, 59, f"step {n}", thread) for n, at in enumerate(starts, 1)]
        fill(database, "NVTX_EVENTS", ranges)
    database.commit()
    return database.serialize()


def fill(database: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]], nulls: int = 0) -> None:
    """Insert rows, with nulls behind them."""
    marks = ", ".join(["?"] * len(rows[0]) + ["NULL"] * nulls)
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


PLANE, STATS, EXPORT = plane(), step_stats(), export()

NO_DEVICE = ("profile_no_device",)
HOST_ONLY = (*NO_DEVICE, "profile_host_unrecorded")

OTHERS: tuple[Case, ...] = (
    odd("XPlane, whole", PLANE, "Read.", HOST_ONLY),
    odd("XPlane with ids beyond 31 bits", plane(1 << 40), "Read.", HOST_ONLY, met="TraceLens#501"),
    Case(
        "XPlane cut off inside an event",
        PLANE[:-20],
        "All whole events are kept.",
        ("damaged_xplane_damaged", "profile_device_missing"),
        1,
    ),
    Case(
        "XPlane with bytes that make no sense inside an event",
        PLANE[:-50] + b"\xff" * 10 + PLANE[-40:],
        "The event is lost, or what follows in its line.",
        ("damaged_event_damaged", *HOST_ONLY),
        1,
    ),
    odd("StepStats, whole", STATS, "Read as one step.", NO_DEVICE),
    Case(
        "StepStats cut off inside a node",
        STATS[:-20],
        "All whole nodes are kept.",
        ("damaged_step_stats_damaged", "profile_device_missing"),
        1,
    ),
    odd("Export of Nsight Systems with few tables and columns", EXPORT, "Read; what is not there is not recorded."),
    odd(
        "Export of Nsight Systems with columns of another schema version",
        export(", gridX, blockX, demangledName, aColumnOfTomorrow"),
        "Read by the names of the columns; those nobody knows are passed over.",
        met="flameox#190",
    ),
    Case(
        "Export of Nsight Systems cut off",
        EXPORT[:-4096],
        "What lies in the pages that are there is read.",
        ("damaged_truncated", "damaged_table", "profile_no_steps"),
    ),
)
