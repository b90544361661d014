"""Reading many ranks on a Dask cluster: one that is there, or one on this machine.

Scheduling, retries and the replacing of workers are Dask's. Few futures are in flight, whatever the number of ranks,
and each result is let go of once it is here. Small profiles are read several to a task; what a task that fails was to
read is tried once more in the end, rank by rank with nothing beside it.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from select import select
from subprocess import PIPE, Popen
from typing import Any

from stepscope.cluster.job import Failed
from stepscope.cluster.limits import DASK_AHEAD, DASK_BATCH_BYTES, DASK_LEAST, DASK_TASKS, DASK_WAIT_S
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import LOOK_S, Read, Task, awaited, cores, one_core
from stepscope.compiled import JSON, LOOPS, PLAIN_BYTES
from stepscope.errors import InputError, UsageError
from stepscope.inputs.source import Source
from stepscope.interpreter import OWN_FOLDER

LOCAL = "local"
_CONNECT_S = 20
_DIED = "each worker that read it died, most likely for lack of memory; read this rank alone with --rank"
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
"""Of a cluster on this machine. At Dask's own 20 to 500 ms its processes look at themselves for 9 % of a core, for
pages that nobody opens here, and each look interrupts a worker's reading; memory given back with each array is asked
for again with the next one, six times as many pages."""
_INSTALL = "--scheduler needs Dask, which is not installed: pip install dask distributed"


def read_all(
    tasks: Sequence[Task], reduce: Callable[[Source], Partial | Failed], scheduler: str, workers: int | None = None
) -> Iterator[Read]:
    """The partial result of each rank, as they come, from ``local`` workers or those of a scheduler's address.

    Raises UsageError where Dask is not installed or the address is none, InputError where no scheduler answers there,
    or it has no worker.
    """
    if find_spec("distributed") is None:
        raise UsageError(_INSTALL)
    with ExitStack() as stack:
        client, lost = _client(stack, scheduler, workers), set[str]()
        client.subscribe_topic("all", partial(_note_lost, lost))
        yield from _read(client, scheduler, tasks, reduce, lost)
        client.unsubscribe_topic("all")  # Else the scheduler would tell of the very end, and find nobody there.


def _read(
    client: Any, scheduler: str, tasks: Sequence[Task], reduce: Callable[[Source], Partial | Failed], lost: set[str]
) -> Iterator[Read]:
    threads = sum(client.nthreads().values())
    waiting, running, ahead = deque(_batches(tasks, threads)), dict[Any, list[Task]](), DASK_LEAST
    much = sum(task.source.size or 0 for task in tasks) > max(threads, 1) * PLAIN_BYTES
    done: SimpleQueue[Any] = SimpleQueue()
    suspects, alone = deque[Task](), set[int]()
    while True:
        if not waiting and not running and suspects:  # Last and singly: a lost worker takes others' tasks with it.
            alone.add(suspects[0].rank)
            waiting.append([suspects.popleft()])
        if 2 * len(running) <= ahead:  # Rarely, and many at once: a message takes a millisecond.
            ahead = max(DASK_LEAST, DASK_AHEAD * sum(client.nthreads().values()))
            chosen = [waiting.popleft() for _ in range(min(ahead - len(running), len(waiting)))]
            sources = [[task.source for task in batch] for batch in chosen]
            futures = client.map(partial(_each, reduce, much), sources, pure=False)
            running.update(zip(futures, chosen, strict=True))
            for future in futures:
                future.add_done_callback(done.put)
        if not running:
            return
        ready = _ready(client, scheduler, done)
        results = client.gather(dict(enumerate(ready)), errors="skip")  # None where one has failed
        for future, outcome in zip(ready, results.values(), strict=True):
            batch = running.pop(future)
            if outcome is None and not future.cancelled() and batch[0].rank not in alone:
                suspects.extend(batch)
            else:
                again = future.key in lost or batch[0].rank in alone
                for task, one in zip(batch, outcome or [_failed(scheduler, future, batch[0])], strict=True):
                    yield Read(task, one, again)
            future.release()


def _note_lost(lost: set[str], event: tuple[float, Any]) -> None:
    """Of a scheduler's events: the tasks that a worker which is gone was at, or had the results of."""
    told = event[1]
    if isinstance(told, dict) and told.get("action") == "remove-worker":
        lost.update(told.get("processing-tasks", ()), told.get("lost-computed-tasks", ()))


def _batches(tasks: Sequence[Task], threads: int) -> Iterator[list[Task]]:
    """Tasks for the scheduler: it takes milliseconds for each, so small files are read several at once."""
    least, most = DASK_BATCH_BYTES
    each = sum(task.source.size or 0 for task in tasks) // (DASK_TASKS * max(threads, 1))
    full = min(max(each, least), most) if threads else least
    batch, held = list[Task](), 0
    for task in tasks:
        size = task.source.size or 0
        if batch and held + size > full:
            yield batch
            batch, held = [], 0
        batch.append(task)
        held += size
    if batch:
        yield batch


def _each(
    reduce: Callable[[Source], Partial | Failed], much: bool, sources: Sequence[Source]
) -> list[Partial | Failed]:
    """Read some ranks, of ``much`` in all with machine code from the start."""
    if much:
        LOOPS.most = JSON.most = 0
    gc.freeze()  # What the worker holds already is no garbage of ours: looking it through again takes 70 ms a time.
    try:
        return [reduce(source) for source in sources]
    finally:
        gc.unfreeze()


def _ready(client: Any, scheduler: str, done: SimpleQueue[Any]) -> list[Any]:
    """What is done and not taken yet: one future or more."""
    while True:
        try:
            first = awaited(done, DASK_WAIT_S)
        except Empty as error:
            if client.nthreads():
                continue
            raise InputError(
                f"{scheduler}: no worker has come in {DASK_WAIT_S // 60} minutes; start some, and run this again"
            ) from error
        return [first, *(done.get() for _ in range(done.qsize()))]


def _client(stack: ExitStack, scheduler: str, workers: int | None) -> Any:
    local = stack.enter_context(_local(workers or cores())) if scheduler == LOCAL else None
    try:
        distributed: Any = import_module("distributed")  # Takes a second, in which the workers start.
    except ImportError as error:
        raise UsageError(_INSTALL) from error
    address = scheduler if local is None else _address(local)
    try:
        return stack.enter_context(distributed.Client(address, timeout=_CONNECT_S))
    except ValueError as error:
        raise UsageError(f"--scheduler {scheduler}: is no address; give 'local' or tcp://HOST:PORT") from error
    except OSError as error:
        raise InputError(f"{scheduler}: no Dask scheduler answers there; start one, or use local") from error


@contextmanager
def _local(workers: int) -> Iterator[Popen[str]]:
    """A scheduler with workers on this machine, in an interpreter that imports nothing of the caller's program: Dask's
    workers would run it again, were it the main one's."""
    command = [sys.executable, "-c", f"from stepscope.cluster.dask import serve; serve({workers})"]
    # A group of its own: a terminal's interrupt is this process's alone, which ends the others.
    with Popen(command, stdin=PIPE, stdout=PIPE, env=one_core(), cwd=OWN_FOLDER, text=True, process_group=0) as process:
        assert process.stdin is not None
        try:
            yield process
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            process.stdin.close()


def _address(local: Popen[str]) -> str:
    """Where a scheduler on this machine is, once it is there."""
    assert local.stdout is not None
    while not select([local.stdout], [], [], LOOK_S)[0]:
        pass
    address = local.stdout.readline().strip()
    if not address:
        raise InputError(f"{LOCAL}: Dask could not start workers on this machine; leave --scheduler out")
    return address


def serve(workers: int) -> None:
    """The life of a cluster on this machine: until nobody reads what it says, which is where it is."""
    dask: Any = import_module("dask")
    distributed: Any = import_module("distributed")
    dask.config.set(_SETTINGS)
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as made:
        print(made.scheduler_address, flush=True)
        sys.stdin.read()


def _failed(scheduler: str, future: Any, task: Task) -> Failed:
    """Why no worker made anything of a rank. Raises InputError where the scheduler is gone."""
    if future.cancelled():
        raise InputError(f"{scheduler}: the scheduler has gone away; start it again, and run this again")
    path, error = str(task.source.path), future.exception()
    if type(error).__name__ == "KilledWorker":
        return Failed(path, _DIED)
    return Failed(path, f"its worker failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
