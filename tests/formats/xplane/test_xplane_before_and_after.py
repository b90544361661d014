"""The real XProf shows the same tables of a profile recorded as XPlane before and after ``stepscope convert``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stepscope import cli
from tests.captures.environments import framework_python
from tests.kit.traces import REPOSITORY, real_trace

pytestmark = pytest.mark.slow

PATIENCE_S = 600
REAL = ("tpu_v6e_4_chips", "mi300_jax_conv", "mi300_jax_attention", "v100_many_processes")
TOOLS = ("hlo_stats", "op_profile", "memory_profile", "overview_page", "kernel_stats", "framework_op_stats",
         "input_pipeline_analyzer", "roofline_model")  # fmt: skip
CONVERT = """
import json, os, sys
from xprof.convert import raw_to_tool_data
path, *tools = sys.argv[1:]
found = {"tools": raw_to_tool_data.xspace_to_tool_names([path])}
def ask(tool, **options):
    try:
        data = raw_to_tool_data.xspace_to_tool_data([path], tool, {"use_saved_result": False, **options})[0]
        return json.loads(data) if data else None
    except Exception as error:
        return type(error).__name__
for tool in tools:
    found[tool] = ask(tool)
ending = ".hlo_proto.pb"
modules = sorted(name[:-len(ending)] for name in os.listdir(os.path.dirname(path)) if name.endswith(ending))
for module in modules:
    for space in "015":
        found[f"memory_viewer of {module} in {space}"] = ask(
            "memory_viewer", module_name=module, memory_space=space, host="host")
print(json.dumps(found))
"""


def shown(path: Path, folder: Path) -> dict[str, Any]:
    """What XProf's tools say of a file."""
    here = folder / "host.xplane.pb"
    folder.mkdir()
    here.write_bytes(path.read_bytes())
    done = subprocess.run(
        [framework_python("xprof"), "-c", CONVERT, str(here), *TOOLS],
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    # XProf lists the snapshots of an allocator in another order each time, and gives them to other steps.
    allocators = found["memory_profile"]["memoryProfilePerAllocator"]
    found["memory_profile"] = {
        name: (one["profileSummary"]["peakBytesUsageLifetime"], len(one["memoryProfileSnapshots"]))
        for name, one in allocators.items()
    }
    return found


def rows(tool: Any) -> list[int]:
    """The rows of each of a tool's tables."""
    return [len(table.get("rows", [])) for table in (tool if isinstance(tool, list) else [tool])]


def total(tool: Any, column: str) -> float:
    """The sum of a column."""
    at = [one["id"] for one in tool["cols"]].index(column)
    return sum(float(row["c"][at]["v"]) for row in tool["rows"])


@pytest.mark.real
@pytest.mark.parametrize("name", REAL)
def test_xprof_shows_the_same_before_and_after(name: str, tmp_path: Path) -> None:
    path = real_trace(f"xplane/{name}.xplane.pb")
    out = tmp_path / "out.xplane.pb"
    assert cli.main(["convert", str(path), str(out)]) == 0
    before, after = shown(path, tmp_path / "before"), shown(out, tmp_path / "after")
    assert after["tools"] == before["tools"]
    for tool in ("hlo_stats", "kernel_stats", "framework_op_stats", "overview_page", "roofline_model"):
        assert rows(after[tool]) == rows(before[tool]), tool
    assert total(after["hlo_stats"], "total_self_time") == total(before["hlo_stats"], "total_self_time")
    assert total(after["kernel_stats"], "total_duration_us") == total(before["kernel_stats"], "total_duration_us")
    assert after == before
    if name == "tpu_v6e_4_chips":
        assert rows(after["hlo_stats"]) == [17]
        peak = after["memory_viewer of jit_f(12190760917235803885) in 0"]["peakHeapMib"]
        assert peak == pytest.approx(20480, abs=1)


def test_a_packed_capture_is_the_same_unpacked(tmp_path: Path) -> None:
    import gzip

    packed = REPOSITORY / "examples" / "profiles" / "jax_eight_devices.xplane.pb.gz"
    out = tmp_path / "out.xplane.pb"
    assert cli.main(["convert", str(packed), str(out)]) == 0
    assert out.read_bytes() == gzip.decompress(packed.read_bytes())


@pytest.mark.real
def test_of_a_part_xprof_shows_the_part(tmp_path: Path) -> None:
    path = real_trace("xplane/tpu_v6e_4_chips.xplane.pb")
    out = tmp_path / "out.xplane.pb"
    assert cli.main(["slice", str(path), str(out), "--steps", "40:50"]) == 0
    part, whole = shown(out, tmp_path / "part"), shown(path, tmp_path / "whole")
    share = total(part["hlo_stats"], "total_self_time") / total(whole["hlo_stats"], "total_self_time")
    assert 0.05 < share < 0.3  # and what ran into the part
    viewers = [key for key in whole if key.startswith("memory_viewer")]
    assert viewers
    assert [part[key] for key in viewers] == [whole[key] for key in viewers]
