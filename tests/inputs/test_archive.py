"""Profiles in zip archives: one file or several, gzip inside, cut, corrupt, encrypted, made to explode."""

from __future__ import annotations

import gzip
import io
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import InputError
from stepscope.formats.find import find
from stepscope.inputs import archive, inflate
from stepscope.inputs.source import Source
from tests.kit.sources import chunks, read_all

TEXT = random.Random(5).randbytes(3000) + b"".join(b'{"ph":"X","ts":%d},\n' % number for number in range(20_000))
Files = dict[str, bytes]


def zipped(files: Files, method: int = zipfile.ZIP_DEFLATED, *, streamed: bool = False, zip64: bool = False) -> bytes:
    """An archive; ``streamed`` puts sizes behind the data."""
    held = io.BytesIO()
    target = Unseekable(held) if streamed else held
    with zipfile.ZipFile(target, "w", method) as writer:  # type: ignore[call-overload]
        for name, data in files.items():
            with writer.open(name, "w", force_zip64=zip64) as member:
                member.write(data)
    return held.getvalue()


class Unseekable(io.RawIOBase):
    def __init__(self, target: io.BytesIO) -> None:
        self._target = target

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return self._target.write(data)  # type: ignore[arg-type]


def write(folder: Path, data: bytes) -> Path:
    path = folder / "trace.zip"
    path.write_bytes(data)
    return path


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "stored": lambda text: zipped({"a.json": text}, zipfile.ZIP_STORED),
    "deflated": lambda text: zipped({"a.json": text}),
    "streamed": lambda text: zipped({"a.json": text}, streamed=True),
    "zip64": lambda text: zipped({"a.json": text}, zip64=True),
    "gzip stored": lambda text: zipped({"a.json": gzip.compress(text)}, zipfile.ZIP_STORED),
    "gzip deflated": lambda text: zipped({"a.json": gzip.compress(text)}),
    "beside hidden ones": lambda text: zipped(
        {"run/": b"", "run/a.json": text, "__MACOSX/run/._a.json": b"junk", ".DS_Store": b"junk"}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_one_file_of_an_archive_is_read_whatever_its_name(tmp_path: Path, engine: str, form: str) -> None:
    source = Source(write(tmp_path, FORMS[form](TEXT)))
    assert source.container == "zip"
    assert source.path == tmp_path / "trace.zip" / ("run/a.json" if "hidden" in form else "a.json")
    assert read_all(source) == (TEXT, None)
    assert source.head(7) == TEXT[:7]
    pieces = list(chunks(source, 100_000))
    assert b"".join(pieces) == TEXT
    assert max(map(len, pieces)) <= 100_000
    content, fault = source.data()
    assert content.tobytes() == TEXT
    assert fault is None
    assert not content.flags.writeable


def test_progress_counts_compressed_bytes_up_to_the_size(tmp_path: Path) -> None:
    for form in ("stored", "deflated", "gzip stored", "gzip deflated"):
        source = Source(write(tmp_path, FORMS[form](TEXT)))
        with source.stream() as stream:
            seen = [stream.consumed]
            while stream.readinto(memoryview(bytearray(20_000))):
                seen.append(stream.consumed)
        assert seen == sorted(seen)
        assert seen[-1] == source.size < source.path.parent.stat().st_size


def test_members_are_chosen_by_their_entry_not_by_their_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as writer:
        writer.writestr("../a\x01.json", b"first")
        with pytest.warns(UserWarning, match="Duplicate name"):
            writer.writestr("../a\x01.json", b"second")
    members = archive.read(tmp_path / "a.zip").members
    assert [Source(tmp_path / "a.zip", member).head(9) for member in members] == [b"first", b"second"]
    assert str(Source(tmp_path / "a.zip", members[0]).path) == f"{tmp_path}/a.zip/../a\ufffd.json"


def test_a_name_is_one_line_and_never_ends_a_path(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as writer:
        writer.writestr("run", TEXT)
        writer.writestr("a\nb\x1b[2J\u2028[c].json", TEXT)
    held = (tmp_path / "a.zip").read_bytes().replace(b"run", b"r\0n")
    (tmp_path / "a.zip").write_bytes(held)
    names = [member.name for member in archive.read(tmp_path / "a.zip").members]
    assert names == ["r\ufffdn", "a\ufffdb\ufffd[2J\ufffd[c].json"]
    for name in names:
        assert find(f"{tmp_path}/a.zip/{name}").sources[0].member.name == name


def test_a_name_of_any_length_is_shown_in_short(tmp_path: Path) -> None:
    source = Source(write(tmp_path, zipped({"a" * 60_000 + "/trace.json": TEXT})))
    assert len(str(source.path)) < len(str(tmp_path)) + 300
    assert str(source.path).endswith("aaa/trace.json")
    assert source.head(5) == TEXT[:5]


def test_several_files_must_be_told_apart(tmp_path: Path) -> None:
    path = write(tmp_path, zipped({f"rank{rank}.json": TEXT for rank in range(5)}))
    with pytest.raises(InputError, match=r"archive of 5 files; .* \(rank0.json, rank1.json, rank2.json, …\)$"):
        Source(path)


@pytest.mark.parametrize("form", ["stored", "deflated", "streamed", "gzip deflated"])
def test_an_archive_cut_anywhere_gives_what_precedes_the_cut(tmp_path: Path, engine: str, form: str) -> None:
    text = TEXT[:6000]
    whole = FORMS[form](text)
    last = b""
    for cut in range(60, len(whole), 17):
        data, fault = read_all(Source(write(tmp_path, whole[:cut])))
        assert text.startswith(data)
        assert len(data) >= len(last)
        last = data
        assert fault is not None or data == text or form == "stored"  # a reader sees the cut as in a plain file
    assert last == text


def test_a_cut_archive_lists_the_files_before_the_cut(tmp_path: Path) -> None:
    whole = zipped({f"{number}.json": TEXT for number in range(4)})
    found = archive.read(write(tmp_path, whole[: len(whole) // 2]))
    assert found.cut
    assert [member.name for member in found.members] == ["0.json", "1.json", "2.json"][: len(found.members)]
    assert len(found.members) in (2, 3)
    assert not archive.read(write(tmp_path, whole)).cut


def test_corrupt_data_gives_what_precedes_the_fault(tmp_path: Path, engine: str) -> None:
    packed = bytearray(zipped({"a": TEXT}))
    packed[5000:5040] = bytes(byte ^ 0x5A for byte in packed[5000:5040])
    data, fault = read_all(Source(write(tmp_path, bytes(packed))))
    assert fault is not None
    assert fault.code == "zip_corrupt"
    assert fault.offset == len(data) >= 4000
    assert TEXT.startswith(data[:4000])


def test_a_wrong_checksum_loses_nothing_but_is_said(tmp_path: Path) -> None:
    packed = bytearray(zipped({"a": TEXT}))
    packed[packed.rindex(b"PK\x01\x02") + 16] ^= 1
    data, fault = read_all(Source(write(tmp_path, bytes(packed))))
    assert data == TEXT
    assert fault == inflate.Fault("zip_corrupt", len(TEXT), 0)


@pytest.mark.parametrize("form", ["deflated", "gzip stored", "gzip deflated"])
def test_a_bomb_is_refused_before_it_is_read(
    tmp_path: Path, engine: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inflate, "BOMB_BYTES", 1 << 20)
    source = Source(write(tmp_path, FORMS[form](bytes(16 << 20))))
    with pytest.raises(InputError, match=r"trace\.zip/a\.json: expands more than 200 times"):
        read_all_of_a_bomb(source)


def test_a_bomb_below_gzip_that_yields_nothing_is_refused(
    tmp_path: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zero bytes behind gzip data are padding: without a count of its own that level would be read for ever."""
    monkeypatch.setattr(inflate, "BOMB_BYTES", 1 << 20)
    source = Source(write(tmp_path, zipped({"a": gzip.compress(b"[]") + bytes(16 << 20)})))
    with pytest.raises(InputError, match="expands more than 200 times"):
        read_all_of_a_bomb(source)


def read_all_of_a_bomb(source: Source) -> None:
    for _, block in zip(range(64), chunks(source, 1 << 18), strict=False):
        assert block.count(0) == len(block) or block == b"[]"
    raise AssertionError("read to the end")


def refusal(folder: Path, data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        Source(write(folder, data)).head(10)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{folder}/")


def test_what_cannot_be_decompressed_is_one_sentence(tmp_path: Path) -> None:
    encrypted = bytearray(zipped({"a": TEXT}))
    encrypted[encrypted.rindex(b"PK\x01\x02") + 8] |= 1
    assert refusal(tmp_path, bytes(encrypted)) == "trace.zip/a: is encrypted; unzip it with its password"
    words = "which is not read from zip archives; unzip it"
    assert refusal(tmp_path, zipped({"a": TEXT}, zipfile.ZIP_BZIP2)) == f"trace.zip/a: is packed with bzip2, {words}"
    assert refusal(tmp_path, zipped({"a": TEXT}, zipfile.ZIP_LZMA)) == f"trace.zip/a: is packed with lzma, {words}"
    assert refusal(tmp_path, zipped({"a": b""}, zipfile.ZIP_STORED)) == "trace.zip/a: is empty"
    assert refusal(tmp_path, zipped({"a/": b""})) == "trace.zip: is a zip archive without files; zip it again"
    misled = zipped({"a": TEXT}).replace(struct.pack("<LH", 0, 1)[:4] + b"a", struct.pack("<L", 99) + b"a")
    assert "is not where the archive's directory says" in refusal(tmp_path, misled)


def test_overlapping_members_are_refused(tmp_path: Path) -> None:
    """Many entries of one directory that share one piece of data: the densest kind of bomb."""
    whole = zipped({"a": TEXT})
    start = whole.index(b"PK\x01\x02")
    end = whole.index(b"PK\x05\x06")
    entries = whole[start:end] * 50
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 50, 50, len(entries), start, 0)
    assert "whose members overlap" in refusal(tmp_path, whole[:start] + entries + tail)


@pytest.mark.parametrize("limit", ["MOST_MEMBERS", "DIRECTORY_BYTES"])
def test_an_archive_of_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(archive, limit, 100)
    whole = zipped({str(number): b"x" for number in range(101)}, zipfile.ZIP_STORED)
    assert "zip archive of more than" in refusal(tmp_path, whole)
    if limit == "MOST_MEMBERS":
        assert "zip archive of more than" in refusal(tmp_path, whole[: whole.index(b"PK\x01\x02")])


SMALL = [FORMS[form](b'[{"ph":"X"}]' * 30) for form in FORMS]


@given(
    whole=st.sampled_from(SMALL),
    changes=st.lists(st.tuples(st.integers(0, 10**4), st.binary(min_size=1, max_size=8)), max_size=6),
    cut=st.integers(0, 600),
)
def test_any_damage_ends_in_bytes_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, changes: list[tuple[int, bytes]], cut: int
) -> None:
    data = bytearray(whole)
    for at, piece in changes:
        data[at % len(data) : at % len(data) + len(piece)] = piece
    path = write(tmp_path_factory.getbasetemp(), b"PK\x03\x04" + bytes(data[4 : len(data) - cut % len(data)]))
    sentence = f"{path}: "
    try:
        for member in archive.read(path).members:
            content, _ = Source(path, member).data()
            assert len(content) < 10**6
    except InputError as error:
        sentence = str(error)
    assert sentence.startswith(str(path))
    assert len(sentence) < len(str(path)) + 400


def test_checksums_are_those_of_zlib(tmp_path: Path) -> None:
    assert [member.crc for member in archive.read(write(tmp_path, zipped({"a": TEXT}))).members] == [zlib.crc32(TEXT)]
