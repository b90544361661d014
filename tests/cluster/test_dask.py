"""The ranks of a job read by the workers of a Dask cluster, and from where fsspec finds them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope import cli, pipeline
from stepscope.cluster import dask
from stepscope.cluster.job import Failed
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import Task
from stepscope.cluster.ranks import ranks_of
from stepscope.errors import Exit, InputError
from stepscope.formats.find import MOST_RANKS, find
from stepscope.inputs.remote import Shard, shards
from stepscope.inputs.source import Source
from stepscope.jobs import Job, read_job
from tests.kit import example_ranks

distributed = pytest.importorskip("distributed")
config = pytest.importorskip("dask.config")
fsspec = pytest.importorskip("fsspec")

# Its event loops and sockets are closed when the interpreter gets to it.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scheduler with two workers that import the tests as this process does."""
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, sys.path)])
    with (
        config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
            env={"PYTHONPATH": path},
        ) as made,
    ):
        yield made.scheduler_address


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    job = stepscope.open(example_ranks.FOLDER)
    assert isinstance(job, Job)
    return job.document()


@pytest.fixture
def copies(tmp_path: Path) -> Path:
    folder = tmp_path / "ranks"
    folder.mkdir()
    for path in example_ranks.FOLDER.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def test_workers_find_what_this_process_does(address: str, expected: dict[str, Any]) -> None:
    seen: list[tuple[str, int, int]] = []
    job = stepscope.open(example_ranks.FOLDER, scheduler=address, progress=lambda *told: seen.append(told))
    assert job.document() == expected
    assert seen == [("ranks", done, 4) for done in range(1, 5)]


def test_a_corrupt_shard_costs_itself_alone_and_is_named(address: str, copies: Path) -> None:
    (copies / "rank2.json.gz").write_bytes(b'{"traceEvents": [\x00\x00')
    job = stepscope.open(copies.as_uri(), scheduler=address)
    assert isinstance(job, Job)
    assert job.ranks == [0, 1, 3]
    assert job.exit_status is Exit.PARTIAL
    told = next(notice.text for notice in job.notices if notice.code == "rank_unreadable")
    assert f"{copies.as_uri()}/rank2.json.gz" in told
    assert "stepscope-" not in told


def dies(source: Source) -> Any:
    if source.path.name == "rank1.json":
        os._exit(1)
    return source.path.name


def fails(source: Source) -> Any:
    raise MemoryError(f"too large: {source.path.name}")


def tasks(tmp_path: Path, count: int) -> list[Task]:
    for rank in range(count):
        (tmp_path / f"rank{rank}.json").write_bytes(b"{}")
    return [Task(rank, Source(tmp_path / f"rank{rank}.json")) for rank in range(count)]


def read(tmp_path: Path, reduce: Callable[[Source], Any], scheduler: str) -> dict[int, Any]:
    """What becomes of five ranks."""
    return {one.task.rank: one.outcome for one in dask.read_all(tasks(tmp_path, 5), reduce, scheduler)}


def reads_the_second_time(source: Source) -> Partial | Failed:
    """A worker that is killed the first time it reads a rank."""
    marker = source.path.with_suffix(".tried")
    if source.path.name.startswith("rank1.") and not marker.exists():
        marker.write_text("")
        os.kill(os.getpid(), signal.SIGKILL)
    return pipeline.reduce_rank(source)


@pytest.mark.slow
def test_a_killed_worker_costs_a_retry_and_is_named(
    address: str, copies: Path, expected: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "DASK_BATCH_BYTES", (1, 1))
    ranks = ranks_of(find(str(copies)).sources)
    assert ranks is not None
    job = read_job(ranks, "", reads_the_second_time, scheduler=address)
    assert len(list(copies.glob("*.tried"))) == 1
    assert 1 in job.facts.again
    assert job.document()["analyses"]["ranks"]["stragglers"] == expected["analyses"]["ranks"]["stragglers"]
    assert job.exit_status is Exit.OK


@pytest.mark.slow
def test_a_rank_that_kills_every_worker_is_named_and_the_others_are_read(address: str, tmp_path: Path) -> None:
    found = read(tmp_path, dies, address)
    lost = found.pop(1)
    assert isinstance(lost, Failed)
    assert lost.path == str(tmp_path / "rank1.json")
    assert lost.reason.startswith("each worker that read it died")
    assert {rank: str(got) for rank, got in found.items()} == {rank: f"rank{rank}.json" for rank in (0, 2, 3, 4)}


class KilledWorker(Exception):
    """Named as Dask's."""


class FakeFuture:
    def __init__(self, key: str, value: Any, error: Exception | None = None) -> None:
        self.key, self.value, self.error = key, value, error

    def add_done_callback(self, call: Callable[[FakeFuture], None]) -> None:
        call(self)

    def cancelled(self) -> bool:
        return False

    def exception(self) -> Exception | None:
        return self.error

    def release(self) -> None:
        pass


class FakeClient:
    """Loses everything that is sent together with rank 1."""

    def subscribe_topic(self, topic: str, handler: Callable[[tuple[float, Any]], None]) -> None:
        self.tell = handler

    def unsubscribe_topic(self, topic: str) -> None:
        pass

    def nthreads(self) -> dict[str, int]:
        return {"one": 1}

    def map(self, call: Any, batches: list[list[Source]], pure: bool) -> list[FakeFuture]:
        killed = any(source.path.name == "rank1.json" for batch in batches for source in batch)
        error = KilledWorker() if killed else None
        values = [None if killed else [source.path.name for source in batch] for batch in batches]
        return [FakeFuture("all", value, error) for value in values]

    def gather(self, futures: dict[int, FakeFuture], errors: str) -> dict[int, Any]:
        return {at: future.value for at, future in futures.items()}


def test_what_a_lost_worker_took_with_it_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "_client", lambda *_: FakeClient())
    monkeypatch.setattr(dask, "DASK_BATCH_BYTES", (5, 5))
    found = read(tmp_path, dies, "local")
    assert isinstance(found[1], Failed)
    assert [str(found[rank]) for rank in (0, 2, 3, 4)] == [f"rank{rank}.json" for rank in (0, 2, 3, 4)]


class LosesWorkers(FakeClient):
    """Workers die at two tasks, and another client's at others; each is read all the same."""

    def map(self, call: Any, batches: list[list[Source]], pure: bool) -> list[FakeFuture]:
        self.tell((0.0, {"action": "remove-worker", "processing-tasks": {"task1"}, "lost-computed-tasks": {"task3"}}))
        self.tell((0.0, {"action": "remove-worker", "processing-tasks": {"another's"}}))
        self.tell((0.0, {"action": "add-worker", "worker": "task0"}))
        self.tell((0.0, "task2"))
        return [FakeFuture(f"task{at}", call(batch)) for at, batch in enumerate(batches)]


def test_ranks_that_were_read_again_are_named(copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "_client", lambda *_: LosesWorkers())
    monkeypatch.setattr(dask, "DASK_BATCH_BYTES", (1, 1))
    job = stepscope.open(copies, scheduler="local")
    assert isinstance(job, Job)
    told = next(notice for notice in job.notices if notice.code == "rank_read_again")
    assert told.text == "Ranks 1, 3 had to be read again, as a worker that had them was lost or failed."
    assert job.exit_status is Exit.OK


def test_large_profiles_are_tasks_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "DASK_BATCH_BYTES", (5, 5))
    made = tasks(tmp_path, 5)
    (tmp_path / "rank2.json").write_bytes(b"0123456789")
    made[2] = Task(2, Source(tmp_path / "rank2.json"))
    assert [[task.rank for task in batch] for batch in dask._batches(made, 2)] == [[0, 1], [2], [3, 4]]


def test_tasks_grow_with_the_job_as_long_as_every_thread_has_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "DASK_BATCH_BYTES", (4, 8))
    made = tasks(tmp_path, 64)  # of 2 bytes each
    sizes = {threads: {2 * len(batch) for batch in dask._batches(made, threads)} for threads in (0, 1, 4, 1000)}
    assert sizes == {0: {4}, 1: {8}, 4: {4}, 1000: {4}}
    monkeypatch.setattr(dask, "DASK_BATCH_BYTES", (4, 1000))
    assert {2 * len(batch) for batch in dask._batches(made, 2)} == {2 * 64 // (2 * dask.DASK_TASKS)}


def test_a_scheduler_that_goes_away_is_named(tmp_path: Path) -> None:
    class Gone:
        def cancelled(self) -> bool:
            return True

    with pytest.raises(InputError, match="tcp://here: the scheduler has gone away"):
        dask._failed("tcp://here", Gone(), tasks(tmp_path, 1)[0])


@pytest.mark.slow
def test_the_command_asks_a_scheduler(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--scheduler", address]) == 0
    assert "wait for rank 2" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_script_needs_no_guard_around_its_main_part(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    path = str(example_ranks.FOLDER)
    script.write_text(f"import stepscope\nprint(stepscope.open({path!r}, scheduler='local').verdict)\n")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "wait for rank 2" in ran.stdout


def test_a_rank_that_a_worker_fails_at_is_named(address: str, tmp_path: Path) -> None:
    [one] = dask.read_all(tasks(tmp_path, 1), fails, address)
    assert one.outcome == Failed(str(tmp_path / "rank0.json"), "its worker failed: MemoryError: too large: rank0.json")


@pytest.mark.slow
def test_the_command_makes_a_cluster_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--scheduler", "local"]) == 0
    assert "wait for rank 2" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_cluster_here_seldom_looks_at_itself_and_keeps_the_memory_it_works_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)  # Dask's nannies of other tests set it in this process.

    def asked() -> tuple[Any, str | None]:
        from dask import config

        return config.get("distributed.admin.tick.interval"), os.environ.get("MALLOC_TRIM_THRESHOLD_")

    with dask._local(1) as local, distributed.Client(dask._address(local)) as client:
        client.wait_for_workers(1, timeout=60)
        assert [*client.run(asked).values(), client.run_on_scheduler(asked)[:1]] == [("500ms", None), ("500ms",)]


@pytest.mark.parametrize(("scheduler", "status", "words"), [
    ("nowhere", 2, "give 'local' or tcp://HOST:PORT"),
    ("tcp://127.0.0.1:9", 1, "no Dask scheduler answers there"),
])  # fmt: skip
def test_no_scheduler(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, scheduler: str, status: int, words: str
) -> None:
    monkeypatch.setattr(dask, "_CONNECT_S", 1)
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--scheduler", scheduler]) == status
    assert words in capsys.readouterr().err


def test_without_dask_a_sentence_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--scheduler", "local"]) == 2
    assert "pip install dask distributed" in capsys.readouterr().err


def test_a_scheduler_reads_jobs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(example_ranks.FOLDER / "rank0.json.gz")
    assert cli.main(["diagnose", path, "--scheduler", "local"]) == 2
    assert "reads the ranks of a job" in capsys.readouterr().err


# --- fsspec ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def memory() -> Iterator[str]:
    """The example's ranks in a file system that only this process has."""
    fs = fsspec.filesystem("memory")
    for path in example_ranks.FOLDER.iterdir():
        fs.pipe(f"/run7/{path.name}", path.read_bytes())
    fs.pipe("/run7/notes.txt", b"nothing")
    yield "memory://run7"
    fs.rm("/run7", recursive=True)


@pytest.mark.parametrize("below", ["", "/", "/rank*.json.gz"])
def test_a_folder_or_pattern_elsewhere_is_one_job(memory: str, below: str, expected: dict[str, Any]) -> None:
    job = stepscope.open(memory + below)
    assert isinstance(job, Job)
    document = job.document()
    assert document["analyses"]["ranks"]["stragglers"] == expected["analyses"]["ranks"]["stragglers"]
    assert job.sources[2].path.name == "rank2.json.gz"
    assert str(job.sources[2].path) == "memory://run7/rank2.json.gz"


def test_one_profile_elsewhere(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", f"{memory}/rank2.json.gz"]) == 0
    assert capsys.readouterr().out.startswith("rank2.json.gz")


def test_nothing_stays_of_what_was_fetched(memory: str) -> None:
    [shard], more = shards(f"{memory}/rank0.json.gz", 10)
    assert not more
    with shard.here() as here:
        assert here.path.read_bytes() == (example_ranks.FOLDER / "rank0.json.gz").read_bytes()
    assert not here.path.parent.exists()


def test_a_shard_that_is_too_large_is_refused(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.inputs.remote.SHARD_BYTES", 100)
    found = pipeline.reduce_rank(Shard(f"{memory}/rank0.json.gz", None))
    assert isinstance(found, Failed)
    assert found.reason.startswith("is larger than")


@pytest.mark.parametrize(("url", "words"), [
    ("memory://run8", "there is no such file, and no folder with files in it"),
    ("nothing://run7", "cannot be opened"),
    ("memory://run7/notes*", "is not a"),
])  # fmt: skip
def test_urls_that_lead_nowhere(memory: str, url: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diagnose", url]) == 1
    err = capsys.readouterr().err
    assert url.rstrip("*") in err
    assert "Traceback" not in err


def test_processes_read_shards(copies: Path) -> None:
    ranks = ranks_of(find(copies.as_uri(), MOST_RANKS).sources)
    assert ranks is not None
    assert sorted(ranks.sources) == [0, 1, 2, 3]
    job = pipeline.read_ranks(ranks)
    assert job.ranks == [0, 1, 2, 3]


def test_without_fsspec_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match="pip install fsspec"):
        stepscope.open("s3://bucket/run7")
