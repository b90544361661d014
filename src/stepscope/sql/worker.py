"""The process that answers one query: it reads the tables, gives up whatever it will not need, and asks polars.

From then on it can open no file and no connection, whatever a query makes of the engine, and an allocation beyond its
bound ends it. Windows has no such limits; there the parse alone keeps a query to its tables, and time is bounded.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import IO

import polars as pl

from stepscope.sql.engine import ROWS, SIZE, WRONG

_AVAILABLE = "MemAvailable:"


def serve() -> None:
    """Answer the query that comes on standard input."""
    asked, answer = sys.stdin.buffer, sys.stdout.buffer
    sql, memory, count = (_part(asked).decode() for _ in range(3))
    frames = {_part(asked).decode(): pl.read_ipc_stream(io.BytesIO(_part(asked))) for _ in range(int(count))}
    context = pl.SQLContext(frames)
    # What an engine sets up at its first query needs descriptors.
    pl.SQLContext(t=pl.DataFrame({"a": [1]})).execute("SELECT a, COUNT(*) FROM t GROUP BY a", eager=True)
    _confine(int(memory))
    try:
        held = io.BytesIO()
        context.execute(sql, eager=True).write_ipc_stream(held)
        kind, told = ROWS, held.getbuffer()
    except MemoryError:
        os._exit(1)
    except BaseException as error:  # noqa: BLE001  Panics of the engine are no Exception.
        kind, told = WRONG, memoryview(_sentence(error).encode("utf-8", "replace"))
    answer.write(kind + SIZE.pack(len(told)))
    answer.write(told)
    answer.flush()
    os._exit(0)  # Nothing is left to tidy up, and an engine that is still at work is not waited for.


def _part(pipe: IO[bytes]) -> bytes:
    (size,) = SIZE.unpack(pipe.read(SIZE.size))
    return pipe.read(int(size))


def _sentence(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n", 1)[0].rstrip(".")


def _confine(memory: int) -> None:
    """Take from this process what a query does not need: descriptors, and memory beyond its bound."""
    if sys.platform == "win32":
        return
    import resource

    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # Where the machine runs out of memory, this process goes and not the one that asks.
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_AS: _taken() + min(memory, _half_of_free())}
    for limit, value in (limits | {resource.RLIMIT_NOFILE: 0}).items():
        with suppress(OSError, ValueError):
            resource.setrlimit(limit, (value, value))


def _taken() -> int:
    """The bytes of address space in use now; a bound beyond all memory where the system does not say."""
    with suppress(OSError, ValueError), open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    return 1 << 48


def _half_of_free() -> int:
    with suppress(OSError, ValueError), open("/proc/meminfo") as file:
        sizes = [line.split()[1] for line in file if line.startswith(_AVAILABLE)]
        if sizes:
            return int(sizes[0]) * 1024 // 2
    return 1 << 48
