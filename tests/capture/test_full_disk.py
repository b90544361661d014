"""What a disk without room leaves of a recording: the true reason, and no file cut short."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.capture import backend, files, torch_lines
from stepscope.capture.manifest import Manifest
from stepscope.capture.results import Recording
from stepscope.cli import recorded

resource: Any = pytest.importorskip("resource", reason="limits of POSIX")


@pytest.mark.parametrize("cut", [b"", b'{"traceEvents": [{"ph": "X", "na'])
@pytest.mark.parametrize("free", [0, 1 << 40])
def test_a_profile_that_kineto_could_not_write_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: bytes, free: int
) -> None:
    """It writes beside, logs what the disk says, and renames nothing."""
    (tmp_path / ".p.part.json.tmp").write_bytes(cut)
    (tmp_path / "other").write_bytes(b"")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    with pytest.raises(OSError, match="did not write its file whole" if free else "No space left") as error:
        backend.whole(str(tmp_path / ".p.part.json"))
    assert error.value.errno == (errno.EIO if free else errno.ENOSPC)
    assert os.listdir(tmp_path) == ["other"]


@pytest.mark.parametrize("end", [b"}", b"]}\n", b"}\n}\n"])
def test_a_whole_one_is_left_alone(tmp_path: Path, end: bytes) -> None:
    part = tmp_path / ".p.part.json"
    part.write_bytes(b'{"traceEvents": []' + end)
    backend.whole(str(part))
    assert part.exists()


def test_where_there_is_no_room_to_compress_a_profile_it_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / ".part"
    part.write_bytes(b"{}")

    def full(path: str, *_: Any, **__: Any) -> Any:
        Path(path).touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(gzip, "open", full)
    path = Path(backend.placed(str(part), str(tmp_path), ".pt.trace.json.gz", 100, compress=True))
    assert path.name.endswith(".pt.trace.json")
    assert path.read_bytes() == b"{}"
    assert list(tmp_path.iterdir()) == [path]


def test_a_manifest_stays_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = Manifest(str(tmp_path))
    path = Path(manifest.write(None))
    before = path.read_text()
    monkeypatch.setattr(os, "replace", _full)
    with pytest.raises(OSError, match="No space left"):
        manifest.write(None)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def _full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_as_long_as_the_limit_allows_was_cut_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".p.part.json.tmp").write_bytes(b'{"traceEvents": [' + b" " * 100)
    monkeypatch.setattr(backend, "_longest", lambda: 100)
    with pytest.raises(OSError, match="File too large") as error:
        backend.whole(str(tmp_path / ".p.part.json"))
    assert error.value.errno == errno.EFBIG
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("room", [0, 1, 20])
def test_lines_that_a_limit_takes_a_part_of_leave_the_profile_as_it_was(tmp_path: Path, room: int) -> None:
    path, text = tmp_path / "p.json", '{"traceEvents": [], "name": "' + "n" * 300 + '"}'
    path.write_text(text)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(text) + room, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            torch_lines._append(str(path), "lines", list(range(200)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert json.loads(path.read_text()) == json.loads(text)


def test_what_cannot_be_written_whole_is_gone_and_named(tmp_path: Path) -> None:
    path = tmp_path / "answer.part"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as error:
            files.written(str(path), bytes(65))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.value.filename == str(path)
    assert not os.listdir(tmp_path)


def test_what_cannot_be_renamed_is_gone(tmp_path: Path) -> None:
    part = tmp_path / ".part"
    part.write_bytes(b"{}")
    with pytest.raises(OSError, match="No such file"):
        files.moved(str(part), str(tmp_path / "gone" / "p.json"))
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(("free", "said"), [(4_096, "the disk is full"), (1 << 40, "the process ended without notice")])
def test_a_process_that_could_not_say_what_became_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, said: str
) -> None:
    monkeypatch.setattr(recorded, "disk_usage", lambda _: SimpleNamespace(free=free))
    of = Recording(tmp_path / "x.stepscope.json", {"phase": "recording"}, ())
    assert recorded._why_none(of, 0).startswith(said)
