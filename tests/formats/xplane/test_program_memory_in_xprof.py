"""What compiled programs need of memory is what the real XProf's memory viewer says."""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from stepscope.hlo.buffers import read_buffers
from tests.formats.xplane.test_xplane_before_and_after import shown
from tests.kit.traces import real_trace

pytestmark = [pytest.mark.slow, pytest.mark.real]

SMALL = 16 * 1024
MB = 1 << 20


@pytest.mark.parametrize("name", ["tpu_v6e_4_chips", "mi300_jax_conv", "mi300_jax_attention"])
def test_peaks_and_buffers_are_those_of_the_memory_viewer(name: str, tmp_path: Path) -> None:
    path = real_trace(f"xplane/{name}.xplane.pb")
    viewers = {key: one for key, one in shown(path, tmp_path / "xprof").items() if key.startswith("memory_viewer")}
    trace = stepscope.open(path).trace
    checked = 0
    for (program, module), data in zip(
        trace.table("programs").select("program", "module").rows(), trace.hlo, strict=True
    ):
        for space in read_buffers(data) or ():
            seen = viewers.get(f"memory_viewer of {module}({program % (1 << 64)}) in {space.space}")
            if not seen or "peakHeapMib" not in seen:
                continue
            checked += 1
            # XProf leaves out what threads have of their own.
            assert space.peak / MB == pytest.approx(seen["peakHeapMib"], abs=0.01)
            assert space.allocated / MB == pytest.approx(seen["totalBufferAllocationMib"], abs=0.01)
            if "maxHeap" not in seen:  # of the host's memory XProf tells the sizes alone
                continue
            listed = sorted(
                (one["instructionName"], round(one["logicalBufferSizeMib"] * MB), round(one["unpaddedShapeMib"] * MB))
                for one in seen["maxHeap"] if one.get("instructionName")
            )  # fmt: skip
            ours = [(one.name, one.bytes, one.unpadded) for one in space.buffers if one.bytes >= SMALL]
            assert sorted(ours) == listed
    assert checked >= 3
