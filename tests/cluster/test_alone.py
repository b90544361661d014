"""One rank whose peers are not here, and several devices of one profile: what is told of their collectives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope import cli, pipeline
from stepscope.diagnosis.notices.devices import RANKS_ELSEWHERE
from stepscope.jobs import Job
from tests.cluster.jobs import data_parallel, simulate
from tests.kit.cluster import Op, Program
from tests.kit.events import US
from tests.kit.traces import real_trace
from tests.report import documents

EXAMPLES = Path(__file__).parents[2] / "examples"


def reported(path: Path) -> tuple[dict[str, Any], set[str]]:
    """The report of one profile, and the codes of its notices."""
    document = documents.check(pipeline.open_profile(path).document())
    return document, {notice["code"] for notice in document["profile"]["notices"]}


def written(program: Program, folder: Path, world: int = 4) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rank2.json"
    path.write_bytes(simulate(world, program).bytes_of(2))
    return path


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(data_parallel(world=4), tmp_path_factory.mktemp("alone"))


def test_one_rank_alone_has_its_collectives_with_bounds(alone: Path) -> None:
    document, codes = reported(alone)
    (one,) = document["analyses"]["collectives"]
    assert (one["kind"], one["ranks"], one["size"], one["bytes"]) == ("all_reduce", [2], 4, 4 << 20)
    assert (one["per_step"], one["bound"], one["wait_ns"]) == (4.0, True, None)
    assert 200_000 <= one["transfer_ns"] == one["duration_ns"]
    assert one["algorithm_bandwidth"] == pytest.approx((4 << 20) / one["transfer_ns"] * 1e9)
    assert one["exposed_ns_per_step"] == pytest.approx(document["summary"]["parts_ns_per_step"]["collective"], rel=0.01)
    assert "ranks" not in document["analyses"]
    assert RANKS_ELSEWHERE in codes


def test_the_command_shows_them(alone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", str(alone)]) == 0
    assert "Rank 2 of 4 alone: to tell waiting from transfer, diagnose" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["diagnose", str(alone), "-v", "-o", str(tmp_path / "report.txt")]) == 0
    text = " ".join((tmp_path / "report.txt").read_text().split())
    assert "≤, ≥: waiting is in it" in text
    assert "all-reduce" in text


def test_peers_elsewhere_are_no_notice_of_a_rank_that_they_stand_beside(tmp_path: Path) -> None:
    job = stepscope.open(simulate(2, data_parallel(world=2)).write(tmp_path / "job"))
    assert isinstance(job, Job)
    assert RANKS_ELSEWHERE not in {notice.code for notice in job.notices}


def test_collectives_that_cost_nothing_need_no_word(tmp_path: Path) -> None:
    """Two lasting 20 µs of a step of milliseconds."""

    def program(rank: int, step: int) -> list[Op]:
        return [
            Op("compute", 3_000 * US, "gemm"),
            Op("collective", 20 * US, members=(0, 1, 2)),
            Op("compute", 3_000 * US, "gemm"),
        ]

    document, codes = reported(written(program, tmp_path, 3))
    assert RANKS_ELSEWHERE not in codes
    assert len(document["analyses"]["collectives"]) == 1


def test_a_job_of_one_has_none_of_it(tmp_path: Path) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(simulate(1, lambda rank, step: [Op("compute", 500 * US, "gemm")]).bytes_of(0))
    document, codes = reported(path)
    assert "collectives" not in document["analyses"]
    assert RANKS_ELSEWHERE not in codes


def test_devices_of_one_profile_share_a_clock() -> None:
    """Eight devices of one process: whoever comes last is known without any estimate."""
    document, codes = reported(EXAMPLES / "profiles" / "jax_eight_devices.xplane.pb.gz")
    (one,) = document["analyses"]["collectives"]
    assert (one["kind"], one["size"], one["ranks"], one["bound"]) == ("all_reduce", 8, [], False)
    assert 0 < one["wait_ns"] < one["duration_ns"]
    assert 0 < one["transfer_ns"] < one["duration_ns"]
    assert one["bus_bandwidth"] == pytest.approx(1.75 * one["algorithm_bandwidth"])
    assert RANKS_ELSEWHERE not in codes


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "kinds", "told"),
    [
        # By hand from the files: kernels of the last two steps, elements times two bytes of bfloat16.
        (
            "mi300_resnet_checkpointing_rank0_of_8",
            {("all_reduce", 8, 2 * 8_816_192), ("all_reduce", 8, 2 * 2_873_320), ("broadcast", 8, 2 * 9_600),
             ("broadcast", 8, 8 * 20)},
            True,
        ),
        # Most of its all-reduces record neither group nor size.
        pytest.param(
            "b200_eager_rank0_of_8",
            {("all_reduce", None, None), ("all_gather", 8, 402_176)},
            False,
            marks=pytest.mark.slow,
        ),
        pytest.param("v100_two_ranks_rank1", {("all_reduce", 2, None)}, True, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_real_ranks_alone(name: str, kinds: set[tuple[str, int | None, int | None]], told: bool) -> None:
    document, codes = reported(real_trace(f"kineto/{name}.json.gz"))
    found = document["analyses"]["collectives"]
    assert {(one["kind"], one["size"], one["bytes"]) for one in found} == kinds
    assert all(one["bound"] and one["wait_ns"] is None for one in found)
    assert (RANKS_ELSEWHERE in codes) == told
