"""Runs a query in a process of its own, which the system holds to bounds; ``worker`` is that process.

What an engine takes for a product of two tables cannot be foreseen from the text, and a thread that computes it cannot
be stopped. A process can.
"""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from contextlib import suppress
from threading import Thread, Timer
from typing import IO, TYPE_CHECKING

from stepscope.errors import StepscopeError, UsageError
from stepscope.interpreter import OWN_FOLDER, own_environment
from stepscope.record import record
from stepscope.units import format_bytes

if TYPE_CHECKING:
    import polars as pl

SIZE = struct.Struct("=Q")
"""What goes before each part of what the two processes send each other."""
ROWS, WRONG = b"R", b"W"
_CODE = "from stepscope.sql.worker import serve; serve()"


@record
class Bounds:
    """What a query may take."""

    seconds: float
    memory: int
    """Bytes, beside the tables it reads."""


def run(sql: str, frames: dict[str, pl.DataFrame], bounds: Bounds) -> pl.DataFrame:
    """The rows of a query. Raises ValueError with the engine's word where it is wrong, UsageError beyond the bounds."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE], env=own_environment(), cwd=OWN_FOLDER,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise StepscopeError(f"no process can be started for the query: {error}") from error
    late = Timer(bounds.seconds, process.kill)
    late.daemon = True
    assert process.stdin is not None
    assert process.stdout is not None
    sender = Thread(target=_send, args=(process.stdin, sql, frames, bounds.memory), daemon=True)
    with process:
        try:
            late.start()
            sender.start()
            answer = process.stdout.read()
        finally:
            was_late = late.finished.is_set()
            late.cancel()
            process.kill()
            sender.join()
    kind, told = answer[:1], answer[1 + SIZE.size :]
    if kind and answer[1 : 1 + SIZE.size] == SIZE.pack(len(told)):
        if kind == WRONG:
            raise ValueError(told.decode())
        return _frame(told)
    if was_late:
        raise UsageError(f"the query was ended: it took longer than {bounds.seconds:g} s; ask for less")
    raise UsageError(
        f"the query was ended: it needs more memory than the {format_bytes(bounds.memory)} that a query may take "
        "beside its tables, or is too long a formula; ask for less, or join by columns that few rows share"
    )


def _frame(told: bytes) -> pl.DataFrame:
    import polars as pl

    return pl.read_ipc_stream(io.BytesIO(told))


def _send(pipe: IO[bytes], sql: str, frames: dict[str, pl.DataFrame], memory: int) -> None:
    with suppress(OSError), pipe:  # A process that has gone needs nothing more.
        for part in (sql.encode("utf-8", "replace"), str(memory).encode(), str(len(frames)).encode()):
            _part(pipe, part)
        for name, frame in frames.items():
            _part(pipe, name.encode())
            held = io.BytesIO()
            frame.write_ipc_stream(held)
            _part(pipe, held.getbuffer())


def _part(pipe: IO[bytes], content: bytes | memoryview) -> None:
    pipe.write(SIZE.pack(len(content)))
    pipe.write(content)
