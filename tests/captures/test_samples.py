"""What holds for every profile, whichever profiler wrote it."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import stepscope
from stepscope.cli import main
from stepscope.errors import Exit
from stepscope.formats.writers import Writer
from stepscope.trace.tables import TABLES
from tests.captures.checks import assert_every_nanosecond_once, assert_same_tables, opened
from tests.captures.jobs import Captures
from tests.formats.test_what_is_carried import READ_BACK, assert_carried
from tests.report import documents

pytestmark = pytest.mark.slow

XPLANE, TRACE_JSON = "*.xplane.pb", "*.trace.json.gz"


@dataclass(frozen=True)
class Sample:
    """A file of a capture, and what stepscope must call it."""

    capture: str
    pattern: str
    format: str
    framework: str


SAMPLES = {
    "JAX": Sample("jax", XPLANE, "XPlane", "JAX"),
    "JAX with frames": Sample("jax_frames", XPLANE, "XPlane", "JAX"),
    "JAX as JSON": Sample("jax", TRACE_JSON, "XLA trace JSON", "JAX"),
    "JAX with frames as JSON": Sample("jax_frames", TRACE_JSON, "XLA trace JSON", "JAX"),
    "TensorFlow loop": Sample("tf_loop", XPLANE, "XPlane", "TensorFlow"),
    "Keras": Sample("keras", XPLANE, "XPlane", "TensorFlow"),
    "RunMetadata": Sample("tf_session", "RunMetadata.pb", "TensorFlow StepStats", "TensorFlow"),
    "StepStats": Sample("tf_session", "StepStats.pb", "TensorFlow StepStats", "TensorFlow"),
    "Timeline": Sample("tf_session", "plain.json", "TensorFlow Timeline", "TensorFlow"),
    "Timeline with memory": Sample("tf_session", "memory.json", "TensorFlow Timeline", "TensorFlow"),
    "Timeline without dataflow": Sample("tf_session", "no_dataflow.json", "TensorFlow Timeline", "TensorFlow"),
    "PyTorch": Sample("torch", "trace.json.gz", "Kineto JSON", "PyTorch"),
    "PyTorch/XLA": Sample("torch_xla", XPLANE, "XPlane", "PyTorch/XLA"),
    "PyTorch/XLA as JSON": Sample("torch_xla", TRACE_JSON, "XLA trace JSON", "PyTorch/XLA"),
}


_XLA_CPU = {"annotation", "host_op", "runtime_call", "step", "kernel"}
_EIGHT = {*_XLA_CPU, "collective"}
_FRAMES = {"annotation", "python_frame"}
_ON_DEVICES = {"device_ops", "instants", "launches", "slices", "step_marks", "tracks", "xla_ops"}
_XPLANE = {*_ON_DEVICES, "flows", "programs"}
_TF2 = {"flows", "instants", "iterators", "slices", "step_marks", "tracks"}
_GRAPH = {"flows", "nodes", "slices", "tracks"}
HOLDS: dict[str, tuple[set[str], set[str]]] = {
    "JAX": (_EIGHT, _XPLANE),
    "JAX with frames": (_EIGHT | _FRAMES, _XPLANE),
    "JAX as JSON": (_EIGHT, _ON_DEVICES),
    "JAX with frames as JSON": (_EIGHT | _FRAMES, _ON_DEVICES),
    "TensorFlow loop": ({"annotation", "host_op", "step"}, _TF2),
    "Keras": ({"annotation", "host_op", "step"}, _TF2),
    "RunMetadata": ({"host_op"}, _GRAPH | {"memory", "tensors"}),
    "StepStats": ({"host_op"}, _GRAPH | {"memory", "tensors"}),
    "Timeline": ({"host_op"}, _GRAPH),
    "Timeline with memory": ({"host_op"}, _GRAPH | {"counters", "tensors"}),
    "Timeline without dataflow": ({"host_op"}, _GRAPH),
    "PyTorch": (
        _FRAMES | {"host_op", "module", "other", "step"},
        {"flows", "frames", "host_ops", "instants", "slices", "tracks"},
    ),
    "PyTorch/XLA": (_XLA_CPU, _XPLANE),
    # The JSON names neither device nor call of an op: it stays on the thread that ran it.
    "PyTorch/XLA as JSON": (_XLA_CPU - {"kernel"}, _ON_DEVICES - {"device_ops", "launches"}),
}
"""Kinds of slices, and tables with rows: nothing less, and nothing that the profiler did not record."""


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest) -> Sample:
    return SAMPLES[request.param]


@pytest.fixture
def path(sample: Sample, captures: Captures) -> Path:
    return captures[sample.capture].file(sample.pattern)


def test_it_is_named(path: Path, sample: Sample) -> None:
    info = opened(path).trace.info
    assert (info.format, info.framework) == (sample.format, sample.framework)


@pytest.mark.parametrize("name", SAMPLES)
def test_what_it_holds(name: str, captures: Captures) -> None:
    trace = opened(captures[SAMPLES[name].capture].file(SAMPLES[name].pattern)).trace
    kinds = {str(kind) for kind in trace.table("slices")["kind"].unique()}
    assert (kinds, {table for table in TABLES if len(trace.table(table))}) == HOLDS[name]


def test_nothing_of_it_is_lost(path: Path) -> None:
    completeness = opened(path).trace.completeness
    assert completeness.complete, completeness.losses
    assert opened(path).exit_status is Exit.OK


def test_it_is_recognised_without_its_name(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    packed = data[:2] == b"\x1f\x8b"
    plain = gzip.decompress(data) if packed else data
    forms = {"profile": plain, "holiday.jpg": plain, "0": gzip.compress(plain, 1)}
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        again = stepscope.open(tmp_path / name)
        assert again.trace.info == replace(opened(path).trace.info, source=again.trace.info.source)
        assert_same_tables(opened(path), again)


def test_every_nanosecond_is_booked_once(path: Path) -> None:
    document = documents.check(opened(path).document())
    assert document["steps"]
    assert_every_nanosecond_once(document)


def test_what_is_saved_opens_the_same(path: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved.stepscope"
    assert main(["convert", str(path), str(saved)]) == Exit.OK
    # The original has gone, and the saved file has no telling name: it stands alone.
    moved = tmp_path / "elsewhere"
    shutil.move(saved, moved)
    again = stepscope.open(moved)
    assert again.trace.info == replace(opened(path).trace.info, source=None)
    assert again.trace.completeness == opened(path).trace.completeness
    assert_same_tables(opened(path), again)
    first, second = (json.loads(json.dumps(profile.document())) for profile in (opened(path), again))
    for document in (first, second):
        del document["profile"]["files"]
    assert second == first


def test_the_command_line_diagnoses_it(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert main(["diagnose", str(path), "--format", "json", "--out", str(report)]) == Exit.OK
    document = json.loads(report.read_text())
    assert document == json.loads(json.dumps(opened(path).document()))
    for form in ("text", "markdown"):
        assert main(["diagnose", str(path), "--format", form, "-v"]) == Exit.OK
        assert document["summary"]["verdict"].split(";")[0] in " ".join(capsys.readouterr().out.split())


def test_the_folder_it_was_written_to_is_the_same_profile(captures: Captures) -> None:
    """``plugins/profile/RUN`` holds one capture in two forms: it is one profile, the XPlane's."""
    capture = captures["jax"]
    profile = stepscope.open(capture.folder)
    assert os.fspath(profile.source.path) == os.fspath(capture.file(XPLANE))
    assert_same_tables(opened(capture.file(XPLANE)), profile)


@pytest.mark.parametrize("writer", READ_BACK, ids=lambda writer: writer.name)
def test_what_is_written_is_read_again(path: Path, writer: Writer, tmp_path: Path) -> None:
    assert_carried(path, writer, tmp_path)
