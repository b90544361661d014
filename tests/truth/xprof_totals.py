"""Totals of whole profiles, as stepscope and as XProf tell them: ``python -m tests.truth.xprof_totals``.

Op counts, times, steps, the share of input, peaks of memory. Writes ``docs/xprof-totals.json``; needs the real traces,
and a Python with XProf, which ``STEPSCOPE_XPROF_PYTHON`` names.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

import stepscope
from stepscope import Profile
from tests.captures.checks import marks
from tests.kit.traces import REPOSITORY, traces_folder

PROFILES = ("mi300_jax_conv", "mi300_jax_attention", "tpu_v6e_4_chips", "v100_many_processes")
PAGE = REPOSITORY / "docs" / "xprof-totals.json"
TIME_TOLERANCE = 0.001
"""Of a time: both take it from the same events, in ps and in ns."""
INPUT_TOLERANCE = 0.02
"""Of a step: XProf takes the input's ops of any thread, stepscope what the step waits for."""
NS_PER_US, NS_PER_MS = 1e3, 1e6
PROGRAMS = 1 << 64

CONVERT = """
import json, sys
from xprof.convert import raw_to_tool_data
found = {}
for tool in ("hlo_stats", "kernel_stats", "framework_op_stats", "input_pipeline_analyzer", "memory_profile"):
    options = {"use_saved_result": False, "host": "host", "hosts": ["host"]}
    data = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], tool, options)[0]
    found[tool] = json.loads(data)
json.dump(found, open(sys.argv[2], "w"))
"""

NO_OPS = "XProf lists compiled ops of GPUs and TPUs only; here the CPU is the device"
NO_STEPS = "XProf finds no step marker; stepscope takes the program's runs, launches that repeat, or Keras's batches"
OWN_RANGE = "XProf's step is its marker alone; stepscope's lasts until the next begins, so that nothing is left out"
COUNTED_AGAIN = "XProf counts some ops of the host two or three times, with the time of one; the file holds these calls"
OWN_LOADER = "XProf knows the input of tf.data only; here the loop loads it itself, in a range that says so"
WHICH_INPUT = "XProf adds up the input's ops on all threads; stepscope tells what the step waits for"


@dataclass(frozen=True)
class Compared:
    """One figure of a profile."""

    profile: str
    what: str
    mine: float
    theirs: float | None
    """None where XProf has nothing."""
    reason: str
    """Why they differ; empty where they agree, ``?`` where nobody knows."""


def xprof_tools(path: Path, python: str) -> dict[str, Any]:
    """What XProf makes of a profile, by tool."""
    with tempfile.TemporaryDirectory() as folder:
        copied, made = Path(folder) / "host.xplane.pb", Path(folder) / "made.json"
        shutil.copyfile(path, copied)
        done = subprocess.run([python, "-c", CONVERT, copied, made], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, Any] = json.loads(made.read_text(encoding="utf-8"))
    return found


def compared(name: str, path: Path, python: str) -> list[Compared]:
    """Every figure that both tell of a profile, and those that only stepscope tells."""
    profile, tools = stepscope.open(path), xprof_tools(path, python)
    parts = (_compiled, _kernels, _host_ops, _steps, _memory)
    return [Compared(name, *row) for part in parts for row in part(profile, tools)]


Figure = tuple[str, float, float | None, str]
Figures = Iterator[Figure]


def _figure(what: str, mine: float, theirs: float, tolerance: float, reason: str = "?") -> Figure:
    agrees = abs(mine - theirs) <= tolerance * max(mine, theirs)
    return what, round(mine, 3), round(theirs, 3), "" if agrees else reason


def rows_of(tool: Any, column: str) -> list[dict[str, Any]]:
    """Rows of all tables of a tool that have a column."""
    tables = [table for table in (tool if isinstance(tool, list) else [tool]) if table.get("rows")]
    named = [([one["id"] for one in table["cols"]], table["rows"]) for table in tables]
    return [
        dict(zip(ids, [cell["v"] for cell in row["c"]], strict=True))
        for ids, rows in named
        if column in ids
        for row in rows
    ]


def _slices(profile: Profile) -> pl.DataFrame:
    table = profile.trace.table("slices").with_row_index("slice")
    return table.with_columns(pl.col("slice").cast(pl.Int32), pl.col("name").cast(pl.String))


def _compiled(profile: Profile, tools: dict[str, Any]) -> Figures:
    """Ops of compiled programs; one by one they have to agree too."""
    theirs = rows_of(tools["hlo_stats"], "hlo_op_name")
    ops = profile.trace.table("xla_ops").select("slice", "program", pl.col("op").cast(pl.String))
    on_device = profile.trace.table("device_ops").select("slice")
    mine = ops.join(on_device, on="slice").join(_slices(profile).select("slice", "dur_ns"), on="slice")
    if not len(mine):
        return
    total = float(mine["dur_ns"].sum()) / NS_PER_US
    if not theirs:
        yield "compiled ops that ran", len(mine), None, NO_OPS
        yield "their time, µs", round(total, 3), None, NO_OPS
        return
    yield _figure("compiled ops that ran", len(mine), sum(row["occurrences"] for row in theirs), 0)
    yield _figure("their time, µs", total, sum(row["total_time"] for row in theirs), TIME_TOLERANCE)
    each = {(str(program % PROGRAMS), op): (count, ns / NS_PER_US) for program, op, count, ns in mine.group_by(
        "program", "op").agg(pl.len(), pl.col("dur_ns").sum()).rows()}  # fmt: skip
    same = [row for row in theirs if _same(row, each.get((row["program_id"], row["hlo_op_name"])))]
    yield _figure("different ops, equal in count and time", len(each), len(same), 0)


def _same(row: dict[str, Any], mine: tuple[int, float] | None) -> bool:
    near = mine is not None and abs(mine[1] - row["total_time"]) <= TIME_TOLERANCE * row["total_time"] + 1
    return near and mine is not None and mine[0] == row["occurrences"]


def _kernels(profile: Profile, tools: dict[str, Any]) -> Figures:
    theirs = rows_of(tools["kernel_stats"], "kernel_name")
    if not theirs:
        return
    ops = profile.trace.table("device_ops").select("slice").join(_slices(profile), on="slice")
    mine = ops.filter(pl.col("kind").cast(pl.String) == "kernel")
    yield _figure("kernels that ran", len(mine), sum(row["occurrences"] for row in theirs), 0)
    time = sum(row["total_duration_us"] for row in theirs)
    yield _figure("their time, µs", float(mine["dur_ns"].sum()) / NS_PER_US, time, TIME_TOLERANCE)


def _host_ops(profile: Profile, tools: dict[str, Any]) -> Figures:
    """Ops that TensorFlow ran on the host; one inside of its like counts, but its time is that of the outer one."""
    rows = rows_of(tools["framework_op_stats"], "operation")
    ops = [row for row in rows if row["host_or_device"] == "Host" and row["type"] not in ("", "IDLE", "XlaModule")]
    theirs = {f"{row['operation']}:{row['type']}": row for row in ops}
    if not theirs:
        return
    tracks = profile.trace.table("tracks").with_row_index("track").with_columns(pl.col("track").cast(pl.Int32))
    threads = tracks.filter(pl.col("kind").cast(pl.String) == "host_thread").select("track")
    on_device = profile.trace.table("device_ops").select("slice")
    table = _slices(profile)
    on_host = table.join(threads, on="track").join(on_device, on="slice", how="anti")
    outer = on_host.join(table.select(parent="slice", around="name"), on="parent", how="left")
    named = outer.with_columns(inner=(pl.col("around") == pl.col("name")).fill_null(False)).group_by("name").agg(
        pl.len(), pl.col("dur_ns").filter(~pl.col("inner")).sum())  # fmt: skip
    mine = {name: (count, ns / NS_PER_US) for name, count, ns in named.rows() if name in theirs}
    both = [theirs[name] for name in mine]
    yield "ops of the host compared", len(mine), len(mine), ""
    counted = sum(row["occurrences"] for row in both)
    again = all(theirs[name]["occurrences"] % count == 0 for name, (count, _) in mine.items())
    reason = COUNTED_AGAIN if again else "?"
    yield _figure("their calls", sum(count for count, _ in mine.values()), counted, 0, reason)
    time = sum(row["total_time"] for row in both)
    yield _figure("their time, µs", sum(us for _, us in mine.values()), time, TIME_TOLERANCE)


def _steps(profile: Profile, tools: dict[str, Any]) -> Figures:
    """Steps that both have; XProf leaves the first and the last one out."""
    theirs = rows_of(tools["input_pipeline_analyzer"], "stepTimeMs")
    steps = profile.steps
    if not theirs:
        yield "steps", len(steps), None, NO_STEPS
        return
    times = {int(str(row["stepnum"]).rpartition(" ")[2]): row for row in theirs}
    mine = steps.filter(pl.col("number").is_in(list(times)))
    yield _figure("steps compared", len(mine), len(times), 0)
    wide = sum(row["stepTimeMs"] for row in times.values()) / len(times)
    marked = marks(profile).filter(pl.col("number").is_in(list(times)))["dur_ns"].to_list()
    exact = bool(marked) and abs(sum(marked) / NS_PER_MS / len(marked) - wide) <= TIME_TOLERANCE * wide
    long = float(mine["dur_ns"].sum()) / NS_PER_MS / len(mine)
    yield _figure("mean step, ms", long, wide, TIME_TOLERANCE, OWN_RANGE if exact else "?")
    yield from _input(profile, times, wide)


def _input(profile: Profile, times: dict[int, dict[str, Any]], wide: float) -> Figures:
    share = sum(row["infeedTimeMs"] for row in times.values()) / len(times) / wide
    document = profile.document()
    chosen = {step["index"] for step in document["steps"] if step["number"] in times}
    rows = [row for row in document["accounting"] if row["phase"] == "step" and row["step"] in chosen]
    waited = sum(row["parts"].get("input", 0) for row in rows) / sum(row["dur_ns"] for row in rows)
    reason = OWN_LOADER if share == 0 else WHICH_INPUT if waited < share else "?"
    agrees = abs(waited - share) <= INPUT_TOLERANCE
    yield "waiting for input, share of the step", round(waited, 3), round(share, 3), "" if agrees else reason


def _memory(profile: Profile, tools: dict[str, Any]) -> Figures:
    found = tools["memory_profile"].get("memoryProfilePerAllocator", {})
    theirs = {name: int(one["profileSummary"]["peakStats"]["peakBytesInUse"]) for name, one in found.items()}
    memory = profile.document()["analyses"].get("memory") or {}
    pools = memory.get("pools", [])
    mine = {pool["allocator"] or str(pool["device"]): pool["peak"]["allocated_bytes"] for pool in pools}
    for name in sorted(theirs.keys() | mine.keys()):
        yield _figure(f"most memory in use, {name}, bytes", mine.get(name, 0), theirs.get(name, 0), 0)


def measure(python: str) -> list[Compared]:
    """All real profiles at hand."""
    folder = traces_folder() / "xplane"
    return [row for name in PROFILES for row in compared(name, folder / f"{name}.xplane.pb", python)]


if __name__ == "__main__":
    rows = measure(os.environ["STEPSCOPE_XPROF_PYTHON"])
    PAGE.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
