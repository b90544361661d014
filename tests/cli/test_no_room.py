"""What every command leaves where a file cannot be written: the old one, no part of a new one, and a sentence."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stepscope import cli
from tests.cli.profiles import write_profile

resource: Any = pytest.importorskip("resource", reason="limits of POSIX")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and mounts are Linux's")

WRITING = {
    "diagnose.txt": ("diagnose", "IN", "-o", "OUT"),
    "diagnose.json": ("diagnose", "IN", "-o", "OUT"),
    "diagnose.md": ("diagnose", "IN", "-o", "OUT"),
    "diagnose.html": ("diagnose", "IN", "-o", "OUT"),
    "compare.html": ("compare", "IN", "IN", "-o", "OUT"),
    "query.csv": ("query", "IN", "select * from slices", "-o", "OUT"),
    "query.json": ("query", "IN", "select * from slices", "-o", "OUT"),
    "convert.json": ("convert", "IN", "OUT"),
    "convert.json.gz": ("convert", "IN", "OUT"),
    "convert.stepscope": ("convert", "IN", "OUT"),
    "convert.xplane.pb": ("convert", "IN", "OUT"),
    "convert": ("convert", "IN", "OUT"),
    "slice.json": ("slice", "IN", "OUT", "--steps", "4:6"),
    "slice.stepscope": ("slice", "IN", "OUT", "--steps", "4:6"),
}
"""By the output's name, which says the format."""
_LEAST = 256
"""Bytes that no output is shorter than."""


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps what it could write of a compiled module under a limit, which no later process can read."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def run(out: Path, profile: Path) -> int:
    given = {"IN": str(profile), "OUT": str(out)}
    return cli.main([given.get(word, word) for word in WRITING[out.name]])


@contextmanager
def limited() -> Iterator[None]:
    """No file may be longer than a few hundred bytes; Python ignores SIGXFSZ."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LEAST, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def mounted(folder: Path, options: str, flags: int = 0) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, options.encode()):
        pytest.skip(f"no file system can be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield
    finally:
        libc.umount2(os.fsencode(folder), 2)


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_profile(tmp_path / "profile.json")


def assert_told(said: str, out: Path, number: int) -> None:
    assert said.splitlines()[-1] == f"stepscope: {out}: {os.strerror(number)}"


@pytest.mark.parametrize("name", WRITING)
def test_a_limit_of_file_sizes(name, profile, tmp_path, capsys):
    out = tmp_path / "out" / name
    out.parent.mkdir()
    with limited():
        assert run(out, profile) == 1
    assert_told(capsys.readouterr().err, out, errno.EFBIG)
    assert not any(out.parent.iterdir())


@pytest.mark.parametrize("name", WRITING)
def test_a_full_disk(name, profile, tmp_path, capsys):
    out = tmp_path / "out" / name
    out.parent.mkdir()
    with mounted(out.parent, "size=4k,nr_inodes=8"):
        (out.parent / "other").write_bytes(bytes(4096))
        assert run(out, profile) == 1
        assert [path.name for path in out.parent.iterdir()] == ["other"]
    assert_told(capsys.readouterr().err, out, errno.ENOSPC)


@pytest.mark.parametrize("name", WRITING)
def test_a_disk_that_is_read_only(name, profile, tmp_path, capsys):
    out = tmp_path / "out" / name
    out.parent.mkdir()
    with mounted(out.parent, "size=4k", flags=1):
        assert run(out, profile) == 1
        assert not any(out.parent.iterdir())
    assert_told(capsys.readouterr().err, out, errno.EROFS)


@pytest.mark.parametrize("name", ["diagnose.json", "convert.json", "query.csv"])
def test_a_quota_keeps_the_old_file(name, profile, tmp_path, capsys, monkeypatch):
    out = tmp_path / name
    assert run(out, profile) == 0
    before = out.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(os, "replace", refuse)
    given = ["--force"] if name.startswith("convert") else []
    words = {"IN": str(profile), "OUT": str(out)}
    assert cli.main([words.get(word, word) for word in (*WRITING[name], *given)]) == 1
    assert_told(capsys.readouterr().err, out, errno.EDQUOT)
    assert out.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"profile.json", name}


def shell(words: list[str], **streams: Path) -> subprocess.CompletedProcess[str]:
    handles = {name: path.open("w") for name, path in streams.items()}
    try:
        return subprocess.run(
            [sys.executable, "-m", "stepscope", *words], text=True, check=False,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **handles},
        )  # fmt: skip
    finally:
        for handle in handles.values():
            handle.close()


@pytest.mark.parametrize(
    "words",
    [
        ["diagnose"],
        pytest.param(["diagnose", "--format", "json"], marks=pytest.mark.slow),
        pytest.param(["query", "--tables"], marks=pytest.mark.slow),
    ],
)
def test_a_standard_output_that_is_full(words, profile):
    done = shell([words[0], str(profile), *words[1:]], stdout=Path("/dev/full"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "stepscope: standard output: No space left on device"
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize(
    ("words", "status"),
    [(["diagnose", "IN"], 0), pytest.param(["diagnose", "missing"], 1, marks=pytest.mark.slow), (["no"], 2)],
)
def test_a_standard_error_that_is_full_leaves_the_status(words, status, profile):
    done = shell([str(profile) if word == "IN" else word for word in words], stderr=Path("/dev/full"))
    assert done.returncode == status
    assert bool(done.stdout) == (status == 0)


@pytest.mark.slow
def test_kernels_that_no_file_can_hold_are_compiled_all_the_same(profile, tmp_path):
    """A quota of the home folder, or none in a container."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64));"
        "from stepscope.cli import main; sys.exit(main(['query', sys.argv[1], '--tables']))"
    )
    environment = {**os.environ, "STEPSCOPE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(profile)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "slices" in done.stdout
    assert not [path for path in (tmp_path / "cache").rglob("*.nb*") if not path.stat().st_size]
