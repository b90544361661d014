"""TensorFlow's log of device placement beside a profile."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from stepscope import pipeline
from stepscope.formats.beside import placement_log
from stepscope.formats.beside.placement_log import placements
from tests.formats.beside.placement_logs import EAGER, GRAPH, OLD
from tests.guides.test_gpu_launches import placed

CPU, GPU = (f"/job:localhost/replica:0/task:0/device:{name}:0" for name in ("CPU", "GPU"))


def test_ops_that_run_eagerly_are_counted_by_type() -> None:
    found = placements(EAGER.encode())
    assert found == {
        (None, "_EagerConst", GPU): 1,
        ("x", "_Arg", GPU): 1,
        (None, "Mul", GPU): 1,
        (None, "Unique", CPU): 1,
        (None, "__inference_f", GPU): 2,
    }


def test_nodes_of_graphs_have_names_and_other_lines_are_none() -> None:
    name = "w/Initializer/random_uniform/RandomUniform"
    wanted = {(name, "RandomUniform", GPU): 1, ("fc/MatMul", "MatMul", GPU): 1, ("loss/Unique", "Unique", CPU): 1}
    assert placements(GRAPH.encode()) == wanted


def test_old_tensorflow_wrote_devices_otherwise() -> None:
    base = "/job:localhost/replica:0/task:0"
    found = placements(OLD.encode())
    assert found == {("fc/MatMul", "MatMul", f"{base}/gpu:0"): 1, ("loss/Unique", "Unique", f"{base}/cpu:0"): 1}


def profile_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "vm.xplane.pb"
    path.write_bytes(placed().path.read_bytes())
    return path


def test_a_log_is_known_by_what_it_holds(tmp_path: Path) -> None:
    path = profile_in(tmp_path)
    assert len(pipeline.open_profile(path).trace.placements) == 0
    (tmp_path / "holiday.jpg").write_text(GRAPH)
    rows = pipeline.open_profile(path).table("placements").to_dicts()
    assert rows[-1] == {"node": "loss/Unique", "op": "Unique", "device": CPU, "count": 1}


def test_tensorboards_layout_has_it_in_the_log_directory(tmp_path: Path) -> None:
    path = profile_in(tmp_path / "plugins" / "profile" / "2026_01_01_00_00_00")
    (tmp_path / "train.err").write_text(EAGER)
    assert pipeline.open_profile(path).table("placements").height == 5


def test_a_launcher_may_write_ranks_before_the_lines(tmp_path: Path) -> None:
    path = profile_in(tmp_path)
    (tmp_path / "job.out").write_text("".join(f"[1,0]<stderr>: {line}\n" for line in GRAPH.splitlines()))
    assert pipeline.open_profile(path).table("placements").height == 3


@pytest.mark.parametrize("name", ["a.json", "a.gz", "a.bin"])
def test_what_is_no_text_is_not_searched(tmp_path: Path, name: str) -> None:
    path, text = profile_in(tmp_path), GRAPH.encode()
    content = {"a.json": b"[ {}]" + text, "a.gz": gzip.compress(text), "a.bin": b"\0" + text}
    (tmp_path / name).write_bytes(content[name])
    assert len(pipeline.open_profile(path).trace.placements) == 0


def test_no_more_is_read_than_is_bearable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = profile_in(tmp_path)
    (tmp_path / "a.log").write_text("x\n" * 5_000)
    (tmp_path / "b.log").write_text(GRAPH)
    monkeypatch.setattr(placement_log, "_MOST_BYTES", 8_000)
    assert len(pipeline.open_profile(path).trace.placements) == 0
    monkeypatch.setattr(placement_log, "_MOST_BYTES", 20_000)
    assert len(pipeline.open_profile(path).trace.placements) == 3
