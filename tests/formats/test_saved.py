"""A saved profile opened again: alone, compressed, damaged, and with its original at hand."""

from __future__ import annotations

import dataclasses
import gzip
import mmap
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import stepscope
from stepscope.errors import InputError
from stepscope.formats import recorded
from stepscope.formats import saved as writer
from stepscope.trace.saved import pack
from tests.trace.traces import assert_same

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "profiles" / "cpu_input_bound.json.gz"


@pytest.fixture
def original(tmp_path: Path) -> Path:
    return Path(shutil.copy(EXAMPLE, tmp_path / "original.json.gz"))


@pytest.fixture
def saved(original: Path, tmp_path: Path) -> Path:
    stepscope.open(original).save(tmp_path / "saved")
    return tmp_path / "saved"


def test_it_says_what_the_original_says(original, saved):
    first, second = stepscope.open(original), stepscope.open(saved)
    assert_same(second.trace, recorded.proven(first.trace))
    one, other = first.document(), second.document()
    assert other["profile"].pop("files") == [
        {"path": str(saved), "bytes": saved.stat().st_size, "events": one["profile"].pop("files")[0]["events"]}
    ]
    assert one == other


def test_columns_are_mapped_not_read(saved):
    base = stepscope.open(saved).trace.slices.start_ns
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)


def test_gzip_is_read_too(saved, original, tmp_path):
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(saved.read_bytes(), 1))
    assert_same(stepscope.open(packed).trace, recorded.proven(stepscope.open(original).trace))


def test_a_damaged_file_is_one_sentence(saved, tmp_path):
    data = saved.read_bytes()
    for name, content in {"cut": data[:-1], "packed": gzip.compress(data)[:-999], "longer": data + b"x"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as error:
            stepscope.open(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}: is ")
        assert "\n" not in str(error.value)


def test_arguments_come_from_the_original(original, saved):
    profile = stepscope.open(saved)
    assert profile.arguments([5, 3]) == stepscope.open(original).arguments([5, 3])
    part = profile.slice(steps=(4, 6))
    part.save(saved)
    row = next(i for i in range(len(part.trace.slices)) if part.trace.name_of(i).startswith("aten::convolution"))
    arguments = stepscope.open(saved).arguments([row])
    assert arguments[0]["Input Dims"]
    assert str(arguments[0]["Sequence number"]) in map(str, part.trace.host_ops.sequence.tolist())


def test_an_original_that_changed_or_has_gone_is_told(original, saved):
    profile = stepscope.open(saved)
    original.write_bytes(original.read_bytes() + b"\n")
    with pytest.raises(InputError, match=r"original\.json\.gz: has changed since it was read; open it again"):
        profile.arguments([0])
    original.unlink()
    with pytest.raises(InputError, match=r"original\.json\.gz: .*no such file"):
        profile.arguments([0])


@pytest.mark.parametrize(
    "named", ["http://127.0.0.1:9/original.json.gz", "file:///{}", "simplecache::{}", "{}", "/proc/self/fd/0", ".."]
)
def test_what_a_saved_form_names_is_opened_nowhere_but_beside_it(named, original, tmp_path, monkeypatch):
    """The form may come from anywhere: its author chooses the name."""
    trace = stepscope.open(original).trace
    source = dataclasses.replace(trace.info.source, path=named.format(original), digest="0" * 64)
    other = tmp_path / "other"
    other.mkdir()
    form = other / "form.stepscope"
    writer.write(dataclasses.replace(trace, info=dataclasses.replace(trace.info, source=source)), form)
    profile = stepscope.open(form)
    monkeypatch.setattr(recorded, "find", None)
    with pytest.raises(InputError, match="does not lie beside it"):
        profile.arguments([0])


def test_the_original_is_known_by_its_digest_wherever_both_are_copied(original, saved, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for file in (original, saved):
        shutil.copyfile(file, other / file.name)
    assert stepscope.open(other / saved.name).arguments([5]) == stepscope.open(original).arguments([5])


def test_another_file_of_the_same_size_and_time_is_not_the_original(original, saved):
    status, data = original.stat(), bytearray(original.read_bytes())
    data[4] ^= 1  # The time in gzip's header.
    original.write_bytes(data)
    os.utime(original, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InputError, match="has changed"):
        stepscope.open(saved).arguments([0])


def test_a_form_without_a_digest_proves_nothing(original, tmp_path):
    (tmp_path / "form").write_bytes(b"".join(pack(stepscope.open(original).trace)))
    with pytest.raises(InputError, match="does not lie beside it"):
        stepscope.open(tmp_path / "form").arguments([0])


def test_nor_through_a_link_of_that_name(original, saved, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(saved, other)
    (other / original.name).symlink_to(original)
    with pytest.raises(InputError, match="does not lie beside it"):
        stepscope.open(other / saved.name).arguments([0])


def test_a_file_that_changes_while_it_is_open_is_told(original):
    profile = stepscope.open(original)
    original.write_bytes(b"x" + original.read_bytes())
    with pytest.raises(InputError, match="has changed"):
        profile.arguments([0])
