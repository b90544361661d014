"""What a path leads to: files, folders in TensorBoard's layout, archives, patterns; and what is said of the rest."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import InputError
from stepscope.formats import find as module
from stepscope.formats import foreign, readers
from stepscope.formats.find import Found, find, grouped
from stepscope.inputs import folders

TRACE = json.dumps({"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}).encode()
PLANE = b"an XPlane, as this test has it"
EVENTS = bytes(12) + b"\x09" + bytes(8) + b"\x1a\x0dbrain.Event:2"


@pytest.fixture(autouse=True, scope="module")
def a_reader_of_planes() -> Iterator[None]:
    """One that needs no real file: what is tested here is what belongs together."""
    reader = readers.Reader("planes", "", lambda head: head.startswith(PLANE), "saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "READERS", (reader, *readers.READERS))
        yield


def tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def zipped(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as writer:
        for name, data in files.items():
            writer.writestr(name, data)
    return held.getvalue()


def names(found: Found, folder: Path) -> list[str]:
    return [str(source.path.relative_to(folder)) for source in found.sources]


def reasons(found: Found) -> dict[str, str]:
    return {one.path.name: one.reason for one in found.skipped}


def refusal(path: Path | str) -> InputError:
    with pytest.raises(InputError) as caught:
        find(str(path))
    return caught.value


# --- one file ------------------------------------------------------------------------------------------------------


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    tree(tmp_path, {"host.trace.json.gz": gzip.compress(TRACE), "host.xplane.pb": PLANE, "anything": b"\x00"})
    assert names(find(str(tmp_path / "host.trace.json.gz")), tmp_path) == ["host.trace.json.gz"]
    assert names(find(str(tmp_path / "anything")), tmp_path) == ["anything"]  # reading it says what it is


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    assert str(refusal(tmp_path / "x.json")) == f"{tmp_path}/x.json: there is no such file"
    assert str(refusal(f"{tmp_path}/x*")) == f"{tmp_path}/x*: there is no such file"
    assert "cannot be opened" in str(refusal("nul\0byte"))


# --- folders -------------------------------------------------------------------------------------------------------


def test_profiles_are_told_by_content_at_any_depth(tmp_path: Path) -> None:
    tree(tmp_path, {"a/b/c/no suffix": TRACE, "d.txt": gzip.compress(TRACE), ".hidden/e.json": TRACE, ".f": TRACE})
    assert names(find(str(tmp_path)), tmp_path) == ["a/b/c/no suffix", "d.txt"]


def test_ranks_are_counted_and_at_most_sixteen(tmp_path: Path) -> None:
    tree(tmp_path, {f"rank{rank}.json": TRACE for rank in range(20)})
    found = find(str(tmp_path))
    assert names(found, tmp_path) == [f"rank{rank}.json" for rank in range(16)]
    assert found.notes == (f"{tmp_path}: the first 16 of 20 profiles are read; name others to read them",)
    assert [one.path.name for one in found.skipped] == ["rank16.json", "rank17.json", "rank18.json", "rank19.json"]


def test_a_capture_in_several_forms_is_one_profile(tmp_path: Path) -> None:
    run = "plugins/profile/2026_11_21_05_27_53"
    tree(tmp_path, {
        f"{run}/vm.xplane.pb": PLANE,
        f"{run}/vm.trace.json.gz": gzip.compress(TRACE),
        f"{run}/perfetto_trace.json.gz": gzip.compress(TRACE),
        f"{run}/other.trace.json.gz": gzip.compress(TRACE),
        "events.out.tfevents.1.vm": EVENTS,
    })  # fmt: skip
    found = find(str(tmp_path))
    assert names(found, tmp_path) == [f"{run}/other.trace.json.gz", f"{run}/vm.xplane.pb"]
    assert found.notes == (
        f"{tmp_path}/{run}/vm.xplane.pb is read; vm.trace.json.gz and perfetto_trace.json.gz beside it hold the same "
        "capture",
    )
    assert reasons(found) == {"events.out.tfevents.1.vm": foreign.EVENT_FILE}  # the note told of the others
    assert all(one.expected for one in found.skipped)


def test_a_decompressed_copy_is_no_second_profile(tmp_path: Path) -> None:
    tree(tmp_path, {"a.json": TRACE, "a.json.gz": gzip.compress(TRACE), "b.json.gz": gzip.compress(TRACE)})
    assert names(find(str(tmp_path)), tmp_path) == ["a.json", "b.json.gz"]


def test_several_hosts_are_several_profiles(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {
            f"plugins/profile/run/host{host}.{kind}": data
            for host in (2, 10)
            for kind, data in (("xplane.pb", PLANE), ("trace.json.gz", gzip.compress(TRACE)))
        },
    )
    assert [Path(name).name for name in names(find(str(tmp_path)), tmp_path)] == ["host2.xplane.pb", "host10.xplane.pb"]


@pytest.mark.parametrize("inside", ["", "plugins", "plugins/profile"])
def test_of_several_runs_the_newest_is_read(tmp_path: Path, inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = ["2026_11_21_05_27_53", "2026_11_21_05_27_59", "2025_12_31_23_59_59"]
    tree(tmp_path, {f"plugins/profile/{run}/vm.xplane.pb": PLANE for run in runs})
    tree(tmp_path, {"plugins/profile/2027_01_01_00_00_00/vm.xplane.pb": b""})  # empty: not a run to choose
    found = find(str(tmp_path / inside))
    assert [source.path.parent.name for source in found.sources] == ["2026_11_21_05_27_59"]
    assert found.notes == (
        f"{tmp_path}/plugins/profile/2026_11_21_05_27_59 is read, the newest of 3 runs; to read another, name it: "
        f"{tmp_path}/plugins/profile/2026_11_21_05_27_53, {tmp_path}/plugins/profile/2025_12_31_23_59_59",
    )
    named = find(str(tmp_path / "plugins/profile" / runs[2]))
    assert [source.path.parent.name for source in named.sources] == [runs[2]]
    assert named.notes == ()
    monkeypatch.chdir(tmp_path / inside)
    assert [source.path.parent.name for source in find(".").sources] == ["2026_11_21_05_27_59"]


def test_runs_whose_name_is_no_time_go_by_their_files(tmp_path: Path) -> None:
    tree(tmp_path, {f"plugins/profile/{run}/vm.xplane.pb": PLANE for run in ("first", "second")})
    os.utime(tmp_path / "plugins/profile/first/vm.xplane.pb", (1.9e9, 1.9e9))
    os.utime(tmp_path / "plugins/profile/second/vm.xplane.pb", (1.2e9, 1.2e9))
    assert [source.path.parent.name for source in find(str(tmp_path)).sources] == ["first"]
    tree(tmp_path, {"plugins/profile/2099_01_01_00_00_00/vm.xplane.pb": PLANE})
    assert [source.path.parent.name for source in find(str(tmp_path)).sources] == ["2099_01_01_00_00_00"]


def test_runs_of_different_jobs_are_all_read(tmp_path: Path) -> None:
    tree(tmp_path, {f"{job}/plugins/profile/run/vm.xplane.pb": PLANE for job in ("train", "validation")})
    assert len(find(str(tmp_path)).sources) == 2


def test_links_are_followed_once(tmp_path: Path) -> None:
    tree(tmp_path, {"real/a.json": TRACE})
    (tmp_path / "real/back").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "again").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    found = find(str(tmp_path))
    assert len(found.sources) == 1
    assert set(reasons(found)) == {"dangling", "loop"}


def test_the_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "/".join("x" * (folders.DEPTH + 1))
    tree(tmp_path, {"a.json": TRACE, f"{deep}/b.json": TRACE})
    found = find(str(tmp_path))
    assert names(found, tmp_path) == ["a.json"]
    assert [str(one.path) for one in found.skipped] == [f"{tmp_path}/{deep}"]
    monkeypatch.setattr(folders, "MOST_ENTRIES", 50)
    many = tree(tmp_path / "many", {f"{number}.json": TRACE for number in range(60)})
    assert "entries were looked at; name a folder further down" in find(str(many)).notes[0]
    assert len(find(str(many)).skipped) == 50 - 16


def test_a_folder_exported_by_convert_is_no_profile(tmp_path: Path) -> None:
    tree(tmp_path, {"out/info.json": b"{}", "out/slices.parquet": b"PAR1", "out/tracks.parquet": b"PAR1"})
    error = refusal(tmp_path)
    assert error.details == (
        "1 file (out): an export to Parquet, which is not read back; name the profile it was made from",
    )
    assert refusal(tmp_path / "out").details == (error.details[0].replace("(out)", f"({tmp_path}/out)"),)


def test_nothing_readable_says_what_was_seen_and_why(tmp_path: Path) -> None:
    tree(tmp_path, {
        **{f"train/events.out.tfevents.{number}": EVENTS for number in range(7)},
        "train/trace.json.zst": b"\x28\xb5\x2f\xfd rest",
        "config.json": b'{"steps": 10}',
        "rank0.json": b"",
        "snapshot.pickle": pickle.dumps({"segments": []}),
        "model.pt": zipped({"model/data.pkl": b"", "model/version": b"3"}),
    })  # fmt: skip
    error = refusal(tmp_path)
    assert error.sentence == (
        f"{tmp_path}: holds no profile among 12 files in 2 folders; `stepscope formats` lists what is read"
    )
    assert error.details == (
        f"7 files (train/events.out.tfevents.0, train/events.out.tfevents.1, …): {foreign.EVENT_FILE[3:]}",
        "1 file (model.pt): a checkpoint of PyTorch, not a profile",
        "1 file (config.json): JSON without trace events in its first 4 MiB; name it to have it read all the same",
        "1 file (rank0.json): empty",
        f"1 file (snapshot.pickle): {foreign.describe(pickle.dumps({}))[3:]}",
        "1 file (train/trace.json.zst): compressed with Zstandard, which is not read; decompress it with `zstd -dk`",
    )


def test_reasons_are_not_listed_without_end() -> None:
    skipped = [folders.Skipped(Path(f"a/{number}"), f"is reason {number}") for number in range(30)]
    assert len(grouped(skipped, "a")) == 9
    assert grouped(skipped, "a")[-1] == "and 22 more reasons"


def test_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    sentence = f"{tmp_path}: holds no file in 2 folders; name a profile, or the folder it is in"
    assert str(refusal(tmp_path)) == sentence


def test_only_what_one_would_ask_about_is_told_of_beside_profiles(tmp_path: Path) -> None:
    tree(tmp_path, {"a.json": TRACE, "train.py": b"import torch", "ckpt.bin": bytes(99), "b.json": b"", "c.xz":
                    b"\xfd7zXZ\0", "config.json": b"{}", "events": EVENTS})  # fmt: skip
    found = find(str(tmp_path))
    assert {one.path.name for one in found.skipped if not one.expected} == {"b.json", "c.xz"}
    assert len(found.skipped) == 6


def test_what_stepscope_wrote_itself_beside_profiles_is_known(tmp_path: Path) -> None:
    tree(tmp_path, {
        "a.json": TRACE,
        "vm.rank0.stepscope.json": b'{\n "schema": "stepscope.capture/1", "files": [{"path": "a.json"}]}',
        "report.json": b'{"schema": "stepscope.report/1", "traceEvents": [{"ph": "X"}]}',
        "a.json.html": b'<!doctype html>\n<html lang="en">\n<head>\n<meta name="generator" content="stepscope">',
        "config.json": b"{}",
    })  # fmt: skip
    found = find(str(tmp_path))
    assert names(found, tmp_path) == ["a.json"]
    assert [one.path.name for one in found.skipped if not one.ours] == ["config.json"]
    assert all(one.expected for one in found.skipped)


def test_a_folder_that_may_not_be_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: object) -> NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folders.os, "scandir", refuse)
    assert refusal(tmp_path).sentence == f"{tmp_path}: cannot be opened: permission denied"


def test_events_behind_a_long_header_are_seen(tmp_path: Path) -> None:
    long = {"deviceProperties": [{"name": "x" * 1000}] * 200, "traceEvents": []}
    tree(tmp_path, {"a.json": json.dumps(long).encode()})
    assert names(find(str(tmp_path)), tmp_path) == ["a.json"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(tmp_path: Path) -> None:
    tree(tmp_path, {"a.json": TRACE, "b.json": TRACE, "c/d.json": TRACE})
    (tmp_path / "b.json").chmod(0)
    (tmp_path / "c").chmod(0)
    try:
        assert reasons(find(str(tmp_path))) == dict.fromkeys(("b.json", "c"), "cannot be opened: permission denied")
    finally:
        (tmp_path / "c").chmod(0o700)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_folder_that_may_be_listed_but_not_entered_costs_its_own_files_only(tmp_path: Path) -> None:
    tree(tmp_path, {"a.json": TRACE, "c/d.json": TRACE})
    (tmp_path / "c").chmod(0o444)
    try:
        assert reasons(find(str(tmp_path))) == {"d.json": "cannot be opened: permission denied"}
        for path in ("c/d.json", "c/d.zip/e.json"):
            with pytest.raises(InputError, match="cannot be opened: permission denied"):
                find(str(tmp_path / path))
    finally:
        (tmp_path / "c").chmod(0o700)


def test_special_files_are_not_waited_for(tmp_path: Path) -> None:
    tree(tmp_path, {"a.json": TRACE})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert reasons(find(str(tmp_path))) == dict.fromkeys(("pipe", "zero"), "is not a regular file")
    for path in (tmp_path / "pipe", tmp_path / "zero", "/dev/zero", "/dev/full"):
        with pytest.raises(InputError, match="is not a regular file"):
            find(str(path))


def test_links_to_themselves_and_to_nothing_are_told(tmp_path: Path) -> None:
    tree(tmp_path, {"a.json": TRACE})
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "nothing").symlink_to("nowhere")
    assert reasons(find(str(tmp_path))).keys() == {"self", "nothing"}
    for path in ("self", "nothing"):
        with pytest.raises(InputError):
            find(str(tmp_path / path))


def test_names_that_are_no_utf8_are_read_and_named(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        tree(tmp_path, {f"{name}.json": TRACE, f"{name}.txt": b"text"})
    except OSError:
        pytest.skip("this file system wants UTF-8")
    found = find(str(tmp_path))
    assert names(found, tmp_path) == [f"{name}.json"]
    assert f"{name}.txt" in grouped(found.skipped, str(tmp_path))[0]


# --- archives ------------------------------------------------------------------------------------------------------


def test_an_archive_of_one_file_is_that_file(tmp_path: Path) -> None:
    tree(tmp_path, {"a.zip": zipped({"x/trace.json": TRACE}), "b.zip": zipped({"notes.txt": b"hello"})})
    assert names(find(str(tmp_path / "a.zip")), tmp_path) == ["a.zip/x/trace.json"]
    assert names(find(str(tmp_path / "b.zip")), tmp_path) == ["b.zip/notes.txt"]  # reading it says what it is


def test_an_archive_of_several_files_is_a_folder(tmp_path: Path) -> None:
    run = "logs/plugins/profile/2026_11_21_05_27_53"
    files = {
        f"{run}/vm.xplane.pb": PLANE,
        f"{run}/vm.trace.json.gz": gzip.compress(TRACE),
        "logs/notes.txt": b"hello",
        "logs/plugins/profile/2025_11_21_05_27_53/vm.xplane.pb": PLANE,
    }
    path = tree(tmp_path, {"a.zip": zipped(files)}) / "a.zip"
    found = find(str(path))
    assert names(found, tmp_path) == [f"a.zip/{run}/vm.xplane.pb"]
    assert found.sources[0].head(len(PLANE)) == PLANE
    assert len(found.notes) == 2
    assert names(find(f"{path}/{run}/vm.trace.json.gz"), tmp_path) == [f"a.zip/{run}/vm.trace.json.gz"]
    assert str(refusal(f"{path}/nothing")) == f"{path}/nothing: cannot be opened: not a directory"


def test_archives_in_a_folder_are_opened_those_in_archives_are_not(tmp_path: Path) -> None:
    tree(tmp_path, {"a.zip": zipped({"1.json": TRACE, "2.json": TRACE}), "b.zip": zipped({"c.zip": zipped({"3": TRACE})
                    }), "d.zip": b"PK\x03\x04 and nothing"})  # fmt: skip
    found = find(str(tmp_path))
    assert names(found, tmp_path) == ["a.zip/1.json", "a.zip/2.json"]
    assert reasons(found) == {
        "c.zip": "is a zip archive inside gzip or zip; unpack the outer one",
        "d.zip": "is cut off; what lay behind the cut is missing",
    }


def test_a_cut_archive_gives_what_it_has_and_says_so(tmp_path: Path) -> None:
    whole = zipped({"1.json": TRACE, "2.json": TRACE, "3.json": TRACE})
    path = tree(tmp_path, {"a.zip": whole[: len(whole) // 2]}) / "a.zip"
    found = find(str(path))
    assert names(found, tmp_path)[0] == "a.zip/1.json"
    assert reasons(found) == {"a.zip": "is cut off; what lay behind the cut is missing"}


WHOLE = zipped({"1.json": TRACE, "b/2.json.gz": gzip.compress(TRACE), "c/events": EVENTS})


@given(
    changes=st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=6)), max_size=5),
    keep=st.integers(4, len(WHOLE)),
)
def test_any_damaged_archive_ends_in_profiles_or_one_error(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, bytes]], keep: int
) -> None:
    data = bytearray(WHOLE)
    for at, piece in changes:
        data[at : at + len(piece)] = piece
    path = tmp_path_factory.getbasetemp() / "damaged.zip"
    path.write_bytes(b"PK\x03\x04" + data[4:keep])
    try:
        about = str(find(str(path)).sources[0].path)
    except InputError as error:
        about = error.sentence
    assert about.startswith(str(path))


# --- patterns ------------------------------------------------------------------------------------------------------


def test_a_pattern_is_expanded_here_too(tmp_path: Path) -> None:
    tree(tmp_path, {"rank10.json": TRACE, "rank9.json": TRACE, "rank1.log": b"hello", "runs/1/a.json": TRACE})
    assert names(find(f"{tmp_path}/rank*"), tmp_path) == ["rank9.json", "rank10.json"]
    assert names(find(f"{tmp_path}/rank?.json"), tmp_path) == ["rank9.json"]
    assert names(find(f"{tmp_path}/r*s/[0-9]"), tmp_path) == ["runs/1/a.json"]
    assert "hello" not in str(refusal(f"{tmp_path}/*.csv"))


def test_a_pattern_that_can_name_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        find(f"{tmp_path}/rank\0*.json")


def test_a_file_whose_name_is_a_pattern_is_that_file(tmp_path: Path) -> None:
    tree(tmp_path, {"trace[1].json": TRACE, "trace1.json": TRACE})
    assert names(find(f"{tmp_path}/trace[1].json"), tmp_path) == ["trace[1].json"]


def test_the_order_of_names_counts() -> None:
    assert sorted(["r10", "r9", "r9b", "r", "٣"], key=module.natural) == ["r", "r9", "r9b", "r10", "٣"]
