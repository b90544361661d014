"""XPlane files of each kind of device, as their profilers write them, and how the tests read them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from stepscope.formats.xplane import read as xplane
from stepscope.inputs.source import Source
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Trace
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

US = 1_000_000
"""Picoseconds."""


def read(data: bytes) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "host.xplane.pb"
        path.write_bytes(data)
        return xplane.read(Source(path))


def host(*events: Ev, name: str = "python") -> Plane:
    """A plane of one thread."""
    return Plane("/host:CPU", (line(name, *events, id=5),))


def rows(trace: Trace, *columns: str, table: str = "slices") -> list[tuple[object, ...]]:
    """Some columns of a table, texts and nulls resolved, slices (but for the table of slices) by their name."""
    frame = trace.table(table)
    found = []
    for column in columns:
        values = frame[column].to_list()
        if (
            table != "slices"
            and column in ("slice", "launch", "call", "op", "source", "target")
            and (not values or isinstance(next((v for v in values if v is not None), 0), int))
        ):
            values = [None if row is None else trace.name_of(row) for row in values]
        found.append(values)
    return list(zip(*found, strict=True))


def kinds(trace: Trace) -> dict[str, Kind]:
    return {trace.strings[name]: Kind(kind) for name, kind in zip(trace.slices.name, trace.slices.kind, strict=True)}


def nvidia() -> bytes:
    """A step on a GPU under TensorFlow or JAX: two kernels, two copies, a memset, a graph, a collective."""
    kernel = "regs:32 static_shared:1024 dynamic_shared:0 grid:8,1,1 block:256,1,1 occ_pct:50"
    gpu = Plane(
        "/device:GPU:1",
        (
            line(
                "Stream #13(Kernel,MemcpyH2D)",
                Ev("MemcpyH2D", 20 * US, 5 * US, {
                    "correlation_id": Unsigned(11),
                    "memcpy_details": "kind_src:pageable kind_dst:device size:4096 dest:1 async:1"}),
                Ev("ampere_sgemm_128x64_nn", 30 * US, 40 * US, {
                    "correlation_id": Unsigned(12), "kernel_details": kernel, "theoretical_occupancy_pct": 62.5,
                    "tf_op": "XlaModule:", "name": "jit(step)/dot_general", "hlo_op": "dot.1", "hlo_module": "jit_step",
                    "program_id": 7}),
                Ev("Memset", 72 * US, 1 * US, {
                    "correlation_id": Unsigned(13), "Memset_details": "kind:device num_bytes:64 async:1"}),
                Ev("fusion", 80 * US, 10 * US, {
                    "correlation_id": Unsigned(14), "cuda_graph_id": Unsigned(5), "kernel_details": kernel,
                    "tf_op": "model/dense/MatMul:MatMul"}),
                id=13, time_ns=1000,
            ),
            line(
                "Stream #14(Kernel)",
                Ev("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 75 * US, 30 * US, {
                    "correlation_id": Unsigned(15)}),
                id=14, time_ns=1000,
            ),
            line("XLA Modules", Ev("jit_step(7)", 30 * US, 45 * US), id=99, time_ns=1000),
            line("Framework Name Scope", Ev("model", 30 * US, 60 * US), id=98, time_ns=1000),
            line("Launch Stats", Ev("kernel 1", 30 * US, 60 * US), id=97, time_ns=1000),
            line("CUPTI overhead", Ev("Buffer Flush", 0, 5 * US), id=96, time_ns=1000),
        ),
        {"device_vendor": "Nvidia", "gpu_device_name": "NVIDIA A100-SXM4-80GB", "core_count": 108,
         "memory_size": Unsigned(85_000_000_000), "compute_cap_major": 8, "compute_cap_minor": 0},
    )  # fmt: skip
    host = Plane(
        "/host:CPU",
        (
            line(
                "python",
                Ev("train", 0, 120 * US, {"_r": 1, "step_num": 41}),
                Ev("cuMemcpyHtoDAsync_v2", 10 * US, 2 * US, {"correlation_id": Unsigned(11)}),
                Ev("ampere_sgemm_128x64_nn", 14 * US, 2 * US, {"correlation_id": Unsigned(12)}),
                Ev("cuMemsetD8Async", 18 * US, 1 * US, {"correlation_id": Unsigned(13)}),
                Ev("cuGraphLaunch", 20 * US, 1 * US, {"correlation_id": Unsigned(14)}),
                Ev("ncclKernel", 22 * US, 1 * US, {"correlation_id": Unsigned(15)}),
                Ev("cuStreamSynchronize", 30 * US, 80 * US, {"correlation_id": Unsigned(16)}),
                id=4711, time_ns=1000,
            ),
        ),
    )  # fmt: skip
    return space(gpu, host)


def tpu(*, run_on_host: int = (3 << 27) + 77) -> bytes:
    """Two runs of a module on a TPU, as XProf's collector writes them: ops know neither module nor run."""
    dot = "%fusion.3 = bf16[8,8]{1,0:T(8,128)} fusion(bf16[8]{0} %p)"
    copy = "%infeed.1 = (f32[8]{0}) infeed(token[] %t)"
    shared = {
        dot: {"hlo_category": "convolution fusion", "tf_op": "jit(step)/dot_general:", "flops": 1024,
              "bytes_accessed": 512, "source": "train.py:12"},
        "all-reduce.1": {"hlo_category": "all-reduce"},
    }  # fmt: skip

    def run(at: int, number: int) -> list[list[Ev]]:
        return [
            [Ev(str(number), at, 80 * US)],
            [Ev("jit_step(123)", at, 80 * US, {"run_id": number, "queue_id": 0})],
            [Ev(copy, at, 10 * US), Ev(dot, at + 10 * US, 50 * US), Ev("all-reduce.1", at + 60 * US, 20 * US)],
            [Ev("copy-start.1", at + 5 * US, 60 * US)],
        ]

    steps, modules, ops, waiting = (a + b for a, b in zip(run(100 * US, 77), run(300 * US, 78), strict=True))
    chip = Plane(
        "/device:TPU:0",
        (
            line("Steps", *steps, id=1),
            line("XLA Modules", *modules, id=2),
            line("XLA Ops", *ops, id=3),
            line("Async XLA Ops", *waiting, id=4),
            line("Framework Ops", Ev("dot_general", 110 * US, 50 * US), id=5),
        ),
        {"device_type_string": "TPU v4"},
        shared,
        {dot: "fusion.3", copy: "infeed.1"},
    )
    sparse = Plane("/device:TPU:0 SparseCore 1", (line("Sparse Core Ops", Ev("gather.1", 110 * US, 5 * US), id=1),))
    host = Plane("/host:CPU", (
        line("runtime", Ev("TpuLoadedExecutable::ExecuteLaunch", 40 * US, 20 * US),
             Ev("DoEnqueueProgram", 50 * US, 5 * US, {"run_id": run_on_host, "device_ordinal": 0, "queue_id": 0}),
             Ev("DoEnqueueProgram", 250 * US, 5 * US, {"run_id": run_on_host + 1, "device_ordinal": 0, "queue_id": 0}),
             id=5),
    ))  # fmt: skip
    return space(chip, sparse, host)


def processor() -> bytes:
    """One run of a module on two devices of XLA:CPU, the second handed to a pool's thread; then a blocking wait."""

    def op(name: str, device: int, id: int) -> dict[str, int | str]:
        return {"hlo_op": name, "hlo_module": "jit_f", "program_id": 3, "run_id": -5, "device_ordinal": device,
                "_pt": 0, "_p": id}  # fmt: skip

    python = line(
        "python",
        Ev("train", 0, 900 * US, {"step_num": 3}),
        Ev("load", 1 * US, 5 * US),
        Ev("CommonPjRtLoadedExecutable::Execute (jit_f)", 10 * US, 40 * US, {"run_id": -5, "_pt": 5, "_p": -5}),
        Ev("CommonPjRtBuffer::Await", 60 * US, 1 * US, {"_pt": 0, "_p": 77}),
        Ev("CommonPjRtBuffer::Await", 400 * US, 1 * US, {"_ct": 0, "_c": 77}),
        Ev("CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice", 500 * US, 50 * US),
        Ev("Handle inputs", 501 * US, 1 * US),
        Ev("copy.2", 510 * US, 10 * US, op("copy.2", 0, 90) | {"run_id": 6}),
        id=1,
        shown="python",
    )
    pool = line(
        "tf_XLAPjRtCpuClient/7",
        Ev("[1] CommonPjRtLoadedExecutable::Execute (jit_f)", 20 * US, 5 * US,
           {"global_device_id": 1, "_ct": 5, "_c": -5}),
        Ev("dot.1", 30 * US, 10 * US, op("dot.1", 1, 81)),
        Ev("all-reduce.4", 50 * US, 100 * US, op("all-reduce.4", 1, 82)),
        Ev("Rendezvous", 55 * US, 90 * US),
        Ev("end: all-reduce.4", 149 * US, 1 * US, {"_ct": 0, "_c": 82}),
        Ev("end: dot.1", 200 * US, 1 * US, {"_ct": 0, "_c": 81}),
        id=2,
    )  # fmt: skip
    eigen = line("tf_XLAEigen/8", Ev("dot.1", 31 * US, 12 * US, op("dot.1", 0, 83)), id=3)
    return space(Plane("/host:CPU", (python, pool, eigen)))
