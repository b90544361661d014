"""Reading many ranks at once: one process per core, each reading one rank after another.

Workers are interpreters of their own that import nothing of the caller's program, as the pools of the standard library
would: a script that opens a folder of ranks needs no guard around its main part. One that dies (killed for memory) is
replaced, and its rank tried once more.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import inf
from multiprocessing.connection import Connection, Pipe
from queue import Empty, SimpleQueue
from threading import Lock
from typing import NamedTuple, TypeVar

from stepscope.cluster.job import Failed
from stepscope.cluster.limits import POOL_BYTES
from stepscope.cluster.partial import Partial
from stepscope.compiled import JSON, LOOPS, PLAIN_BYTES
from stepscope.inputs.source import Source
from stepscope.interpreter import ONE_THREAD, OWN_FOLDER, own_environment
from stepscope.record import record

_T = TypeVar("_T")
_TRIES = 2
LOOK_S = 0.5
"""Seconds between looks: an interrupt that another thread was given is not heard while the main one waits."""
_DIED = "the process that read it died, most likely for lack of memory; read this rank alone with --rank"


@record
class Task:
    """A rank to read."""

    rank: int
    source: Source


class Read(NamedTuple):
    """What became of a rank."""

    task: Task
    outcome: Partial | Failed
    again: bool = False
    """It was read once more, as whoever read it first was lost."""


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_core() -> dict[str, str]:
    """The environment of an interpreter that finds what this one does, and takes one core."""
    return own_environment() | ONE_THREAD | {"POLARS_MAX_THREADS": "1"}


def awaited(queue: SimpleQueue[_T], seconds: float = inf) -> _T:
    """What comes next out of a queue. Raises Empty where nothing does for so long."""
    while True:
        try:
            return queue.get(timeout=min(seconds, LOOK_S))
        except Empty:
            seconds -= LOOK_S
            if seconds <= 0:
                raise


def read_all(
    tasks: Sequence[Task], entry: str, reduce: Callable[[Source], Partial | Failed], workers: int | None = None
) -> Iterator[Read]:
    """The partial result of each rank, as they come.

    ``entry`` (``module:function``) names ``reduce`` for workers of their own; few bytes are read here, with it.
    """
    count = min(workers or cores(), len(tasks))
    if workers is None and sum(task.source.size or 0 for task in tasks) < POOL_BYTES:
        count = 1
    if count < 2:
        for task in tasks:
            yield Read(task, reduce(task.source))
        return
    idle: SimpleQueue[_Worker] = SimpleQueue()
    much = sum(task.source.size or 0 for task in tasks) > count * PLAIN_BYTES
    made = [_Worker(entry, much) for _ in range(count)]
    for worker in made:
        idle.put(worker)
    executor = ThreadPoolExecutor(count)
    done: SimpleQueue[Future[Read]] = SimpleQueue()
    try:
        for task in tasks:
            executor.submit(_ask, idle, task).add_done_callback(done.put)
        for _ in tasks:
            yield awaited(done).result()
    finally:
        for worker in made:
            worker.end()
        executor.shutdown(wait=True, cancel_futures=True)


def _ask(idle: SimpleQueue[_Worker], task: Task) -> Read:
    worker = idle.get()
    try:
        for tried in range(_TRIES):
            with suppress(EOFError, OSError):
                return Read(task, worker.ask(task.source), again=tried > 0)
            worker.restart()
        return Read(task, Failed(str(task.source.path), _DIED))
    finally:
        idle.put(worker)


class _Worker:
    """A process that reads ranks; started when it is first asked."""

    def __init__(self, entry: str, much: bool) -> None:
        self._entry, self._much = entry, much
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._ended = False
        self._changing = Lock()

    def ask(self, source: Source) -> Partial | Failed:
        """Read one rank. Raises EOFError or OSError where the process is gone."""
        if self._pipe is None:
            self._start()
        assert self._pipe is not None
        self._pipe.send(source)
        answer: Partial | Failed = self._pipe.recv()
        return answer

    def _start(self) -> None:
        code = "from stepscope.cluster.pool import serve; serve({}, {!r}, {})"
        with self._changing:
            if self._ended:
                raise EOFError
            here, there = Pipe()
            self._process = subprocess.Popen(
                [sys.executable, "-c", code.format(there.fileno(), self._entry, self._much)],
                pass_fds=[there.fileno()], env=one_core(), cwd=OWN_FOLDER, stdin=subprocess.DEVNULL,
                process_group=0,  # A terminal's interrupt is this process's alone, which ends the others.
            )  # fmt: skip
            there.close()
            self._pipe = here

    def restart(self) -> None:
        """Forget a process that is gone; the next question starts another."""
        self._stop()

    def end(self) -> None:
        """Stop the process for good."""
        self._ended = True
        self._stop()

    def _stop(self) -> None:
        with self._changing:
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            if self._pipe is not None:
                self._pipe.close()
            self._pipe = self._process = None


def serve(descriptor: int, entry: str, much: bool = False) -> None:
    """A worker's life: read what it is asked for until nobody asks; of ``much``, with machine code from the start."""
    import gc
    from importlib import import_module

    if much:
        LOOPS.most = JSON.most = 0
    module, name = entry.split(":")
    reduce: Callable[[Source], Partial | Failed] = getattr(import_module(module), name)
    pipe = Connection(descriptor)
    with suppress(EOFError, OSError):
        pipe.send(reduce(pipe.recv()))
        gc.freeze()  # All modules are loaded now, and stay.
        while True:
            pipe.send(reduce(pipe.recv()))
