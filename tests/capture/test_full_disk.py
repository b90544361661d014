"""What a disk without room leaves of a recording: the true reason, and no file cut short."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.capture import backend
from stepscope.capture.manifest import Manifest


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


@pytest.mark.parametrize("end", [b"}", b"]}\n", b'}\n}\n'])
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
