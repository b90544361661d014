"""The long run, by hand: ``python -m tests.fuzz.run --minutes 10 --target xplane --out defects``.

Each target is fuzzed by a process of its own, half of the time as it is and half of it *checked*: numba checks every
index, and the scanner's buffers end at a page that nobody may touch. A process that dies, works for 20 s without an
answer, or needs more than 4 GiB of address space or 1 GiB of memory is a defect like any exception. Inputs with a new
outcome are mutated further. Defects are kept as files, named as ``tests/fuzz/regressions`` wants them.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import multiprocessing
import os
import resource
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

HANG_S = 20
ADDRESS_SPACE = 4 << 30
MOST_MEMORY = 1 << 30
_POOL = 300
_STARVED = 6
"""A process may be silent so many times as long while it uses less than half of the time."""
_SLOW_START_S = 300
"""Compiling every loop anew, with checks, takes a while."""


@dataclass
class Figures:
    """What one target's run came to."""

    inputs: int = 0
    partial: int = 0
    """Inputs of which something was lost or repaired."""
    refused: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    defects: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    memory: int = 0

    def row(self, name: str, mode: str) -> str:
        """A row of the table in ``docs/fuzzing.md``."""
        return (
            f"| {name} | {mode} | {self.inputs:,} | {self.inputs - self.partial - self.refused:,} | {self.partial:,} | "
            f"{self.refused:,} | {len(self.outcomes):,} | "
            f"{self.slowest_s * 1000:,.0f} ms | {self.memory >> 20:,} MiB | {sum(self.defects.values())} |"
        )


@dataclass(frozen=True)
class Report:
    """What a worker says of one input."""

    outcome: str
    defect: str | None
    seconds: float
    memory: int
    kept: Path | None = None
    """The input, where it is a defect and the process goes on."""


def main() -> None:
    """Fuzz the chosen targets one after another, and print a row for each."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    print(
        "| target | mode | inputs | read | partial | refused | outcomes | slowest | memory | defects |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    modes = ("plain", "checked")
    seconds = 60 * options.minutes / len(options.target) / len(modes)
    for name in options.target:
        for mode in modes:
            figures = fuzz(name, mode, seconds, options)
            print(figures.row(name, mode), flush=True)
            for defect, count in figures.defects.items():
                print(f"  {count} x {defect}", flush=True)


def _options() -> argparse.Namespace:
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="for all targets together")
    parser.add_argument(
        "--target", action="append", choices=list(TARGETS), help="may be repeated; all of them otherwise"
    )
    parser.add_argument("--seed", default="0", help="another one makes other inputs")
    parser.add_argument(
        "--also", type=Path, action="append", default=[], help="a further file to mutate, with one --target"
    )
    parser.add_argument(
        "--out", type=Path, default=Path(tempfile.gettempdir(), "stepscope-fuzz"), help="where defects are kept"
    )
    options = parser.parse_args()
    options.target = options.target or list(TARGETS)
    return options


def fuzz(name: str, mode: str, seconds: float, options: argparse.Namespace) -> Figures:
    """One target for some time; a process that ended is followed by another."""
    figures, began = Figures(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        while time.monotonic() - began < seconds:
            worker = _Worker(name, mode, f"{options.seed} {mode} {figures.inputs}", options.also, Path(folder))
            worker.started()
            if not figures.inputs:
                began = time.monotonic()
            while time.monotonic() - began < seconds:
                report = worker.next()
                figures.inputs += 1
                figures.slowest_s = max(figures.slowest_s, report.seconds)
                figures.memory = max(figures.memory, report.memory)
                figures.refused += report.outcome.startswith("refused")
                figures.partial += "partial: " in report.outcome
                if report.outcome:
                    figures.outcomes[report.outcome] += 1
                if report.defect:
                    if not figures.defects[report.defect]:
                        _keep(report.kept or worker.input, options.out / f"{name}-{mode}-{figures.inputs}")
                    figures.defects[report.defect] += 1
                if report.defect and not worker.process.is_alive():
                    break
            worker.end()
    return figures


def _keep(path: Path, place: Path) -> None:
    place.write_bytes(path.read_bytes())
    print(f"  kept {place}", flush=True)


class _Worker:
    """A process that fuzzes, and how it is watched."""

    def __init__(self, name: str, mode: str, seed: str, also: list[Path], folder: Path) -> None:
        self.input = folder / "last"
        for key in ("NUMBA_BOUNDSCHECK", "STEPSCOPE_CACHE"):
            os.environ.pop(key, None)
        if mode == "checked":  # machine code with checks must never be kept where that without them is
            cache = Path(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "stepscope-fuzz")
            os.environ.update(NUMBA_BOUNDSCHECK="1", STEPSCOPE_CACHE=str(cache))
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(other, name, mode, seed, also, folder))
        self.process.start()
        other.close()

    def started(self) -> None:
        """Wait until the loops are compiled."""
        if not self._connection.poll(_SLOW_START_S):
            raise RuntimeError("the worker did not start")
        self._connection.recv()

    def next(self) -> Report:
        """What became of the next input."""
        if not self._answers():
            self.process.kill()
            self.process.join()
            return Report("", f"no answer for {HANG_S} s", HANG_S, 0)
        try:
            report: Report = self._connection.recv()
        except EOFError:
            self.process.join()
            return Report("", f"the process died with {self.process.exitcode}", 0, 0)
        return report

    def _answers(self) -> bool:
        """Wait for an answer; a process that a busy machine gives no time does not hang."""
        begun = _processor_s(self.process.pid)
        for _ in range(_STARVED):
            if self._connection.poll(HANG_S):
                return True
            if _processor_s(self.process.pid) - begun > HANG_S / 2:
                break
        return False

    def end(self) -> None:
        """Stop the process."""
        self.process.kill()
        self.process.join()


def work(connection: Connection, name: str, mode: str, seed: str, also: list[Path], folder: Path) -> None:
    """Fuzz until killed; every input lies in ``folder`` before it is read."""
    from tests.fuzz.targets import TARGETS

    warnings.simplefilter("error")
    target = TARGETS[name]
    pool = [path.read_bytes() for path in also]
    if mode == "checked":
        _check_buffers()
        _assert_that_indices_are_checked()
    seen = {target.examined(folder, data, 0) for data in [*target.seeds(), *pool]}
    connection.send(None)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    memory = _memory()
    number = 0
    while True:
        number += 1
        data = target.mutated(Random(f"{seed} {name} {number}"), pool)
        (folder / "last").write_bytes(data)  # It is looked for where the process died of it.
        outcome, defect, began = "", None, time.perf_counter()
        try:
            outcome = target.examined(folder, data, number)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is what we are looking for
            defect = defect_of(error)
        seconds = time.perf_counter() - began
        if (now := _memory()) - memory > MOST_MEMORY:
            defect, memory = defect or f"needs more than {MOST_MEMORY >> 20} MiB", now
        if outcome and outcome not in seen and len(pool) < _POOL and len(data) < 100_000:
            seen.add(outcome)
            pool.append(data)
        kept = folder / f"defect-{number}" if defect else None
        if kept is not None:
            kept.write_bytes(data)
        connection.send(Report(outcome, defect, seconds, now, kept))


def _processor_s(pid: int | None) -> float:
    """Seconds of processor time that a process has used; 0 where that cannot be told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def defect_of(error: BaseException) -> str:
    """What was raised, and the last place of ours it went through."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/stepscope/" in frame.filename or "/fuzz/" in frame.filename
    ]
    where = (
        f"{frames[-1].filename.rpartition('/stepscope/')[2].rpartition('/tests/')[2]}:{frames[-1].lineno}"
        if frames
        else "?"
    )
    return f"{type(error).__name__} at {where}: {str(error).splitlines()[0][:120] if str(error) else ''}"


# --- checks -----------------------------------------------------------------------------------------------------------

_PAGE = mmap.PAGESIZE


def _guarded(size: int) -> Any:
    """A window's buffer, padding included, whose last byte is followed by a page that must not be touched."""
    import numpy as np

    from stepscope.formats.chrome.scan.window import PADDING

    wanted = size + PADDING
    pages = -(-wanted // _PAGE)
    memory = mmap.mmap(-1, (pages + 1) * _PAGE)
    whole = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.c_void_p(whole.ctypes.data + pages * _PAGE)
    if libc.mprotect(address, ctypes.c_size_t(_PAGE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    return whole[pages * _PAGE - wanted : pages * _PAGE]


def _check_buffers() -> None:
    for module in ("drive", "window"):
        mock.patch(f"stepscope.formats.chrome.scan.{module}.empty_buffer", _guarded).start()


def _assert_that_indices_are_checked() -> None:
    """Raise unless a compiled loop that reads behind an array's end says so."""
    import numpy as np

    from stepscope.protobuf.columns import Spans, numbers

    try:
        numbers(np.zeros(4, np.uint8), Spans(np.array([1000]), np.array([1001])), 1)
    except IndexError:
        return
    raise RuntimeError("numba does not check indices")


if __name__ == "__main__":
    main()
