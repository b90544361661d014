"""Outputs appear whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from stepscope.replacing import replacing, write_text


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


def test_a_report_goes_where_a_link_points_and_into_a_pipe(tmp_path):
    target, link, pipe = tmp_path / "report.txt", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    write_text(link, "text")
    assert link.is_symlink()
    assert target.read_text() == "text"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_report_that_the_disk_has_no_room_for_leaves_the_old_one(tmp_path, monkeypatch):
    target = tmp_path / "report.txt"
    target.write_text("old")

    def full(self: Path, *_args: object, **_kwargs: object) -> None:
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_text(target, "new")
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_link_left_where_the_output_goes_leads_nowhere(tmp_path):
    """In a folder that others can write: names beside the output that can be foreseen are theirs to take."""
    target, theirs = tmp_path / "out.json", tmp_path / "theirs"
    theirs.write_text("kept")
    (tmp_path / f".out.json.{os.getpid()}.part").symlink_to(theirs)
    with replacing(target) as part:
        assert part.parent.stat().st_mode & 0o777 == 0o700
        part.write_text("new")
    assert (target.read_text(), theirs.read_text()) == ("new", "kept")


def test_the_longest_name_that_a_file_can_have(tmp_path):
    target = tmp_path / ("x" * 255)
    write_text(target, "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_threads_that_write_one_output_do_not_meet(tmp_path):
    target = tmp_path / "out.json"
    with replacing(target) as first, replacing(target) as second:
        first.write_text("first")
        second.write_text("second")
    assert target.read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]


def test_what_polars_says_of_a_full_disk_keeps_its_number(tmp_path):
    with pytest.raises(OSError, match="No space left") as error, replacing(tmp_path / "out"):
        raise OSError("No space left on device (os error 28)")
    assert (error.value.errno, error.value.filename) == (errno.ENOSPC, str(tmp_path / "out"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_a_device_that_takes_nothing_is_named():
    with pytest.raises(OSError, match="No space left") as error:
        write_text(Path("/dev/full"), "text")
    assert error.value.filename == "/dev/full"
