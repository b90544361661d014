"""Processes that stepscope starts do not stand where the user does; what the user said from there means the same."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

import stepscope
from stepscope import pipeline
from stepscope.capture import results
from stepscope.cluster import dask, pool
from stepscope.cluster.job import Failed
from stepscope.cluster.partial import Partial
from stepscope.cluster.pool import Read, Task
from stepscope.errors import InputError
from stepscope.formats.chrome.scan import lazy
from stepscope.inputs import source as sources
from stepscope.inputs.joined import Joined
from stepscope.inputs.source import Source
from stepscope.interpreter import OWN_FOLDER, own_environment
from tests.kit import example_ranks
from tests.kit.some import some

Reading = Callable[[Sequence[Task]], Iterable[Read]]


def stands(source: Source) -> Partial | Failed:
    """What a worker tells of where it stands, and of what it is given."""
    return Failed(str(source.path), json.dumps([os.getcwd(), str(source.place), os.environ["STEPSCOPE_CACHE"]]))


def in_pool(tasks: Sequence[Task]) -> Iterable[Read]:
    return pool.read_all(tasks, f"{__name__}:stands", stands, 2)


def on_dask(tasks: Sequence[Task]) -> Iterable[Read]:
    pytest.importorskip("distributed")
    return dask.read_all(tasks, stands, dask.LOCAL, 2)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that this process stands in, with ranks in a folder of it."""
    shutil.copytree(example_ranks.FOLDER, tmp_path / "here" / "ranks")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("reading", some([in_pool, on_dask], 1))
def test_workers_stand_in_no_folder_of_the_user(reading: Reading, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "kept/code")
    names = [f"ranks/rank{rank}.json.gz" for rank in range(4)]
    reads = list(reading([Task(rank, Source(name)) for rank, name in enumerate(names)]))
    assert len(reads) == len(names)
    for task, found, _ in reads:
        assert isinstance(found, Failed)
        assert found.path == names[task.rank]
        assert json.loads(found.reason) == [OWN_FOLDER, str(here / names[task.rank]), str(here / "kept" / "code")]


def test_a_job_is_the_same_from_workers_and_in_the_users_words(here: Path) -> None:
    """One rank's file says what it was recorded with in a manifest beside it."""
    facts = {"schema": results.SCHEMA, "files": [{"path": "rank1.json.gz"}], "framework": "torch"}
    (here / "ranks" / f"one{results.ENDING}").write_text(json.dumps(facts | {"framework_version": "2.7.1"}))
    apart, alone = (stepscope.open("ranks", workers=workers).document() for workers in (2, 1))
    assert apart == alone
    assert [file["path"] for file in apart["profile"]["files"]] == [f"ranks/rank{rank}.json.gz" for rank in range(4)]


def test_what_lies_beside_is_found_from_elsewhere(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"schema": results.SCHEMA, "files": [{"path": "rank1.json.gz"}], "framework": "torch"}
    (here / "ranks" / f"one{results.ENDING}").write_text(json.dumps(facts | {"framework_version": "2.7.1"}))
    for step in (1, 2):
        shutil.copy("ranks/rank0.json.gz", f"ranks/run_{step}")
    source, joined = Source("ranks/rank1.json.gz"), Joined([Source(f"ranks/run_{step}") for step in (1, 2)])
    monkeypatch.chdir(tmp_path)
    profile = pipeline.read(source)
    assert profile.trace.info.framework_oldest == (2, 7)
    assert profile.document()["profile"]["files"][0]["path"] == "ranks/rank1.json.gz"
    assert (str(joined.path), joined.place) == ("ranks/run_*", here / "ranks" / "run_*")


def test_errors_name_a_file_as_the_user_did(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "one.json").write_bytes(b"[]")
    source = Source("one.json")

    def fails(*_: object) -> int:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sources, "_read_at", fails)
    with pytest.raises(InputError, match=r"^one\.json: cannot be read: input/output error$"):
        lazy.read_arguments(source, [0])


def test_places_said_from_here_are_said_from_the_root_to_others(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", "aws.ini")
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    monkeypatch.delenv("DASK_CONFIG", raising=False)
    given = own_environment()
    assert (given["AWS_CONFIG_FILE"], given["TMPDIR"]) == (str(here / "aws.ini"), "/var/tmp")
    assert "DASK_CONFIG" not in given
