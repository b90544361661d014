"""What the saved form and Parquet files hold, read back; every format's profiles alike."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given

from stepscope.errors import OutputError
from stepscope.formats import parquet, saved
from stepscope.formats.recorded import proven
from stepscope.formats.saved import read
from stepscope.inputs.source import Source
from stepscope.trace import tables as t
from stepscope.trace.saved import is_saved
from stepscope.trace.views import numbered
from tests.kit.traces import KINETO_TRACES
from tests.support import read_trace, real_profile
from tests.trace.traces import assert_same, traces


@given(traces())
def test_parquet_files_are_the_tables(tmp_path_factory, trace):
    folder = tmp_path_factory.mktemp("parquet") / "tables"
    parquet.write(trace, folder)
    assert not (folder / "nodes.parquet").exists() or len(trace.nodes)
    for name in t.TABLES:
        file = folder / f"{name}.parquet"
        assert file.exists() == bool(len(getattr(trace, name)))
        if file.exists():
            frame = pl.read_parquet(file)
            assert frame.equals(numbered(trace, name))
            assert set(frame.dtypes).isdisjoint({pl.Enum, pl.Categorical})
    known = json.loads((folder / "info.json").read_text())
    assert known["info"]["devices"][0] == {
        "id": 0, "name": "GPU", "memory_bytes": 1 << 36, "multiprocessors": 108, "compute_capability": [8, 0],
        "kind": "gpu", "clock_khz": 1_410_000, "memory_bandwidth": 1_555 * 10**9,
    }  # fmt: skip
    assert known["completeness"]["losses"][0]["lost_events"] == 2


def test_a_folder_is_replaced_where_it_holds_nothing_else(tmp_path: Path):
    trace = read_trace(EXAMPLE)
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "nodes.parquet").write_text("of an earlier profile")
    parquet.write(trace, folder)
    assert not (folder / "nodes.parquet").exists()
    (folder / "thesis.parquet").write_text("years of work")
    before = sorted(folder.iterdir())
    with pytest.raises(OutputError, match=r"holds something else \(thesis\.parquet\)"):
        parquet.write(trace, folder)
    assert sorted(folder.iterdir()) == before
    (tmp_path / "file").write_text("old")
    parquet.write(trace, tmp_path / "file")
    assert (tmp_path / "file" / "slices.parquet").exists()


EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "profiles" / "cpu_input_bound.json.gz"


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_real_profiles_come_back_to_the_bit(name, tmp_path):
    trace = real_profile(name).trace
    saved.write(trace, tmp_path / "x")
    again = read(Source(tmp_path / "x"))
    assert is_saved(Source(tmp_path / "x").head(64))
    assert_same(again, proven(trace))
