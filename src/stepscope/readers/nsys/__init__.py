"""Nsight Systems exports: the SQLite file that ``nsys export --type sqlite`` makes of a report, plain or gzip.

Supported: kernels, copies, memsets and whole CUDA graphs; runtime and driver calls; waits between streams; NVTX ranges
and marks, among them the ops that PyTorch writes; cuBLAS, cuDNN and MPI calls; OS runtime calls and the profiler's own
work on tracks of their own; allocations of device memory; devices, host, thread names and MPI ranks. Tables and columns
that a schema version lacks are absent facts. Samples and hardware metrics are not used, which a notice says.

A trace is one process: of several in a file the one with most device ops is read, and a notice counts the others.

Written after NVIDIA's schema reference and tried on files made after it; no file of the tool itself was at hand.
"""

from __future__ import annotations

from collections.abc import Callable

from stepscope.errors import InputError
from stepscope.readers import foreign
from stepscope.readers.nsys import schema
from stepscope.readers.nsys.convert import to_trace
from stepscope.readers.source import Source
from stepscope.readers.sqlite import MAGIC, Database
from stepscope.trace.trace import Trace

_SHOWN = 4


def recognise(head: bytes) -> bool:
    """Whether a file begins like an SQLite database."""
    return head.startswith(MAGIC)


def read(source: Source, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read an export.

    Raises InputError where the database is another tool's, cannot be read at all, or holds no usable event.
    """
    data, fault = source.data()
    database = Database(data, str(source.path))
    _require_export(database)
    trace = to_trace(database, fault, progress)
    if not len(trace.slices):
        raise foreign.empty(source.path, trace.completeness.losses)
    return trace


def _require_export(database: Database) -> None:
    names = set(database.tables)
    if "StringTable" in names and any(name.startswith("CUPTI_ACTIVITY_KIND_") for name in names):
        raise InputError(
            f"{database.path}: is a profile of nvprof, which is not read; record it again with nsys profile and export "
            "it with `nsys export --type sqlite`"
        )
    if names & set(schema.TABLES):
        return
    if names & {"META_DATA_EXPORT", "TARGET_INFO_GPU", schema.STRINGS}:
        raise InputError(
            f"{database.path}: is an Nsight Systems export without CUDA or NVTX events; record with "
            "`nsys profile --trace=cuda,nvtx`"
        )
    shown = sorted(names)[:_SHOWN]
    found = ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    raise InputError(
        f"{database.path}: is an SQLite database, but no export of Nsight Systems: "
        + (f"its tables are {found}; {foreign.ASK}" if names else f"it has no tables; {foreign.ASK}")
    )
