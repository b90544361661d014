"""Ranks side by side in the trace viewer: collectives joined over ranks, on one clock with its drift."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from stepscope import pipeline
from stepscope.jobs import Job
from stepscope.web.links import links
from tests.kit import example_ranks

READER = Path(__file__).with_name("trace_links.mjs")


@pytest.fixture(scope="module")
def job() -> Job:
    made = pipeline.open(example_ranks.FOLDER)
    assert isinstance(made, Job)
    return made


def test_collectives_are_joined_and_end_together(job: Job, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    order = [2, 0, 1, 3]
    runs = {rank: pipeline.read(job.sources[rank]).run() for rank in order}
    for rank, run in runs.items():
        (tmp_path / str(rank)).write_bytes(run.pack or b"")
    (tmp_path / "links").write_bytes(links(job.facts, order))
    told = {
        "job": job.run({rank: at for at, rank in enumerate(order, 1)}).data(),
        "ranks": [
            {"at": at, "run": runs[rank].data(), "pack": str(tmp_path / str(rank))} for at, rank in enumerate(order, 1)
        ],
        "links": str(tmp_path / "links"),
    }
    (tmp_path / "job").write_text(json.dumps(told), encoding="utf-8")
    done = subprocess.run([node, READER, tmp_path / "job"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (matched,) = (group.matched for group in job.facts.groups)
    groups = found["groups"]
    assert len(groups) == matched.at.shape[1] > 0
    assert all([one["source"] for one in group] == [0, 1, 2, 3] for group in groups)
    assert len({one["name"] for group in groups for one in group}) == 1
    # The simulated ones end at once: with drift left in they would lie 300 ns apart.
    apart = [max(one["end"] for one in group) - min(one["end"] for one in group) for group in groups]
    assert max(apart) <= 10
    assert found["clocks"][0] == "clock of the view"


def test_ranks_alone_have_none(job: Job) -> None:
    assert b'"1.link":{"type":"ints","count":0,' in links(job.facts, [1])
    assert job.run().pack is None
