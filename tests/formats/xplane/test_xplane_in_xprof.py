"""The real XProf opens what the XPlane writer writes and sees what stepscope sees.

STEPSCOPE_XPROF_PYTHON names a Python that has xprof; without it one is installed into a temporary environment, and
where that cannot be done the tests skip, saying why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.formats.xplane.writing import write
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace
from tests.kit.traces import REPOSITORY
from tests.support import read_trace, real_profile

pytestmark = pytest.mark.slow

PATIENCE_S = 600
TOOLS = ("overview_page", "input_pipeline_analyzer", "kernel_stats", "trace_viewer")
CONVERT = """
import json, sys
from xprof.convert import raw_to_tool_data
path, *tools = sys.argv[1:]
options = {"use_saved_result": False}
print(json.dumps({tool: json.loads(raw_to_tool_data.xspace_to_tool_data([path], tool, options)[0]) for tool in tools}))
"""


@pytest.fixture(scope="session")
def xprof_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    named = os.environ.get("STEPSCOPE_XPROF_PYTHON")
    if named:
        return named
    folder = tmp_path_factory.mktemp("xprof")
    made = subprocess.run([sys.executable, "-m", "venv", folder], capture_output=True, timeout=PATIENCE_S)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "xprof==2.24.2"]
    if made.returncode == 0:
        made = subprocess.run(pip, capture_output=True, text=True, timeout=PATIENCE_S)
    if made.returncode:
        pytest.skip(f"no xprof: set STEPSCOPE_XPROF_PYTHON, for pip says: {str(made.stderr)[-300:]}")
    return str(python)


def opened(trace: Trace, folder: Path, python: str) -> dict[str, Any]:
    """What XProf's tools say of a trace."""
    path = folder / "plugins" / "profile" / "run" / "host.xplane.pb"
    path.parent.mkdir(parents=True)
    write(trace, path)
    done = subprocess.run(
        [python, "-c", CONVERT, str(path), *TOOLS], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def table(tool: Any, column: str) -> list[dict[str, Any]]:
    """The rows of that one of a tool's tables which has a column."""
    found = holding(tool, column)
    return [dict(zip([c["id"] for c in found["cols"]], [c["v"] for c in row["c"]], strict=True))
            for row in found["rows"]]  # fmt: skip


def properties(tool: Any, column: str) -> dict[str, str]:
    return holding(tool, column)["p"]  # type: ignore[no-any-return]


def holding(tool: Any, column: str) -> dict[str, Any]:
    parts = tool if isinstance(tool, list) else [tool]
    return next(part for part in parts if column in [c["id"] for c in part.get("cols", [])])


def windows_ms(trace: Trace) -> list[float]:
    """The steps' windows on the only device."""
    (account,) = analyse(trace).accounts
    lengths = np.diff(account.rows.bounds) / 1e6
    return [float(ms) for ms, step in zip(lengths, account.rows.steps, strict=True) if step is not None]


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "numbers"), [("v100_resnet50_workers0", range(5, 11)),
                          ("mi300_resnet_checkpointing_rank0_of_8", range(15, 18))]
)  # fmt: skip
def test_a_gpu_profile_of_pytorch(name: str, numbers: range, xprof_python: str, tmp_path: Path) -> None:
    trace = real_profile(f"kineto/{name}.json.gz").trace
    tools = opened(trace, tmp_path, xprof_python)
    expected = windows_ms(trace)
    assert len(expected) == len(numbers)
    shown = expected[1:-1] if len(expected) > 5 else expected  # XProf leaves out the first and last of many
    steps = table(tools["overview_page"], "stepTimeMs")
    assert [float(step["stepTimeMs"]) for step in steps] == pytest.approx(shown, abs=0.001)
    assert properties(tools["input_pipeline_analyzer"], "stepTimeMs")["hardware_type"] == "GPU"
    check_kernels(trace, tools["kernel_stats"])
    check_timeline(trace, tools["trace_viewer"]["traceEvents"], {f"ProfilerStep {number}" for number in numbers})


def check_kernels(trace: Trace, tool: Any) -> None:
    """Every kernel by name, how often it ran and how long; XProf leaves out those of no duration."""
    slices, strings = trace.slices, trace.strings
    rows = np.flatnonzero(np.isin(slices.kind, (t.Kind.KERNEL, t.Kind.COLLECTIVE)) & (slices.dur_ns > 0))
    counts, times = Counter[str](), Counter[str]()
    for row in rows.tolist():
        counts[strings[slices.name[row]]] += 1
        times[strings[slices.name[row]]] += int(slices.dur_ns[row])
    kernels = table(tool, "kernel_name")
    shown, took = Counter[str](), Counter[str]()
    for kernel in kernels:
        shown[kernel["kernel_name"]] += int(kernel["occurrences"])
        took[kernel["kernel_name"]] += round(kernel["total_duration_us"] * 1000)
    assert shown == counts
    assert took == times
    assert any(kernel["grid_dim"] != "1,1,1" and kernel["block_dim"] != "1,1,1" for kernel in kernels)


def check_timeline(trace: Trace, events: list[dict[str, Any]], steps: Collection[str]) -> None:
    """All slices that last are drawn under the names people know, beside the steps."""
    events = [event for event in events if event.get("ph") == "X"]
    drawn = Counter(event["name"] for event in events)
    names = Counter(trace.strings[code] for code in trace.slices.name[trace.slices.dur_ns > 0].tolist())
    on_host = {name for name in names if name.startswith("ProfilerStep#")}
    assert {name: drawn[name] for name in names if name not in on_host} == {
        name: count for name, count in names.items() if name not in on_host
    }
    assert set(steps) <= drawn.keys()
    copies = [event for event in events if event["name"].startswith("Memcpy HtoD")]
    assert all("size:" in event["args"]["memcpy_details"] for event in copies)


def test_a_cpu_profile_of_pytorch_is_input_bound_for_xprof_too(xprof_python: str, tmp_path: Path) -> None:
    trace = read_trace(REPOSITORY / "examples" / "profiles" / "cpu_input_bound.json.gz")
    tools = opened(trace, tmp_path, xprof_python)
    steps = table(tools["overview_page"], "stepTimeMs")
    marked = {
        f"ProfilerStep {name.removeprefix('ProfilerStep#')}": int(dur) / 1e6
        for code, dur in zip(trace.slices.name.tolist(), trace.slices.dur_ns.tolist(), strict=True)
        if (name := trace.strings[code]).startswith("ProfilerStep#")
    }
    assert len(steps) >= 4
    for step in steps:
        assert float(step["stepTimeMs"]) == pytest.approx(marked[step["stepnum"]], abs=0.001)
        assert float(step["infeedTimeMs"]) > 0.8 * float(step["stepTimeMs"])
    verdict = properties(tools["input_pipeline_analyzer"], "stepTimeMs")["input_conclusion"]
    assert "HIGHLY input-bound" in verdict
    check_timeline(trace, tools["trace_viewer"]["traceEvents"], marked)
