"""Reading many ranks on a Dask cluster: one that is there, or one on this machine.

Scheduling, retries and the replacing of workers are Dask's. Few futures are in flight, whatever the number of ranks,
and each result is let go of once it is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from typing import Any

from stepscope.cluster.job import Failed
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import Task, cores
from stepscope.errors import InputError, UsageError
from stepscope.limits import DASK_AHEAD, DASK_LEAST, DASK_WAIT_S
from stepscope.readers.source import Source

LOCAL = "local"
_CONNECT_S = 20
_DIED = "each worker that read it died, most likely for lack of memory; read this rank alone with --rank"
_INSTALL = "--scheduler needs Dask, which is not installed: pip install 'stepscope[cluster]'"


def read_all(
    tasks: Sequence[Task], reduce: Callable[[Source], Partial | Failed], scheduler: str, workers: int | None = None
) -> Iterator[tuple[Task, Partial | Failed]]:
    """The partial result of each rank, as they come, from ``local`` workers or those of a scheduler's address.

    Raises UsageError where Dask is not installed or the address is none, InputError where no scheduler answers there,
    or it has no worker.
    """
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise UsageError(_INSTALL) from error
    with ExitStack() as stack:
        client = _client(distributed, stack, scheduler, workers)
        waiting = iter(tasks)
        running: dict[Any, Task] = {}
        while True:
            ahead = max(DASK_LEAST, DASK_AHEAD * sum(client.nthreads().values()))
            while len(running) < ahead and (task := next(waiting, None)) is not None:
                running[client.submit(reduce, task.source, pure=False)] = task
            if not running:
                return
            try:
                done = distributed.wait(list(running), timeout=DASK_WAIT_S, return_when="FIRST_COMPLETED").done
            except TimeoutError as error:
                if client.nthreads():
                    continue
                raise InputError(
                    f"{scheduler}: no worker has come in {DASK_WAIT_S // 60} minutes; start some, and run this again"
                ) from error
            for future in done:
                yield (task := running.pop(future)), _result(future, task)
                future.release()


def _client(distributed: Any, stack: ExitStack, scheduler: str, workers: int | None) -> Any:
    if scheduler != LOCAL:
        try:
            return stack.enter_context(distributed.Client(scheduler, timeout=_CONNECT_S))
        except ValueError as error:
            raise UsageError(f"--scheduler {scheduler}: is no address; give 'local' or tcp://HOST:PORT") from error
        except OSError as error:
            raise InputError(f"{scheduler}: no Dask scheduler answers there; start one, or use local") from error
    made = distributed.LocalCluster(
        n_workers=workers or cores(),
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        env={"POLARS_MAX_THREADS": "1"},
        silence_logs=50,
    )
    return stack.enter_context(distributed.Client(stack.enter_context(made)))


def _result(future: Any, task: Task) -> Partial | Failed:
    """What a worker made of a rank; where it could not, why."""
    error = future.exception()
    if error is None:
        found: Partial | Failed = future.result()
        return found
    path = str(task.source.path)
    if type(error).__name__ == "KilledWorker":
        return Failed(path, _DIED)
    return Failed(path, f"its worker failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
