"""What an export says of itself: the machine, its devices, the session, the names of threads, what it warns of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from stepscope.formats.nsys import schema
from stepscope.formats.nsys.export import Export, ExportedProcess, Losses, known
from stepscope.formats.nsys.sqlite import Database
from stepscope.formats.nsys.strings import StringIds
from stepscope.record import record
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Device, Info, Loss

_TOLD = 5
"""Messages of the profiler that are repeated word for word; the others are counted."""


@record
class Session:
    """The export as a whole."""

    database: Database
    strings: StringIds

    def info(self, export: Export, origin: int, devices: Sequence[int], framework: str | None) -> Info:
        """What is known of the run; ``origin`` is the file's time of the first event, in ns."""
        epoch = self._numbers("TARGET_INFO_SESSION_START_TIME", "utcEpochNs")
        described = self._devices(export.process)
        environment = self._pairs("TARGET_INFO_SYSTEM_ENV")
        return Info(
            format="Nsight Systems SQLite",
            framework=framework,
            origin_epoch_ns=epoch[0][0] + origin if epoch and epoch[0][0] is not None else None,
            devices=tuple(described.get(number) or Device(number) for number in devices),
            rank=self._rank(export.process),
            host=environment.get("Hostname") or None,
            header={"export": self._pairs("META_DATA_EXPORT"), "capture": self._pairs("META_DATA_CAPTURE")},
        )

    def threads(self) -> dict[int, str]:
        """The names of threads by ``globalTid``."""
        rows = self.database.read("ThreadNames", ["globalTid", "nameId"])
        names = self.strings.at(known(rows.numbers["nameId"])).decoded()
        return {
            thread: name.strip()
            for thread, name in zip(rows.numbers["globalTid"].tolist(), names, strict=True)
            if name.strip()
        }

    def _rank(self, process: ExportedProcess | None) -> int | None:
        for thread, rank in self._numbers("MPI_RANKS", "globalTid", "rank"):
            if process is not None and thread is not None and thread >> 24 == process.key:
                return rank
        return None

    def _devices(self, process: ExportedProcess | None) -> dict[int, Device]:
        """Devices by the number that the process gives them, which is not the machine's where only some are visible."""
        columns = ("id", "cuDevice", "totalMemory", "smCount", "computeMajor", "computeMinor")
        rows = self.database.read("TARGET_INFO_GPU", columns, ["name"])
        devices, cuda = {}, {}
        numbers = zip(*(known(rows.numbers[c]).tolist() for c in columns), rows.texts["name"].decoded(), strict=True)
        for *values, name in numbers:
            number, cuda_number, memory, processors, major, minor = (None if v == NULL else v for v in values)
            if number is not None:
                devices[number] = Device(
                    number,
                    name.strip() or None,
                    memory or None,
                    processors or None,
                    (major, minor) if major and minor is not None else None,
                )
                cuda[cuda_number if cuda_number is not None else number] = devices[number]
        for gpu, cuda_number, pid in self._numbers("TARGET_INFO_CUDA_DEVICE", "gpuId", "cudaId", "pid"):
            if process is not None and pid == process.pid and cuda_number is not None and gpu in devices:
                cuda[cuda_number] = devices[gpu]
        return {number: Device(number, *_described(device)) for number, device in cuda.items()}

    def _numbers(self, table: str, *columns: str) -> list[tuple[int | None, ...]]:
        rows = self.database.read(table, columns)
        return [
            tuple(None if value == NULL else value for value in row)
            for row in zip(*(known(rows.numbers[column]).tolist() for column in columns), strict=True)
        ]

    def _pairs(self, table: str) -> dict[str, str]:
        rows = self.database.read(table, [], ["name", "value"])
        return dict(zip(rows.texts["name"].decoded(), rows.texts["value"].decoded(), strict=True))


def _described(device: Device) -> tuple[str | None, int | None, int | None, tuple[int, int] | None]:
    return device.name, device.memory_bytes, device.multiprocessors, device.compute_capability


def note_messages(database: Database, losses: Losses) -> None:
    """Errors and warnings that the profiler wrote into the file."""
    rows = database.read("DIAGNOSTIC_EVENT", ["severity"], ["text"])
    levels = database.read("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", ["id"], ["name", "label"])
    named = zip_longest(*(levels.texts[column].decoded() for column in ("label", "name")))
    words = dict(zip(levels.numbers["id"].tolist(), [(a or b).lower() for a, b in named], strict=True))
    told: dict[tuple[str, str], int] = {}
    for severity, text in zip(rows.numbers["severity"].tolist(), rows.texts["text"].decoded(), strict=True):
        word = (words or schema.SEVERITIES).get(severity, "")
        if word in ("warning", "error", "fatal"):
            told[word, text] = told.get((word, text), 0) + 1
    # Errors first.
    ordered = sorted(told.items(), key=lambda item: item[0][0] == "warning")
    for (word, text), count in ordered[:_TOLD]:
        losses.add(Loss("nsight_message", count, f"Nsight Systems reports ({word}): {text.strip().rstrip('.')}"))
    if len(ordered) > _TOLD:
        losses.add(Loss("nsight_messages", len(ordered) - _TOLD, "further messages of Nsight Systems are in the file"))


def note_others(export: Export, losses: Losses, names: dict[int, str]) -> None:
    """Processes of the file that are not read: a trace is one process."""
    others = [process for process in export.others if process.work or process.rows]
    if not others or export.process is None:
        return
    others.sort(key=lambda process: (-process.work, -process.rows))
    listed = [f"{_called(p, names)}: {p.work:,} device ops, {p.rows:,} events" for p in others[:_TOLD]]
    more = f" and {len(others) - _TOLD} more" if len(others) > _TOLD else ""
    text = (
        f"this is process {_called(export.process, names)}, which has most device ops; the file also holds "
        f"{'; '.join(listed)}{more}, which are not read"
    )
    losses.add(Loss("other_processes", sum(process.rows for process in others), text))


def _called(process: ExportedProcess, names: dict[int, str]) -> str:
    name = names.get(process.key)
    return f"{process.pid} ({name})" if name else str(process.pid)


def process_names(database: Database) -> dict[int, str]:
    """The names of processes by key."""
    rows = database.read("PROCESSES", ["globalPid"], ["name"])
    keys = (known(rows.numbers["globalPid"]) >> 24).tolist()
    return {key: name.rsplit("/", 1)[-1] for key, name in zip(keys, rows.texts["name"].decoded(), strict=True)}


def note_unread(database: Database, losses: Losses) -> None:
    """Event tables that are not read: samples, metrics, graphics."""
    times = ("start", "timestamp", "startedAt")
    unread = {
        name: database.last_row(name)
        for name, table in database.tables.items()
        if name not in schema.TABLES and name != "DIAGNOSTIC_EVENT" and any(table.has(column) for column in times)
    }
    unread = {name: rows for name, rows in unread.items() if rows > 0}
    if unread:
        listed = ", ".join(f"{name} ({rows:,} rows)" for name, rows in sorted(unread.items()))
        losses.add(Loss("tables_unread", len(unread), f"tables that are not used: {listed}"))
