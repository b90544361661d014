"""A simulated TensorFlow job is read as the profile of one: who launched what, on which thread, in which op."""

from __future__ import annotations

from stepscope.trace.tables import Kind
from tests.formats.xplane.xplane_files import read, rows
from tests.kit.tf_gpu import EXECUTORS, GET_NEXT, TfGpuJob


def test_what_the_job_did_is_in_the_profile() -> None:
    job = TfGpuJob()
    with job.step(7):
        with job.function():
            job.get_next(500)
            with job.executing(EXECUTORS[1]):
                job.copy("MemcpyH2D", 20, 4096)
                job.op("dense/MatMul:MatMul", "volta_sgemm_128x64_nn", 100)
                job.synchronize()
        job.host("TFE_DeleteTensorHandle", 5)
    trace = read(job.data())
    assert trace.info.framework == "TensorFlow"
    assert [device.id for device in trace.info.devices] == [0]
    assert rows(trace, "op", "call", table="launches") == [
        ("MemcpyH2D", "MemcpyH2D"),
        ("volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"),
    ]
    label = dict(enumerate(trace.table("tracks")["label"].to_list()))
    where = {
        (label[track], trace.strings[name]) for track, name in zip(trace.slices.track, trace.slices.name, strict=True)
    }
    assert (GET_NEXT, "Iterator::Root::Prefetch") in where
    assert {(EXECUTORS[1], "dense/MatMul:MatMul"), (EXECUTORS[1], "cuStreamSynchronize")} <= where
    start, dur = trace.slices.start_ns, trace.slices.dur_ns
    step = trace.slices.kind == Kind.STEP
    assert dur[step].tolist() == [job.now * 1000]
    (sync,) = (row for row in range(len(start)) if trace.name_of(row) == "cuStreamSynchronize")
    kernel = max(row for row in range(len(start)) if trace.slices.kind[row] == Kind.KERNEL)
    assert trace.end_ns(sync) == trace.end_ns(kernel) + 2000, "the wait returns when the kernel is done"
