"""Files as they come: plain or gzip, whole or damaged, and paths that are no file."""

from __future__ import annotations

import gzip
import os
import random
import zlib
from pathlib import Path

import pytest

from stepscope.errors import InputError
from stepscope.inputs import inflate
from stepscope.inputs.source import Source
from tests.kit.sources import chunks, read_all

TEXT = random.Random(5).randbytes(3000) + b"".join(b'{"ph":"X","ts":%d},\n' % number for number in range(60_000))


def write(folder: Path, data: bytes, name: str = "trace") -> Source:
    path = folder / name
    path.write_bytes(data)
    return Source(path)


def test_the_container_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    plain, packed = write(tmp_path, b"[]", "a.json.gz"), write(tmp_path, gzip.compress(b"[]"), "b.json")
    assert (plain.container, packed.container) == ("plain", "gzip")
    assert plain.head(10) == packed.head(10) == b"[]"


def test_chunks_and_head(tmp_path: Path, engine: str) -> None:
    for source in (write(tmp_path, TEXT, "plain"), write(tmp_path, gzip.compress(TEXT), "packed")):
        pieces = list(chunks(source, 100_000))
        assert b"".join(pieces) == TEXT
        assert max(map(len, pieces)) <= 100_000
        assert source.head(7) == TEXT[:7]
        assert source.head(10**7) == TEXT


def test_members_and_padding_are_one_text(tmp_path: Path, engine: str) -> None:
    parts = [TEXT[:1000], b"", TEXT[1000:50_000], TEXT[50_000:]]
    packed = b"".join(map(gzip.compress, parts)) + bytes(600)
    assert read_all(write(tmp_path, packed)) == (TEXT, None)


@pytest.mark.parametrize("cut", [3, 12, 18, 700, 5000, 40_000, -1, -4, -8, -9, -20])
def test_a_cut_gzip_gives_all_that_zlib_can_give(tmp_path: Path, engine: str, cut: int) -> None:
    packed = gzip.compress(TEXT)[:cut]
    data, fault = read_all(write(tmp_path, packed))
    best = zlib.decompressobj(31).decompress(packed)
    assert data == best
    assert fault is not None
    assert (fault.code, fault.offset, fault.lost_bytes) == ("gzip_truncated", len(best), 0)


@pytest.mark.parametrize("place", [200, 3500, 20_000, 60_000])
def test_corrupt_gzip_gives_what_precedes_the_fault(tmp_path: Path, engine: str, place: int) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[place : place + 40] = bytes(byte ^ 0x5A for byte in packed[place : place + 40])
    data, fault = read_all(write(tmp_path, bytes(packed)))
    assert fault is not None
    assert fault.code in ("gzip_corrupt", "gzip_truncated")  # garbage may decompress until the file ends
    assert fault.offset == len(data)
    sound = zlib.decompressobj(31).decompress(bytes(packed[:place]))
    assert data[: len(sound)] == sound
    assert fault.lost_bytes <= len(packed) - place + 64


def test_a_wrong_checksum_loses_nothing_but_is_said(tmp_path: Path, engine: str) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[-6] ^= 1
    data, fault = read_all(write(tmp_path, bytes(packed)))
    assert fault is not None
    assert fault.code == "gzip_corrupt"
    assert TEXT.startswith(data)
    assert len(data) >= len(TEXT) - 1


def test_bytes_behind_the_gzip_are_reported(tmp_path: Path, engine: str) -> None:
    data, fault = read_all(write(tmp_path, gzip.compress(TEXT) + b"garbage"))
    assert data == TEXT
    assert fault is not None
    assert (fault.code, fault.lost_bytes) == ("gzip_trailing", 7)


def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflate, "BOMB_BYTES", 1 << 20)
    source = write(tmp_path, gzip.compress(bytes(4 << 20)))
    blocks = chunks(source, 1 << 16)
    assert sum(len(next(blocks)) for _ in range(16)) == 1 << 20
    with pytest.raises(InputError, match="expands more than 200 times"):
        next(blocks)


def test_a_dense_but_small_file_is_no_bomb(tmp_path: Path, engine: str) -> None:
    assert read_all(write(tmp_path, gzip.compress(bytes(1 << 20))))[0] == bytes(1 << 20)


def test_a_file_cut_off_while_it_is_used_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "rewritten"
    path.write_bytes(TEXT)
    source = Source(path)
    data, _ = source.data()
    os.truncate(path, 100)
    assert data.tobytes() == TEXT
    assert source.data()[0].tobytes() == TEXT[:100]
    os.truncate(path, 0)
    with pytest.raises(InputError, match="became empty"):
        source.data(mapped=True)
    path.unlink()
    for mapped in (True, False):
        with pytest.raises(InputError, match="no such file"):
            source.data(mapped=mapped)


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("missing", "no such file"),
        ("folder", "is a directory"),
        ("empty", "is empty"),
        ("pipe", "not a regular file"),
        ("nul\0byte", "cannot be opened"),
        ("x" * 300, "cannot be opened"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            Source(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read every file")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"[]")
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be opened: permission denied"):
        Source(path)
