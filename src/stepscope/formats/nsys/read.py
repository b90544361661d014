"""Whether a database is an export of Nsight Systems, and reading it."""

from __future__ import annotations

from collections.abc import Callable

from stepscope.errors import InputError
from stepscope.formats import foreign
from stepscope.formats.nsys import schema
from stepscope.formats.nsys.convert import to_trace
from stepscope.formats.nsys.sqlite import Database
from stepscope.inputs.source import Source
from stepscope.trace.trace import Trace

_SHOWN = 4


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
    tables = ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    raise InputError(
        f"{database.path}: is an SQLite database, but no export of Nsight Systems: "
        + (f"its tables are {tables}; {foreign.ASK}" if names else f"it has no tables; {foreign.ASK}")
    )
