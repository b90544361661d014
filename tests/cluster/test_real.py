"""Ranks of real jobs: PyTorch over gloo under torchrun, XLA's devices in one process, sampled profiles of 2 of 128."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.exchange.collectives import KINDS, Collective
from stepscope.jobs import Job
from tests.captures.environments import framework_python
from tests.cluster.jobs import check_booked
from tests.kit.traces import real_trace
from tests.report import documents
from tests.support import real_profile

SCRIPT = Path(__file__).parent / "scripts" / "gloo_ranks.py"
TIMEOUT_S = 90


def torchrun(folder: Path, ranks: int, late: int, ms: float) -> Path:
    """Run a job; one that hangs or is aborted by gloo's own rendezvous (on a busy machine) is tried once more."""
    folder.mkdir(exist_ok=True)
    command = [
        *(str(framework_python("torch")), "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"),
        *(str(SCRIPT), str(folder), str(late), str(ms)),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for last in (False, True):
        job = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            _, errors = job.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
            continue
        if job.returncode == 0:
            return folder
        # Nothing of stepscope is in these jobs: an abort is PyTorch's own.
        assert "SIGABRT" in errors.decode(), errors.decode()[-4000:]
        assert not last, errors.decode()[-4000:]
    pytest.skip("torchrun hung twice on this machine")


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return torchrun(tmp_path_factory.mktemp("gloo") / "late", 2, late=1, ms=15)


@pytest.mark.slow
def test_gloo_names_the_late_rank_and_its_input(late: Path) -> None:
    job = stepscope.open(late)
    assert isinstance(job, Job)
    assert job.ranks == [0, 1]
    check_booked(job.facts)
    document = documents.check(job.document())
    ranks = document["analyses"]["ranks"]
    assert [one["rank"] for one in ranks["stragglers"]] == [1]
    assert ranks["stragglers"][0]["cause"] == "input"
    # Two samples a batch: what the others wait is what was planted, but for a busy machine's own noise.
    assert 20e6 < ranks["stragglers"][0]["waited_ns_per_step"] < 60e6
    blamed = [step["rank"] for step in ranks["steps"]]
    assert blamed.count(1) > len(blamed) // 2  # a busy machine may stall the other rank now and then
    (traffic,) = document["analyses"]["collectives"]
    assert (traffic["kind"], traffic["size"], traffic["bytes"]) == ("all_reduce", 2, 4 * (64 * 64 + 64))
    assert traffic["bus_bandwidth"] == pytest.approx(traffic["algorithm_bandwidth"])
    late_one = next(finding for finding in document["findings"] if finding["rule"] == "straggler")
    assert "DataLoader" in late_one["why"]  # what the rank has for itself is told with it, and no second time
    assert "input_bound" not in {finding["rule"] for finding in document["findings"] if finding["rank"] == 1}


@pytest.mark.slow
def test_gloo_clocks_are_bounded_where_hosts_differ(late: Path, tmp_path: Path) -> None:
    """Both ranks have one clock: whatever is estimated without knowing that must hold the truth, 0."""
    for rank in range(2):
        text = (late / f"worker_{rank}.pt.trace.json").read_text()
        (tmp_path / f"worker_{rank}.json").write_text(text.replace('"host_name": "', f'"host_name": "{rank}'))
    job = stepscope.open(tmp_path)
    assert isinstance(job, Job)
    clock = job.facts.clocks[1]
    assert clock is not None
    assert abs(clock.offset_ns) <= clock.uncertainty_ns


@pytest.mark.slow
def test_four_ranks_without_one(late: Path, tmp_path: Path) -> None:
    folder = torchrun(tmp_path / "four", 4, late=2, ms=25)
    os.remove(folder / "worker_3.pt.trace.json")
    job = stepscope.open(folder)
    assert isinstance(job, Job)
    assert job.facts.missing == [3]
    check_booked(job.facts)
    assert [one["rank"] for one in job.document()["analyses"]["ranks"]["stragglers"]] == [2]


@pytest.mark.real
def test_two_sampled_ranks_of_128(tmp_path: Path) -> None:
    for rank in range(2):
        shutil.copy(real_trace(f"kineto/a100_rank{rank}_of_128.json.gz"), tmp_path)
    job = stepscope.open(tmp_path)
    assert isinstance(job, Job)
    document = documents.check(job.document())
    assert job.ranks == [0, 1]
    assert document["profile"]["world_size"] == 128
    assert len(job.facts.missing) == 126
    # Of sampled profiles nothing is claimed: no straggler, no split.
    ranks = document["analyses"]["ranks"]
    assert (ranks["determined"], ranks["stragglers"], ranks["steps"]) == (False, [], [])
    assert not {"collective_wait", "collective_transfer"} & {p for row in document["accounting"] for p in row["parts"]}
    assert {"ranks_missing", "profile_sampled"} <= {notice["code"] for notice in document["profile"]["notices"]}
    # Kernels are all called SendRecv; the ranges around their launches say what they are, on both ranks alike.
    kinds = {one["kind"] for one in document["analyses"]["collectives"]}
    assert kinds == {"all_to_all", "all_reduce", "all_gather"}
    assert all(one["ranks"] == [0, 1] for one in document["analyses"]["collectives"])


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "kinds", "sized"),
    [
        ("v100_two_ranks_rank1", {Collective.ALL_REDUCE}, False),
        (
            "mi300_resnet_checkpointing_rank0_of_8",
            {Collective.ALL_REDUCE, Collective.BROADCAST, Collective.GENERIC},
            True,
        ),
        ("b200_eager_rank0_of_8", {Collective.ALL_REDUCE, Collective.ALL_GATHER}, True),
        ("a100_rank0_of_128", {Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL}, True),
    ],
)
def test_every_generation_of_names(name: str, kinds: set[Collective], sized: bool) -> None:
    profile = real_profile(f"kineto/{name}.json.gz")
    found = profile.facts.collectives
    assert {KINDS[kind] for kind in found.kind} == kinds
    assert bool((found.bytes > 0).any()) == sized
