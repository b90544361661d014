"""What TensorFlow calls device rows, nodes, kernels and copies: every form that some version writes."""

from __future__ import annotations

import pytest

from stepscope.names.tf_graph import (
    CopyLabel,
    DeviceRow,
    KernelLabel,
    RowKind,
    is_copy,
    is_memset,
    is_passive,
    parse_annotation,
    parse_copy,
    parse_kernel,
    parse_label,
    parse_row,
)

TASK = "/job:localhost/replica:0/task:0"
ROWS = {
    f"{TASK}/device:CPU:0": DeviceRow(RowKind.HOST, TASK, 0),
    f"{TASK}/cpu:0": DeviceRow(RowKind.HOST, TASK, 0),
    f"{TASK}/device:XLA_CPU:0": DeviceRow(RowKind.HOST, TASK, 0),
    f"{TASK}/device:GPU:1": DeviceRow(RowKind.LAUNCH, TASK, 1),
    f"{TASK}/gpu:1": DeviceRow(RowKind.LAUNCH, TASK, 1),
    f"{TASK}/device:TPU:3": DeviceRow(RowKind.LAUNCH, TASK, 3),
    "/job:ps/task:2/cpu:0": DeviceRow(RowKind.HOST, "/job:ps/task:2", 0),
    "/gpu:0/stream:12": DeviceRow(RowKind.STREAM, None, 0, 12),
    "/device:GPU:2/stream:12": DeviceRow(RowKind.STREAM, None, 2, 12),
    "/device:GPU:0/stream:14<MemcpyH2D>": DeviceRow(RowKind.STREAM, None, 0, 14, "MemcpyH2D"),
    "/gpu:0/context#0/stream#3:MemcpyDtoH": DeviceRow(RowKind.STREAM, None, 0, 3, "MemcpyDtoH"),
    "/device:GPU:0/stream:": DeviceRow(RowKind.STREAM, None, 0),
    "/gpu:0/stream:all": DeviceRow(RowKind.ALL, None, 0),
    f"{TASK}/gpu:0/stream:all": DeviceRow(RowKind.ALL, TASK, 0),
    "/gpu:0/memcpy": DeviceRow(RowKind.COPIES, None, 0),
    "/device:GPU:1/memcpy:all": DeviceRow(RowKind.COPIES, None, 1),
    "/device:GPU:0/sync": DeviceRow(RowKind.SYNC, None, 0),
    "/host:CPU": DeviceRow(RowKind.THREADS),
    "": DeviceRow(RowKind.UNKNOWN),
    "unknown": DeviceRow(RowKind.UNKNOWN),
    "/device:GPU:0/temperature": DeviceRow(RowKind.UNKNOWN),
    "/device:GPU:99999999999999999999": DeviceRow(RowKind.UNKNOWN),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str) -> None:
    assert parse_row(name) == ROWS[name]


LABELS = {
    "c = MatMul(a, b:1)": ("MatMul", "a, b:1"),
    "c = NoOp()": ("NoOp", None),
    "[cpu 1.2MB 0.3MB] c = MatMul(a, b)": ("MatMul", "a, b"),
    "x = _Recv(edge_5_y @/job:localhost/replica:0/task:0/cpu:0)": (
        "_Recv",
        "edge_5_y @/job:localhost/replica:0/task:0/cpu:0",
    ),
    "": (None, None),
    "ThreadId 77": (None, None),
    "[4096B] x from /cpu:0 to /gpu:0": (None, None),
    " = MatMul(a)": (None, None),
}


@pytest.mark.parametrize("label", LABELS)
def test_labels(label: str) -> None:
    assert parse_label(label) == LABELS[label]


ANNOTATIONS = {
    ("dense/MatMul:MatMul", ""): ("dense/MatMul", "MatMul"),
    ("w:Const:MEMCPYHtoD", "MEMCPYHtoD 4 bytes"): ("w", "Const"),
    ("edge_12_input:MEMCPYHtoD", ""): ("edge_12_input", "MEMCPYHtoD"),
    ("unknown:MEMCPYHtoD", ""): (None, None),
    ("unknown", ""): (None, None),
    ("ncclAllReduceKernel", ""): (None, None),
    ("void Eigen::internal::Kernel<float>(int)", ""): (None, None),
    ("gemm", "gemm regs:32@@::a/b:MatMul#id=3#"): ("a/b", "MatMul"),
    ("gemm", "{lambda()#1} regs:32@@a/b:MatMul#id=3#"): ("a/b", "MatMul"),
}


@pytest.mark.parametrize("texts", ANNOTATIONS)
def test_annotations(texts: tuple[str, str]) -> None:
    assert parse_annotation(*texts) == ANNOTATIONS[texts]


KERNELS = {
    "sgemm": KernelLabel(),
    "void f(int) regs:32 shm:48 grid:1,2,3 block:4,5,6@@a:B": KernelLabel("void f(int)", 32, 48, "1,2,3", "4,5,6"),
    "f regs:8 static_shared:16 dynamic_shared:8 grid:1,1,1 block:64,1,1 occ_pct:62.5": KernelLabel(
        "f", 8, 24, "1,1,1", "64,1,1", 62.5
    ),
}


@pytest.mark.parametrize("label", KERNELS)
def test_kernels(label: str) -> None:
    assert parse_kernel(label) == KERNELS[label]


COPIES = {
    ("a:MEMCPYHtoD", "MEMCPYHtoD 4096 bytes (Pageable to Device)", None): CopyLabel(4096, "hd", "pageable", "device"),
    ("MemcpyD2H", "MemcpyD2H kind_src:device kind_dst:pinned size:64 dest:0 async:1", "MemcpyD2H"): CopyLabel(
        64, "dh", "device", "pinned"
    ),
    ("a:MEMCPYPtoP", "[128B] a from /gpu:0 to /gpu:1", None): CopyLabel(128, "pp", "", ""),
    ("a", "[128B] a from /cpu:0 to /gpu:1", None): CopyLabel(128, "hd", "", ""),
    ("a", "a bytes:32 aync to device:1", "MemcpyD2D"): CopyLabel(32, "dd", "", ""),
    ("a:CopyDeviceToHost", "CopyDeviceToHost 7 bytes", None): CopyLabel(7, "dh", "", ""),
    ("a", "", None): CopyLabel(None, "", "", ""),
}


@pytest.mark.parametrize("texts", COPIES)
def test_copies(texts: tuple[str, str, str | None]) -> None:
    assert parse_copy(*texts) == COPIES[texts]


def test_what_is_a_copy_and_what_a_memset() -> None:
    assert is_copy("a:MEMCPYHtoD", "", None)
    assert is_copy("a", "", "MemcpyH2D")
    assert not is_copy("path2d/h2d:Conv2D", "void copy_kernel() regs:3", None)
    assert is_memset("Memset", "", None)
    assert not is_memset("a:Fill", "void fill() regs:3", None)


def test_nodes_that_only_wait_for_others() -> None:
    waiting = ("_Recv", "_HostSend", "RecvTensor", "StatefulPartitionedCall", "While", "QueueEnqueueManyV2")
    assert all(map(is_passive, waiting))
    assert not any(map(is_passive, ("MatMul", "QueueDequeueManyV2", "WhileLoop", "IfElse", "Recv", "Case3")))
