"""Every profile in every written format, read again: accounting, steps, devices, launches and all tables are the same,
but for what the writer declares that its format lacks (``LACKS``), which docs/formats.md lists and ``convert`` counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import stepscope
from stepscope.errors import OutputError
from stepscope.formats import saved
from stepscope.formats.writers import WRITERS, Writer
from stepscope.trace import tables as t
from tests.formats.xplane import xplane_files
from tests.formats.xplane.carried import check
from tests.kit import gpu_runs, xla
from tests.kit.nsys_writer import write_nsys
from tests.kit.planted import CASES
from tests.kit.traces import KINETO_NAMES, REPOSITORY, real_trace
from tests.support import planted_file

READ_BACK = [writer for writer in WRITERS if writer.name not in ("parquet",)]
"""A folder of Parquet files is for other tools."""


def _made(data: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "profile").write_bytes(data)
        return folder / "profile"

    return write


def _built(job: xla.Job) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        saved.write(xla.build(job), folder / "profile")
        return folder / "profile"

    return write


def _generic() -> bytes:
    events = [
        {"ph": "X", "name": "work", "pid": 1, "tid": 2, "ts": 10, "dur": 5},
        {"ph": "X", "name": "more (a.py:3)", "cat": "fee", "pid": 1, "tid": 2, "ts": 11, "dur": 2, "args": {"a": 1}},
        {"ph": "i", "name": "mark", "pid": 1, "tid": 2, "ts": 12, "s": "t"},
        {"ph": "C", "name": "fill", "pid": 1, "tid": 2, "ts": 12, "args": {"queue": 3}},
    ]
    return json.dumps({"traceEvents": events}).encode()


def _unnamed() -> bytes:
    """As PyTorch/XLA's: an op of one program inside the call that ran it, and one of another on a device."""
    op = {"hlo_op": "dot.3", "hlo_module": "SyncTensorsGraph.7", "program_id": "1"}
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/host:CPU"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "python"}},
        {"ph": "X", "name": "PjRtCpuExecutable::Execute", "pid": 1, "tid": 2, "ts": 0, "dur": 9},
        {"ph": "X", "name": "dot.3", "pid": 1, "tid": 2, "ts": 1, "dur": 5, "args": op},
    ]
    return json.dumps({"traceEvents": events}).encode()


TPU = xla.Job(
    host=[
        xla.HostRange("train", 0, 100, t.Kind.STEP, 7),
        xla.HostRange("PjitFunction(step)", 10, 20, t.Kind.HOST_OP),
    ],
    ops=[xla.Op("fusion.1", 40, 30), xla.Op("fusion.1", 40, 35, device=1)],
    lines=[xla.Line("Steps", "7", 40, 40, number=7), xla.Line("XLA Modules", "jit_step(1)", 40, 40)],
    programs={1: ("jit_step", "f32[8,4]"), 4: ("jit_other", "")},
)
MADE = {
    "StepStats of TensorFlow 1": _made(gpu_runs.old()),
    "StepStats of TensorFlow 2": _made(gpu_runs.new()),
    "an export of Nsight Systems": _made(write_nsys(CASES["device_waits"]().events)),
    "a profile of PyTorch": _made(planted_file("two_devices")),
    "device waits of PyTorch": _made(planted_file("device_waits")),
    "XPlane of a GPU": _made(xplane_files.nvidia()),
    "XPlane of JAX on eight devices": lambda _: REPOSITORY / "examples" / "profiles" / "jax_eight_devices.xplane.pb.gz",
    "TPUs": _built(TPU),
    "XPlane of TPUs": _made(xplane_files.tpu()),
    "JSON of XLA that names neither calls nor devices": _made(_unnamed()),
    "a Chrome trace": _made(_generic()),
}
SOON = ("kineto/a100_event_sync.json.gz", "timeline/tf1_timeline.json", "xplane/mi300_jax_conv.xplane.pb")
"""Small ones of three formats, read each time; the others by .ci/run."""
REAL = [
    *(f"kineto/{name}.json.gz" for name in KINETO_NAMES if not name.startswith(("v100", "b200", "mi300_resnet"))),
    "profiler_service/torch_process_captured_by_tf_client.xplane.pb",
    "timeline/tf1_run_metadata.pb", "timeline/tf1_timeline.json", "timeline/tf1_timeline_memory.json",
    "timeline/tf1_timeline_nodataflow.json", "xplane/jax_cpu4_json/vm.trace.json.gz", "xplane/mi300_jax_conv.xplane.pb",
]  # fmt: skip


def assert_carried(path: Path, writer: Writer, folder: Path) -> None:
    if writer.name == "timeline" and len(stepscope.open(path).trace.nodes) == 0:
        with pytest.raises(OutputError, match="no node of a TensorFlow graph"):
            check(path, writer, folder)
    else:
        check(path, writer, folder)


@pytest.mark.parametrize("writer", READ_BACK, ids=lambda writer: writer.name)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if "eight" in name else ()) for name in MADE]
)
def test_what_is_written_is_read_again(name: str, writer: Writer, tmp_path: Path) -> None:
    assert_carried(MADE[name](tmp_path), writer, tmp_path)


@pytest.mark.real
@pytest.mark.parametrize("writer", READ_BACK, ids=lambda writer: writer.name)
@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in SOON else pytest.mark.slow) for name in REAL])
def test_what_is_written_of_a_real_profile_is_read_again(name: str, writer: Writer, tmp_path: Path) -> None:
    assert_carried(real_trace(name), writer, tmp_path)
