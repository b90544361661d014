"""A mapped file that is cut off while it is read: the process goes on, and what was read is told as far as it goes."""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import stepscope
from stepscope import cli
from stepscope.inputs import mapped
from stepscope.inputs import source as sources
from stepscope.inputs.source import CutOffError, Source

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "profiles"
ONES = b"\1" * (1 << 20)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the signal is handled on Linux")


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is mapped."""
    monkeypatch.setattr(sources, "MAPPED_FROM", 1)
    path = tmp_path / "large"
    path.write_bytes(ONES)
    return path


def test_what_is_gone_reads_as_zeros_and_the_cut_is_known(large: Path) -> None:
    source = Source(large)
    data, _ = source.data()
    assert int(data[:10].sum()) == 10
    assert source.cut_off is None
    os.truncate(large, 5000)
    assert int(data.sum()) == 5000
    assert source.cut_off == 5000
    os.truncate(large, 100)  # and again
    assert int(np.asarray(data)[: 1 << 12].sum()) == 100
    with large.open("ab") as file:
        file.write(ONES)
    assert int(data[1 << 19 :].sum()) == 0


def test_threads_and_several_files_at_once(large: Path) -> None:
    other = large.with_name("other")
    other.write_bytes(ONES)
    source, whole = Source(large), Source(other)
    data, kept = source.data()[0], whole.data()[0]
    os.truncate(large, 4096)
    sums: list[int] = []
    threads = [threading.Thread(target=lambda: sums.append(int(data.sum()) + int(kept.sum()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [4096 + len(ONES)] * 4
    assert (source.cut_off, whole.cut_off) == (4096, None)


def test_a_file_that_is_no_longer_used_is_forgotten(large: Path) -> None:
    before = len(mapped._MAPS)
    data, _ = Source(large).data()
    view = np.asarray(data)[10:]
    del data
    assert len(mapped._MAPS) == before + 1
    del view
    assert len(mapped._MAPS) == before


def test_a_saved_profile_that_is_cut_off_is_said_and_never_shown_in_part(tmp_path: Path) -> None:
    path = tmp_path / "big.stepscope"
    stepscope.open(EXAMPLES / "cpu_input_bound.json.gz").save(path)

    def use() -> None:
        profile = stepscope.open(path)
        os.truncate(path, 1 << 16)
        for _ in range(10_000):
            int(profile.trace.slices.start_ns.sum())
            int(profile.trace.slices.dur_ns.sum())

    with pytest.raises(CutOffError, match="cut off or written anew"):
        use()


def test_a_profile_that_is_cut_off_while_it_is_read_ends_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "host.xplane.pb"
    assert cli.main(["convert", str(EXAMPLES / "cpu_input_bound.json.gz"), str(path)]) == 0
    monkeypatch.setattr(sources, "MAPPED_FROM", 1)
    xplane_read = import_module("stepscope.formats.xplane.read")
    before = xplane_read.read_space
    size = path.stat().st_size

    def cutting(*given: object) -> object:
        os.truncate(path, size * 3 // 4)
        return before(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(xplane_read, "read_space", cutting)
    assert cli.main(["diagnose", str(path)]) == 3
    out, err = capsys.readouterr()
    assert "cut off while it was read" in out + err
