"""Outputs appear whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.writers.replacing import replacing


def test_a_file_appears_once_it_is_whole(tmp_path):
    target = tmp_path / "out"
    target.write_text("old")
    with replacing(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("folder", [False, True])
def test_what_failed_leaves_nothing_behind(tmp_path, folder):
    target = tmp_path / "out"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        _write_and_stop(target, folder)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def _write_and_stop(target: Path, folder: bool) -> None:
    with replacing(target) as part:
        if folder:
            part.mkdir()
        (part / "x" if folder else part).write_text("new")
        raise KeyboardInterrupt


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError) as error, replacing(tmp_path / "missing" / "out"):
        pass
    assert error.value.filename == str(tmp_path / "missing" / "out")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as error, replacing(tmp_path / "folder") as part:
        part.write_text("new")
    assert error.value.filename == str(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
