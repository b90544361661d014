"""Which road is taken, what it says about itself, and where compiled kernels are kept."""

from __future__ import annotations

import errno
import gzip
import json
import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from stepscope import compiled, kept_code
from stepscope.errors import InputError
from stepscope.formats.chrome.scan import fast, read_events
from stepscope.formats.chrome.scan import read as reading
from stepscope.formats.chrome.scan.merge import merge
from stepscope.formats.chrome.scan.roads import Road, Stop, TolerantRoad
from stepscope.formats.chrome.scan.window import window_of
from stepscope.inputs import source as source_module
from stepscope.inputs.source import Source

TEXT = json.dumps({"traceEvents": [{"ph": "X", "name": f"n{number % 7}", "pid": 1, "tid": 1, "ts": number, "dur": 1}
                                   for number in range(20_000)]})  # fmt: skip


@pytest.fixture
def source(tmp_path: Path) -> Source:
    path = tmp_path / "trace.json"
    path.write_text(TEXT)
    return Source(path)


def run(code: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


READ = """
import sys
{before}
from stepscope.formats.chrome.scan import read_events
from stepscope.inputs.source import Source
events = read_events(Source(sys.argv[1]))
print(len(events), len(events.damages), "numba" in sys.modules, events.notices)
"""


MUST_COMPILE = "from stepscope.formats.readers import READERS; print(READERS[-1].must_compile(1 << 40))"


NO_PYTHON = """
from stepscope import compiled
for work in (compiled.LOOPS, compiled.JSON):
    work.most = work.most_uncompiled = -1
"""


def test_importing_the_readers_does_not_import_numba() -> None:
    assert run("import sys, stepscope.formats.chrome.scan as scan; print('numba' in sys.modules)") == "False"


def test_without_numba_the_tolerant_road_reads_and_says_so(source: Source) -> None:
    output = run(READ.format(before="sys.modules['numba'] = None"), str(source.path))
    assert output.startswith("20000 0 True ['numba cannot be used here")
    assert run("import sys; sys.modules['numba'] = None\n" + MUST_COMPILE) == "False"


def test_with_the_compiler_switched_off_the_tolerant_road_reads(source: Source) -> None:
    output = run(READ.format(before=""), str(source.path), NUMBA_DISABLE_JIT="1")
    assert output.startswith("20000 0 True ['NUMBA_DISABLE_JIT")


def test_a_small_file_needs_no_numba(tmp_path: Path) -> None:
    path = tmp_path / "small.json"
    path.write_text('[{"ph": "X", "ts": 1}]')
    assert run(READ.format(before=""), str(path)) == "1 0 False []"


def test_the_fast_road_is_taken_of_more_than_python_reads_as_soon(source: Source) -> None:
    assert run(READ.format(before=""), str(source.path)) == "20000 0 False []"
    before = "from stepscope import compiled; compiled.JSON.most = compiled.JSON.most_uncompiled = 1000"
    assert run(READ.format(before=before), str(source.path)) == "20000 0 True []"


def test_progress_ends_at_the_size_of_the_file(source: Source) -> None:
    calls: list[tuple[int, int]] = []
    read_events(source, lambda done, total: calls.append((done, total)))
    assert calls[-1] == (source.size, source.size)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


@pytest.mark.parametrize("damaged", [False, True])
def test_progress_of_a_gzip_file_never_goes_back(
    tmp_path: Path, damaged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading.drive, "CHUNK", 1 << 16)
    packed = gzip.compress(TEXT.encode())
    path = tmp_path / "trace.json.gz"
    path.write_bytes(packed[:-2000] if damaged else packed)
    calls: list[int] = []
    events = read_events(Source(path), lambda done, total: calls.append(done), road="fast")
    assert (len(events) < 20_000) == damaged
    assert len(calls) > 5
    assert calls == sorted(calls)


@pytest.mark.parametrize("road", ["fast", "tolerant"])
def test_a_file_that_shrinks_while_it_is_read_is_a_cut_file(
    source: Source, monkeypatch: pytest.MonkeyPatch, road: Any
) -> None:
    monkeypatch.setattr(reading.drive, "CHUNK", 1 << 16)
    with source.path.open("r+b") as file:
        file.truncate(source.size // 2)
    events = read_events(source, road=road)
    assert 9_000 < len(events) < 11_000
    assert [damage.code for damage in events.damages] == ["truncated"]


def test_a_failing_disk_is_said_in_a_sentence(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(reading.drive, "CHUNK", 1 << 16)
    monkeypatch.setattr(source_module, "_read_at", fail)
    with pytest.raises(InputError, match=r"trace\.json: cannot be read: input/output error"):
        read_events(source, road="fast")


def test_events_of_a_few_bytes_by_the_million_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading.drive, "_MANY_EVENTS", 50_000)
    monkeypatch.setattr(reading.drive, "CHUNK", 1 << 16)
    path = tmp_path / "dust.json"
    path.write_text('[{"ph":"X"}' + ",{}" * 200_000 + "]")
    with pytest.raises(InputError, match=r"dust\.json: holds .* as no profile does"):
        read_events(Source(path))


def test_the_cache_folder_is_the_first_writable_of_four(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    (tmp_path / "file").touch()
    for name in ("TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "STEPSCOPE_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "file"))  # nothing can be written below a file
    monkeypatch.setattr(kept_code.tempfile, "tempdir", str(tmp_path / "file"))
    monkeypatch.setattr(kept_code.sys, "platform", "linux")
    for name in ("TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "STEPSCOPE_CACHE"):
        monkeypatch.setattr(kept_code, "_FOLDERS", {})
        folder = kept_code.cache_folder(tmp_path)
        found.append(folder and folder.relative_to(tmp_path).parts[0])
        monkeypatch.setenv(name, str(tmp_path / name))
        monkeypatch.setattr(kept_code.tempfile, "tempdir", str(tmp_path / "TMPDIR"))
    assert found == [None, "TMPDIR", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"]


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "chosen"))
    monkeypatch.setattr(kept_code, "_FOLDERS", {})
    folder = kept_code.cache_folder(tmp_path)
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o777)
    monkeypatch.setattr(kept_code, "_FOLDERS", {})
    assert kept_code.cache_folder(tmp_path) != folder


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs a second user, whom only root can be")
def test_a_folder_below_one_that_another_user_owns_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, 65534, 65534)
    (tmp_path / "link").symlink_to(theirs)
    monkeypatch.setattr(kept_code.tempfile, "tempdir", str(theirs))
    for name in ("STEPSCOPE_CACHE", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        for chosen in (theirs, theirs / "below" / "that", tmp_path / "link"):
            monkeypatch.setenv(name, str(chosen))
            monkeypatch.setattr(kept_code, "_FOLDERS", {})
            folder = kept_code.cache_folder(tmp_path)
            assert folder is None or theirs not in folder.resolve().parents
        monkeypatch.delenv(name)


def test_a_folder_below_one_that_others_may_write_is_used_where_names_are_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("STEPSCOPE_CACHE", str(shared / "chosen"))
    for mode, used in ((0o777, False), (0o1777, True), (0o757, False), (0o755, True), (0o775, True)):
        shared.chmod(mode)
        monkeypatch.setattr(kept_code, "_FOLDERS", {})
        folder = kept_code.cache_folder(tmp_path)
        assert (folder is not None and shared in folder.parents) is used, oct(mode)


def test_kernels_of_other_versions_go_when_nobody_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    monkeypatch.setenv("STEPSCOPE_CACHE", str(root))
    monkeypatch.setattr(kept_code, "_FOLDERS", {})
    scan = Path(reading.__file__).parent
    current = kept_code.cache_folder(scan)
    assert current is not None
    old = ("kernels-scan-0123456789abcdef", "kernels-0123456789abcdef")
    kept = ("kernels-scan-fedcba9876543210", "kernels-mine", "other", "kernels-link-0123456789abcdef")
    for folder in (*(root / name for name in (*old, *kept[:-1])), elsewhere):
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "scan.nbi").touch()
    (root / kept[-1]).symlink_to(elsewhere)
    (root / old[0] / "link").symlink_to(elsewhere)
    for folder in (*root.iterdir(), elsewhere):
        os.utime(folder, (1, 1), follow_symlinks=False)
    os.utime(root / kept[0])  # of another version, which is still in use
    monkeypatch.setattr(kept_code, "_FOLDERS", {})
    assert kept_code.cache_folder(scan) == current
    assert {path.name for path in root.iterdir()} == {current.name, *kept}
    assert current.stat().st_mtime > 1
    assert (elsewhere / "inner" / "scan.nbi").exists()
    os.utime(current, (1, 1))  # of this version, though this process did not ask for it
    kept_code.remove_unused(root)
    assert current.exists()


def test_kernels_that_another_process_begins_to_use_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels-scan-0123456789abcdef"
    folder.mkdir()
    os.utime(folder, (1, 1))
    seen = iter((True, False))  # unused when listed, used when renamed
    monkeypatch.setattr(kept_code, "_is_unused", lambda path: next(seen))
    kept_code.remove_unused(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


@pytest.mark.slow
def test_kernels_are_compiled_once(source: Source, tmp_path: Path) -> None:
    code = READ.format(before=f"{NO_PYTHON}\n{MUST_COMPILE}")
    first = run(code, str(source.path), STEPSCOPE_CACHE=str(tmp_path / "cache"))
    second = run(code, str(source.path), STEPSCOPE_CACHE=str(tmp_path / "cache"))
    assert first.splitlines()[0] == "True"
    assert second.splitlines()[0] == "False"
    assert first.splitlines()[1] == second.splitlines()[1] == "20000 0 True []"


@pytest.mark.parametrize("make_road", [fast.FastRoad, TolerantRoad])
def test_offsets_beyond_four_gigabytes_are_exact(make_road: type[Road]) -> None:
    window = window_of(memoryview(b'{"ph":"X","name":"a","ts":1,"dur":1},{"ph":"X"}]'), 5 << 30, True)
    road = make_road()
    assert road.advance(window, 0, 1 << 60, False)[2] is Stop.DONE
    parts, tally = road.take()
    events = merge(deque(parts), {}, window.base + window.end, tally)
    assert events.offset.tolist() == [5 << 30, (5 << 30) + 37]


@pytest.mark.parametrize(
    ("folder", "holds", "holds_not"),
    [
        ("formats/nsys", "formats/nsys/sqlite/pages.py", "formats/nsys/about.py"),
        ("formats/xplane", "protobuf/columns.py", "formats/xplane/info.py"),
        ("analysis", "trace/forest.py", "analysis/memory.py"),
    ],
)
def test_machine_code_is_made_anew_where_a_module_changes_that_it_holds_something_of(
    folder: str, holds: str, holds_not: str
) -> None:
    package = Path(compiled.__file__).parent
    behind = kept_code._behind(package / folder)
    assert package / holds in behind
    assert package / holds_not not in behind
