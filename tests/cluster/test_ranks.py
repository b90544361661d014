"""Which files are ranks of one job, and what is said of those that are missing, doubled or damaged."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
from pathlib import Path

import pytest

import stepscope
from stepscope import cli, pipeline
from stepscope.cluster.job import Failed
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import Task, read_all
from stepscope.cluster.ranks import ranks_of
from stepscope.errors import Exit, InputError, UsageError
from stepscope.formats.find import find
from stepscope.inputs.source import Source
from stepscope.jobs import Job
from stepscope.pipeline import Profile
from stepscope.report import bar, markdown, phrases, terminal
from tests.cluster.jobs import MS, data_parallel, simulate
from tests.kit import xplanes
from tests.kit.cluster import Cluster
from tests.kit.some import some
from tests.report import documents


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    extra = lambda rank, step: {"input": 4 * MS} if rank == 1 else {}  # noqa: E731
    return simulate(4, data_parallel(extra, world=4), steps=6)


@pytest.fixture(scope="module")
def folder(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return cluster.write(tmp_path_factory.mktemp("job") / "ranks")


def sources(tmp_path: Path, *names: str, data: bytes = b'{"traceEvents": []}') -> list[Source]:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [Source(tmp_path / name) for name in names]


def test_a_folder_of_ranks_is_one_job(folder: Path) -> None:
    job = stepscope.open(folder)
    assert isinstance(job, Job)
    assert job.ranks == [0, 1, 2, 3]
    assert job.findings[0].rank == 1
    assert job.notices == tuple(notice for notice in job.notices if not notice.code.startswith("rank"))
    assert job.exit_status is Exit.OK
    document = documents.check(job.document())
    assert document["profile"]["ranks"] == [0, 1, 2, 3]
    assert set(job.accounting["rank"]) == {0, 1, 2, 3}
    assert job.accounting["collective_wait"].sum() > 0
    assert len(job.steps) == 24


def test_the_command_tells_a_job_and_one_rank_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["diagnose", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "the other ranks wait for rank 1: it waits for input longer" in " ".join(out.split())
    assert cli.main(["diagnose", str(folder), "-v", "-o", str(tmp_path / "report.txt")]) == 0
    text = (tmp_path / "report.txt").read_text()
    assert "Whom each step waited for" in text
    assert "Clocks, against the first rank's" in text
    assert "bus GB/s" in text
    assert cli.main(["diagnose", str(folder), "--rank", "2", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["ranks"] == [2]
    assert cli.main(["diagnose", *map(str, sorted(folder.iterdir())), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["profile"]["ranks"] == [0, 1, 2, 3]
    assert cli.main(["diagnose", str(folder), "--rank", "9"]) == 2
    assert "there is no such rank here; there are 0, 1, 2, 3" in capsys.readouterr().err
    assert cli.main(["diagnose", str(folder), "--separately"]) == 0
    assert capsys.readouterr().out.count("-v shows everything") == 4


def test_a_job_is_called_by_its_folder_and_says_what_its_means_are_over(folder: Path) -> None:
    document = pipeline.open(folder).document()
    assert phrases.header(document)[0] == "ranks"
    for text in (terminal.render(document), markdown.render(document)):
        assert re.search("means over 4 ranks, late ones among them", text, re.I)
        assert "mean over the ranks that wait" in " ".join(text.split())
        assert "ops on device" not in text, "of each rank alone"
    sides = {part.words: part.busy for part in bar.parts_of(document["summary"])}
    assert sides["waiting for a late rank"] is False
    assert sides["transfer between ranks"] is True


def test_ranks_are_told_by_the_file_then_by_its_name_then_by_a_pattern(tmp_path: Path, cluster: Cluster) -> None:
    said = sources(tmp_path, "rank7.json", data=cluster.bytes_of(3))
    found = ranks_of([*said, *sources(tmp_path, "rank_12.json", "x/worker4.json")])
    assert found is not None
    assert {rank: source.path.name for rank, source in found.sources.items()} == {
        3: "rank7.json", 4: "worker4.json", 12: "rank_12.json"
    }  # fmt: skip
    named = ranks_of(sources(tmp_path, "n0-3.json", "n1-5.json", "other.json"), r"n\d-(\d)\.json")
    assert named is not None
    assert sorted(named.sources) == [3, 5]
    assert [Path(path).name for path in named.unranked] == ["other.json"]
    folders = ranks_of(sources(tmp_path, "rank0/trace.json", "rank1/trace.json"))
    assert folders is not None
    assert sorted(folders.sources) == [0, 1]


@pytest.mark.parametrize("names", [("a.json", "b.json"), ("rank1.json", "b.json"), ("bankrank.json", "frank.json")])
def test_other_profiles_are_no_job(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert ranks_of(sources(tmp_path, *names)) is None


@pytest.mark.parametrize("pattern", ["rank(", r"rank\d+"])
def test_a_pattern_that_is_none_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="--rank-pattern"):
        ranks_of(sources(tmp_path, "a.json"), pattern)


def test_hosts_of_one_capture_are_numbered_by_name(tmp_path: Path) -> None:
    run = "plugins/profile/2026_01_01_00_00_00"
    found = ranks_of(sources(tmp_path, f"{run}/host10.xplane.pb", f"{run}/host9.xplane.pb"))
    assert found is not None
    assert found.by_order
    assert [source.path.name for source in found.sources.values()] == ["host9.xplane.pb", "host10.xplane.pb"]


def test_a_rank_recorded_twice_is_read_once_and_named(tmp_path: Path, cluster: Cluster) -> None:
    for rank in range(2):
        for step in (10, 9):
            (tmp_path / f"rank{rank}-step{step}.json").write_bytes(cluster.bytes_of(rank))
    found = ranks_of([Source(path) for path in sorted(tmp_path.iterdir())])
    assert found is not None
    assert {source.path.name for source in found.sources.values()} == {"rank0-step10.json", "rank1-step10.json"}
    told = [notice.text for notice in pipeline.read_ranks(found).notices if notice.code == "rank_duplicate"]
    paths = ", ".join(str(tmp_path / f"rank{rank}-step9.json") for rank in range(2))
    assert told == [f"Ranks 0-1 have more than one profile: the last by name is read, not {paths}."]


def test_an_unreadable_rank_costs_itself_alone_and_is_named(tmp_path: Path, cluster: Cluster) -> None:
    cluster.write(tmp_path, [0, 1])
    (tmp_path / "rank2.json").write_bytes(b'{"traceEvents": [\x00\x00')
    job = stepscope.open(tmp_path)
    assert isinstance(job, Job)
    assert job.ranks == [0, 1]
    assert job.exit_status is Exit.PARTIAL
    told = next(notice.text for notice in job.notices if notice.code == "rank_unreadable")
    assert "rank2.json" in told
    assert job.document()["profile"]["complete"] is False


def test_a_job_of_which_nothing_can_be_read(tmp_path: Path) -> None:
    found = ranks_of(sources(tmp_path, "rank0.json", "rank1.json", data=b'{"traceEvents": [\x00'))
    assert found is not None
    with pytest.raises(InputError, match="none of the job's 2 ranks can be read"):
        pipeline.read_ranks(found)


# --- processes ------------------------------------------------------------------------------------------------------


def dies_once(source: Source) -> str:
    """A worker that is killed the first time it reads a rank."""
    marker = source.path.with_suffix(".tried")
    if source.path.name == "rank1.json" and not marker.exists():
        marker.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return source.path.name


def dies(source: Source) -> str:
    if source.path.name == "rank1.json":
        os.kill(os.getpid(), signal.SIGKILL)
    return source.path.name


@pytest.fixture
def importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find this module; not where the caller stands, which they never look into."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    monkeypatch.chdir(tmp_path)


def tasks(tmp_path: Path) -> list[Task]:
    made = sources(tmp_path, *(f"rank{rank}.json" for rank in range(4)))
    return [Task(rank, source) for rank, source in enumerate(made)]


@pytest.mark.slow
@pytest.mark.usefixtures("importable")
def test_a_lost_worker_costs_a_retry(tmp_path: Path) -> None:
    entry = f"{__name__}:dies_once"
    found = list(read_all(tasks(tmp_path), entry, dies_once, 2))  # type: ignore[arg-type]
    assert {one.task.rank: str(one.outcome) for one in found} == {rank: f"rank{rank}.json" for rank in range(4)}
    assert [one.task.rank for one in found if one.again] == [1]


@pytest.mark.slow
@pytest.mark.usefixtures("importable")
def test_a_rank_that_kills_every_worker_is_named(tmp_path: Path) -> None:
    entry = f"{__name__}:dies"
    found = {one.task.rank: one.outcome for one in read_all(tasks(tmp_path), entry, dies, 2)}  # type: ignore[arg-type]
    assert isinstance(found[1], Failed)
    assert "died" in found[1].reason
    assert sorted(map(str, (found[rank] for rank in (0, 2, 3)))) == ["rank0.json", "rank2.json", "rank3.json"]


@pytest.mark.slow
def test_processes_find_what_this_one_does(folder: Path) -> None:
    ranks = ranks_of(find(str(folder)).sources)
    assert ranks is not None
    here, there = pipeline.read_ranks(ranks), pipeline.read_ranks(ranks, workers=2)
    assert there.document() == here.document()


def test_progress_counts_ranks(folder: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    stepscope.open(folder, progress=lambda *told: seen.append(told))
    assert seen == [("ranks", done, 4) for done in range(1, 5)]


def test_what_is_kept_of_a_rank_is_small(folder: Path) -> None:
    for path in folder.iterdir():
        partial = pipeline.reduce_rank(Source(path))
        assert isinstance(partial, Partial)
        assert len(pickle.dumps(partial)) < 64_000


# --- which of a folder's profiles are of one job ----------------------------------------------------------------------


def recorded(world: int, rank: int, at_s: int) -> bytes:
    """The beginning of a profile that says its rank, its job's size, and when it was recorded."""
    head = {"distributedInfo": {"rank": rank, "world_size": world}, "baseTimeNanoseconds": 1_700_000_000 * 10**9}
    return json.dumps(head | {"traceEvents": [{"ph": "X", "ts": at_s * 10**6, "dur": 1, "name": "x"}]}).encode()


def read_of(tmp_path: Path, files: dict[str, bytes]) -> tuple[dict[int, str], list[tuple[set[str], str]]]:
    """The ranks that are read of some files, and what is left out and why."""
    found = ranks_of([source for name, data in files.items() for source in sources(tmp_path, name, data=data)])
    assert found is not None
    left = [({str(Path(path).relative_to(tmp_path)) for path in one.paths}, one.why) for one in found.left_out]
    return {rank: str(source.path.relative_to(tmp_path)) for rank, source in found.sources.items()}, left


def test_a_profile_of_a_job_of_another_size_is_left_out(tmp_path: Path) -> None:
    files = {f"rank{rank}.json": recorded(4, rank, 0) for rank in range(4)} | {"vm.rank0.json": recorded(2, 0, 900)}
    read, left = read_of(tmp_path, files)
    assert read == {rank: f"rank{rank}.json" for rank in range(4)}
    assert left == [({"vm.rank0.json"}, "of another job, of 2 ranks instead of 4")]


def test_a_profile_of_another_framework_is_left_out(tmp_path: Path) -> None:
    files = {f"rank{rank}.json": recorded(4, rank, 0) for rank in range(2)}
    read, left = read_of(tmp_path, files | {"rank2.xplane.pb": xplanes.space(xplanes.Plane("/host:CPU"))})
    assert read == {0: "rank0.json", 1: "rank1.json"}
    assert left == [({"rank2.xplane.pb"}, "of another job (XPlane, not Chrome trace JSON)")]


def test_of_several_runs_one_is_read_whole(tmp_path: Path) -> None:
    """By when recording began: names, whose process ids come first, would mix them."""
    began = {"a.9.json": (0, 10), "b.7.json": (0, 500), "a.8.json": (1, 11), "b.99.json": (1, 499)}
    files = {f"vm.rank{rank}.{name}": recorded(2, rank, at) for name, (rank, at) in began.items()}
    read, left = read_of(tmp_path, files)
    assert read == {0: "vm.rank0.b.7.json", 1: "vm.rank1.b.99.json"}
    assert left == [({"vm.rank0.a.9.json", "vm.rank1.a.8.json"}, "of an earlier run")]


def test_a_run_that_a_rank_is_missing_of_takes_none_of_an_earlier_one(tmp_path: Path) -> None:
    files = {f"old{rank}/rank{rank}.json": recorded(3, rank, rank) for rank in range(3)}
    files |= {f"new{rank}/rank{rank}.json": recorded(3, rank, 100 + rank) for rank in (0, 2)}
    read, _ = read_of(tmp_path, files)
    assert read == {0: "new0/rank0.json", 2: "new2/rank2.json"}


def test_the_rest_of_a_run_that_failed_is_not_the_job(tmp_path: Path) -> None:
    files = {f"old/rank{rank}.json": recorded(4, rank, rank) for rank in range(4)}
    read, left = read_of(tmp_path, files | {"new/rank3.json": recorded(4, 3, 100)})
    assert read == {rank: f"old/rank{rank}.json" for rank in range(4)}
    assert left == [({"new/rank3.json"}, "of a later run, which has fewer ranks")]


def test_runs_that_tell_no_time_are_told_by_their_names(tmp_path: Path) -> None:
    files = {f"run{run}/rank{rank}.json": b'{"traceEvents": []}' for run in (9, 10) for rank in range(2)}
    read, _ = read_of(tmp_path, files)
    assert read == {0: "run10/rank0.json", 1: "run10/rank1.json"}
    times = {f"vm.rank{rank}.{pid}.{time}.json": b'{"traceEvents": []}'
             for rank, pid, time in ((0, 9, 1795274605493467717), (1, 8, 1795274605527568821),
                                     (0, 7, 1795274740713838033), (1, 6, 1795274740769640000))}  # fmt: skip
    read, _ = read_of(tmp_path / "times", times)
    assert [name.split(".")[2] for name in read.values()] == ["7", "6"]


def test_what_is_left_out_is_named_with_what_reads_it(tmp_path: Path, cluster: Cluster) -> None:
    cluster.write(tmp_path, [0, 1, 2, 3])
    (tmp_path / "vm.rank0.json").write_bytes(recorded(2, 0, 900))
    job = stepscope.open(tmp_path)
    assert [notice.text for notice in job.notices if notice.code == "other_run"] == [
        "Left out, as it is of another job, of 2 ranks instead of 4: vm.rank0.json. To read it, name the file, or "
        "choose with --rank-pattern."
    ]
    assert isinstance(job, Job)
    assert job.facts.world_size == 4


# --- ranks that cannot be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"), some([(b"no JSON", "is text"), (b"", "is empty"), (b"{}", "is JSON without")], 1, several=True)
)
def test_a_file_that_is_named_as_a_rank_and_is_no_profile_is_a_rank_that_could_not_be_read(
    data: bytes, reason: str, tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.write(tmp_path, [0, 1, 2])
    (tmp_path / "rank3.json").write_bytes(data)
    (tmp_path / "rank4.log").write_bytes(b"of no rank's profile")
    assert cli.main(["diagnose", str(tmp_path)]) == Exit.PARTIAL
    out = " ".join(capsys.readouterr().out.split())
    assert "! Rank 3 (rank3.json) could not be read. This covers the rest." in out
    assert f"rank 3, {tmp_path}/rank3.json: {reason}" in out.replace("- ", "-")
    assert "have no profile here" not in out
    assert "rank4" not in out
    job = stepscope.open(tmp_path)
    document = documents.check(job.document())
    assert document["analyses"]["ranks"]["missing"] == []
    (unread,) = document["analyses"]["ranks"]["unreadable"]
    assert unread["rank"] == 3
    assert unread["reason"].startswith(reason)


def test_a_rank_alone_beside_ranks_that_cannot_be_read_is_a_job(tmp_path: Path, cluster: Cluster) -> None:
    cluster.write(tmp_path, [0])
    (tmp_path / "rank3.json").write_bytes(b"")
    job = stepscope.open(tmp_path)
    assert isinstance(job, Job)
    assert (job.ranks, job.exit_status, job.facts.missing) == ([0], Exit.PARTIAL, [1, 2])


def test_a_damaged_rank_is_named_first(tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.write(tmp_path, [0, 1, 2])
    (tmp_path / "rank3.json").write_bytes(cluster.bytes_of(3)[:-5000])
    assert cli.main(["diagnose", str(tmp_path)]) == Exit.PARTIAL
    assert "! Rank 3 (rank3.json) could not be read whole. This covers the rest." in capsys.readouterr().out


def test_a_job_is_asked_as_a_profile_is(folder: Path) -> None:
    """What both answer is written once, and a job lacks nothing of it."""
    own = {name for name in vars(Profile).keys() & vars(Job) if not name.startswith(("__", "_abc"))}
    assert own == {"_document", "_named", "diagnosis", "document", "run", "side", "whole"}
    job = stepscope.open(folder)
    assert isinstance(job, Job)
    changed = job.compare(job)
    assert changed.before.world_size == changed.after.world_size == job.facts.world_size
    assert repr(job).startswith(f"<Job of {len(job.ranks)} ranks")
