"""Neutral events -> the bytes of an Nsight Systems export (SQLite), in any generation.

Made after NVIDIA's schema reference, not after a file of the tool. Python frames, allocations of PyTorch's allocator
and device annotations have no place in such a file; ``representable`` says so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kit.events import CALLS, Event, Stream, Thread
from tests.kit.nsys_schema import TABLES, VERSIONS, Generation, columns_of

PID = 4242
SESSION_NS = 5_000_000_000
"""The kit's zero, from the session's start."""
EPOCH_NS = 1_780_000_000_000_000_000
GRAPH_ID = 3

_CALL_ENDING = {"cudaLaunchKernel": "_v7000", "cudaEventRecord": "_v3020", "cudaStreamSynchronize": "_v3020"}
_COPY_KINDS = {"HtoD": 1, "DtoH": 2, "DtoD": 8, "HtoH": 9, "PtoP": 10}
_MEMORY = {"Pageable": 0, "Pinned": 1, "Device": 2}
_SYNC_TYPES = {"Event Sync": 1, "Stream Wait Event": 2, "Stream Sync": 3, "Context Sync": 4}
_NO_STREAM = 0xFFFFFFFF

Row = dict[str, Any]


def global_id(pid: int, tid: int = 0) -> int:
    """A serialized global id: hardware and virtual machine, process, thread."""
    return 1 << 48 | pid << 24 | tid


@dataclass(frozen=True, slots=True)
class Export:
    """How an export is written.

    ``extra`` are rows added to tables, ``left_out`` names of strings that ``StringIds`` lacks.
    """

    generation: Generation = "2026"
    page_size: int = 4096
    pid: int = PID
    graphs: bool = False
    """CUDA graphs as a whole (``--cuda-graph-trace=graph``), not their nodes."""
    extra: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    first_number: int = 1
    """Of strings and NVTX events: the tool numbers those of all processes together."""


def representable(event: Event) -> bool:
    """Whether an export can hold such an event."""
    return event.cat not in ("python_function", "memory", "gpu_user_annotation")


def write_nsys(events: Sequence[Event], export: Export | None = None) -> bytes:
    """The export's bytes; what it cannot hold is left out."""
    export = export or Export()
    writer = _Writer(export)
    for event in events:
        if representable(event):
            writer.add(event)
    writer.about(events)
    for table, rows in export.extra.items():
        for row in rows:
            writer.row(table, **row)
    return writer.bytes()


def write_tables(rows: Mapping[str, Sequence[Row]], export: Export | None = None) -> bytes:
    """An export of these rows alone, beside what describes the machine; strings below 1000 are free."""
    return write_nsys([], replace(export or Export(), extra=rows, first_number=1000))


def edited(data: bytes, *statements: str) -> bytes:
    """The database after some SQL."""
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(data)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return connection.serialize()


def merged(*parts: bytes) -> bytes:
    """The rows of several exports in one, as of several processes."""
    with sqlite3.connect(":memory:") as connection:
        connection.deserialize(parts[0])
        for part in parts[1:]:
            with sqlite3.connect(":memory:") as other:
                other.deserialize(part)
                for table, sql in other.execute("SELECT name, sql FROM sqlite_master").fetchall():
                    connection.execute(sql.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1))
                    rows = other.execute(f"SELECT * FROM {table}").fetchall()
                    marks = ", ".join("?" * len(rows[0]))
                    connection.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
        connection.commit()
        return connection.serialize()


class _Writer:
    def __init__(self, export: Export) -> None:
        self.export = export
        self.tables: dict[str, list[Row]] = {}
        self.strings: dict[str, int] = {}
        self.threads: dict[Thread, int] = {Thread("main"): export.pid}
        self.records: dict[int, int] = {}
        self.ops = 0
        self.graphs: dict[tuple[int, int, int], Row] = {}

    def row(self, table: str, **values: Any) -> None:
        """Add a row, if this generation has such a table."""
        if table in TABLES[self.export.generation]:
            self.tables.setdefault(table, []).append(values)

    def string(self, text: str) -> int:
        """The number of a text."""
        return self.strings.setdefault(text, len(self.strings) + self.export.first_number)

    def add(self, event: Event) -> None:
        if event.cat in CALLS:
            name = event.name + _CALL_ENDING.get(event.name, "")
            self.row(
                "CUPTI_ACTIVITY_KIND_RUNTIME", **self.times(event), eventClass=int(event.cat == "cuda_driver"),
                globalTid=self.thread(event), correlationId=event.correlation, nameId=self.string(name), returnValue=0,
            )  # fmt: skip
        elif event.cat in ("cpu_op", "user_annotation"):
            self.row(
                "NVTX_EVENTS", **self.times(event), eventType=59, globalTid=self.thread(event), domainId=0,
                **self.text(self.op_text(event) if event.cat == "cpu_op" else event.name),
            )  # fmt: skip
        elif event.cat == "overhead":
            new = self.export.generation == "2026"
            table = "CUPTI_ACTIVITY_KIND_OVERHEAD" if new else "PROFILER_OVERHEAD"
            self.row(
                table, **self.times(event), globalTid=self.thread(event), nameId=self.string(event.name), eventClass=0
            )
        elif event.cat == "cuda_sync":
            self.wait(event)
        else:
            self.work(event)

    def op_text(self, event: Event) -> str:
        """As ``emit_nvtx`` writes an op."""
        self.ops += 1
        sequence = event.args.get("Sequence number")
        return event.name + (f", seq = {sequence}" if sequence is not None else "") + f", op_id = {self.ops}"

    def text(self, text: str) -> Row:
        if self.export.generation == "2021":
            return {"text": text, "textId": 0}
        return {"text": None, "textId": self.string(text)}

    def times(self, event: Event) -> Row:
        return {"start": SESSION_NS + event.start_ns, "end": SESSION_NS + event.end_ns}

    def thread(self, event: Event) -> int:
        assert isinstance(event.track, Thread)
        return global_id(self.export.pid, self.threads.setdefault(event.track, self.export.pid + len(self.threads)))

    def place(self, event: Event) -> Row:
        assert isinstance(event.track, Stream)
        return {
            "deviceId": event.track.device,
            "contextId": 1,
            "streamId": _NO_STREAM if event.track.stream < 0 else event.track.stream,
            "correlationId": event.correlation or 0,
            "globalPid": global_id(self.export.pid),
        }

    def work(self, event: Event) -> None:
        common = self.times(event) | self.place(event)
        if event.cat == "kernel" and "graph node id" in event.args:
            if self.export.graphs:
                key = common["deviceId"], common["streamId"], common["correlationId"]
                whole = self.graphs.setdefault(key, common | {"graphId": GRAPH_ID, "graphExecId": 1})
                whole["end"] = max(whole["end"], common["end"])
                return
            common |= {"graphNodeId": GRAPH_ID << 32 | event.args["graph node id"]}
            common |= {"graphId": GRAPH_ID}
        if event.cat == "kernel":
            self.row(
                "CUPTI_ACTIVITY_KIND_KERNEL", **common, demangledName=self.string(event.name),
                shortName=self.string(event.name.split("(")[0]), mangledName=None, registersPerThread=32,
                gridX=160, gridY=1, gridZ=1, blockX=128, blockY=1, blockZ=1, staticSharedMemory=1024,
                dynamicSharedMemory=2048,
            )  # fmt: skip
        elif event.cat == "gpu_memcpy":
            direction, host = event.args["direction"], _MEMORY[event.args.get("memory", "Pageable")]
            source, target = (host if end == "H" else 2 for end in (direction[0], direction[-1]))
            self.row(
                "CUPTI_ACTIVITY_KIND_MEMCPY", **common, bytes=event.args["bytes"], copyKind=_COPY_KINDS[direction],
                srcKind=source, dstKind=target,
            )  # fmt: skip
        else:
            self.row("CUPTI_ACTIVITY_KIND_MEMSET", **common, bytes=event.args.get("bytes", 0), value=0, memKind=2)

    def wait(self, event: Event) -> None:
        record = event.args.get("wait_on_cuda_event_record_corr_id")
        number = 0
        if record is not None:
            number = self.records.setdefault(record, len(self.records) + 1)
            self.row(
                "CUPTI_ACTIVITY_KIND_CUDA_EVENT", deviceId=0, contextId=1, streamId=event.args["wait_on_stream"],
                correlationId=record, globalPid=global_id(self.export.pid), eventId=number % 7,
                eventSyncId=number, timestamp=0,
            )  # fmt: skip
        self.row(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **self.times(event), **self.place(event),
            syncType=_SYNC_TYPES[event.name], eventId=number % 7, eventSyncId=number or None,
        )  # fmt: skip

    def about(self, events: Iterable[Event]) -> None:
        """The machine, the session, the names of threads."""
        for whole in self.graphs.values():
            self.row("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", **whole)
        for device in sorted({event.track.device for event in events if isinstance(event.track, Stream)}):
            self.row(
                "TARGET_INFO_GPU", id=device, name="NVIDIA A100-SXM4-80GB", totalMemory=85_899_345_920, smCount=108,
                computeMajor=8, computeMinor=0, cuDevice=device,
            )  # fmt: skip
        for thread, tid in self.threads.items():
            name = self.string("python3" if thread.name == "main" else thread.name)
            self.row("ThreadNames", nameId=name, globalTid=global_id(self.export.pid, tid))
        self.row("PROCESSES", globalPid=global_id(self.export.pid), pid=self.export.pid, name="/usr/bin/python3")
        self.row("TARGET_INFO_SYSTEM_ENV", devStateName="", name="Hostname", nameEnum=1, value="node-7")
        self.row("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH_NS)
        self.row("META_DATA_EXPORT", name="EXPORT_SCHEMA_VERSION", value=VERSIONS[self.export.generation])

    def bytes(self) -> bytes:
        declared = TABLES[self.export.generation]
        strings = [{"id": n, "value": text} for text, n in self.strings.items() if text not in self.export.left_out]
        if strings:
            self.tables["StringIds"] = self.tables.get("StringIds", []) + strings
        with sqlite3.connect(":memory:") as connection:
            connection.execute(f"PRAGMA page_size={self.export.page_size}")
            for table, rows in self.tables.items():
                connection.execute(f"CREATE TABLE {table} (\n    -- {table}\n\n {declared[table]}\n)")
                columns = columns_of(declared[table])
                needed = {name for name in columns if f"{name} INTEGER NOT NULL" in declared[table]}
                old = needed if self.export.generation != "2021" else set(columns)
                marks = ", ".join("?" * len(columns))
                numbered = enumerate(rows, self.export.first_number)
                connection.executemany(
                    f"INSERT INTO {table} VALUES ({marks})",
                    [[self.value(row, name, at, old) for name in columns] for at, row in numbered],
                )
            connection.commit()
            return connection.serialize()

    @staticmethod
    def value(row: Row, column: str, at: int, needed: set[str]) -> Any:
        """A cell; what is absent is null, or 0 where the generation has no null."""
        if column == "eventId" and "eventId" not in row:
            return at
        return row[column] if row.get(column) is not None else 0 if column in needed else None
