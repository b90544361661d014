"""The share of ops on host and device, where profiles of TensorFlow name the op of every kernel (``tf_op``)."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.placement import Placement
from stepscope.pipeline import open as open_profile
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import EXECUTORS, GET_NEXT, TfGpuJob
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

US = 1_000_000
USED = 2
"""Of four steps the first and the last are not used."""


def job(host_us: int = 0) -> TfGpuJob:
    made = TfGpuJob()
    for number in range(4):
        with made.step(number), made.function():
            made.get_next(200)
            with made.on("tf_data_private_threadpool/9"):
                made.host("decode/DecodeJpeg:DecodeJpeg", 900)
            with made.executing():
                made.host("dense/ReadVariableOp:ReadVariableOp", 3)
                for layer in range(8):
                    made.op(f"dense_{layer}/MatMul:MatMul", "volta_sgemm_128x64_nn", 100)
                for lookup in range(2 if host_us else 0):
                    made.op(f"lookup_{lookup}/Unique:UniqueV2", None, host_us)
    return made


def placement(data: bytes) -> Placement:
    found = analyse(read(data)).placement
    assert found is not None
    return found


def test_every_op_that_computes_is_on_the_device() -> None:
    found = placement(job().data())
    assert (found.host_ops, found.device_ops) == (0, USED * 8), "neither tasks, variables read, nor tf.data's own ops"
    assert found.device_share_by_count == found.device_share_by_time == 1.0


def test_ops_without_a_kernel_are_on_the_host() -> None:
    found = placement(job(host_us=100).data())
    assert (found.host_ops, found.device_ops) == (USED * 2, USED * 8)
    assert found.device_share_by_count == 0.8
    assert found.device_share_by_time == pytest.approx(0.8)


def test_input_is_no_op_of_the_host() -> None:
    made = TfGpuJob()
    for number in range(4):
        with made.step(number), made.function(), made.executing(EXECUTORS[1]):
            made.host("IteratorGetNext:IteratorGetNext", 5_000)
            made.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", 100)
    assert placement(made.data()).device_share_by_time == 1.0
    assert GET_NEXT not in {row["label"] for row in read(made.data()).table("tracks").to_dicts()}


def compiled(*, beside: bool) -> bytes:
    """A step whose kernels are those of a module, and perhaps one of an op that runs by itself."""
    stats = {"hlo_op": "fusion.1", "hlo_module": "cluster_0", "program_id": 7, "tf_op": "cluster_0/MatMul:MatMul"}
    kernels = [Ev("fusion", (10 + 20 * k) * US, 5 * US, {"correlation_id": Unsigned(k + 1), **stats}) for k in range(3)]
    calls = [Ev("fusion", (5 + 20 * k) * US, 2 * US, {"correlation_id": Unsigned(k + 1)}) for k in range(3)]
    ops = [Ev("cluster_0/xla_run:_XlaRun", 4 * US, 60 * US)]
    if beside:
        own = {"correlation_id": Unsigned(9), "tf_op": "loss/Mul:Mul"}
        kernels.append(Ev("mul", 90 * US, 5 * US, own))
        calls.append(Ev("mul", 81 * US, 2 * US, {"correlation_id": Unsigned(9)}))
        ops.append(Ev("loss/Mul:Mul", 80 * US, 5 * US))
    events = sorted((Ev("train", 0, 110 * US, {"step_num": 1, "_r": 1}), *ops, *calls), key=lambda e: (e.start, -e.dur))
    host = Plane("/host:CPU", (line("python", Ev("EagerExecute", 1 * US, 1 * US), *events, id=1),))
    return space(Plane("/device:GPU:0", (line("Stream #20(Kernel)", *kernels, id=20),)), host)


def test_of_what_is_compiled_alone_nothing_is_told() -> None:
    assert analyse(read(compiled(beside=False))).placement is None


def test_ops_beside_a_compiled_module_are_told() -> None:
    found = placement(compiled(beside=True))
    assert (found.host_ops, found.device_ops) == (0, 1)


def test_the_report_gives_the_shares(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "trainer.xplane.pb"
    path.write_bytes(job(host_us=100).data())
    shares = open_profile(str(path)).document()["summary"]["device_ops_share"]
    assert shares == {"by_count": 0.8, "by_time": pytest.approx(0.8)}
