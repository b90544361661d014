"""Runs on GPUs as some generation of TensorFlow records them; see ``step_stats`` for the messages.

TensorFlow up to 1.13 (``old``): kernels have no label, copies lie in the rows of streams and in ``memcpy``, and the
streams of every GPU are called after GPU 0. TensorFlow 2 (``new``): labels, rows by stream and way of copying, the time
of the launch, calls that synchronise, threads.
"""

from __future__ import annotations

from tests.kit.step_stats import CPU, GPU, device, memory, node, output, run_metadata

H2D = node("edge_12_input:MEMCPYHtoD", 20, 30, "MEMCPYHtoD 4096 bytes (Pageable to Device)")
D2H = node("unknown:MEMCPYDtoH", 520, 10, "MEMCPYDtoH 4 bytes (Device to Pageable)")


def old(gpus: int = 1) -> bytes:
    """One dequeue, then three nodes on each GPU, each with a kernel."""
    rows, kernels = [], []
    for gpu in range(gpus):
        tower = f"tower_{gpu}/" if gpus > 1 else ""
        rows.append(
            device(
                f"/job:localhost/replica:0/task:0/gpu:{gpu}",
                node(
                    f"{tower}conv/Conv2D",
                    30,
                    20,
                    f"{tower}conv/Conv2D = Conv2D(input/_5, w)",
                    parts=[output(0, 1, [4, 8], 128, "GPU_0_bfc"), memory("GPU_0_bfc", [(35, 128)], in_use=4096)],
                ),
                node(f"{tower}conv/Relu", 52, 5, f"{tower}conv/Relu = Relu({tower}conv/Conv2D)"),
                node(f"{tower}loss/MatMul", 390, 10, f"{tower}loss/MatMul = MatMul({tower}conv/Relu, x)"),
            )
        )
        kernels += [
            node(f"{tower}conv/Conv2D:Conv2D", 60 + gpu, 200),
            node(f"{tower}conv/Relu:Relu", 262 + gpu, 40),
            node(f"{tower}loss/MatMul:MatMul", 400 + gpu, 100),
        ]
    return run_metadata(
        device(
            CPU,
            node("_SOURCE", 0, 1, "_SOURCE = NoOp()"),
            node("queue", 2, 3, "queue = FIFOQueueV2()"),
            node("input", 5, 10, "input = QueueDequeueManyV2(queue, n)", parts=[output(0, 1, [4, 32], 512)]),
        ),
        *rows,
        device("/gpu:0/stream:all", *kernels),
        device("/gpu:0/stream:7", *kernels),
        device("/gpu:0/memcpy", H2D, D2H),
        device("/gpu:0/stream:8", H2D),
        device("/gpu:0/stream:9", D2H),
    )


def new() -> bytes:
    """Two nodes on a GPU, a collective of no node, a copy, a memset and a call that waits for all of it."""
    details = "regs:{} static_shared:0 dynamic_shared:{} grid:2,1,1 block:256,1,1 occ_pct:{}"
    kernels = [
        node(name, start, dur, f"{kernel} {details.format(*numbers)}", scheduled=launched, thread=thread)
        for name, kernel, start, dur, numbers, launched, thread in (
            ("dense/MatMul:MatMul", "void gemm<float>(int)", 100, 50, (32, 1024, 50), 60, 77),
            ("dense/Relu:Relu", "void relu()", 160, 20, (16, 0, 100), 75, 77),
            ("ncclDevKernel_AllReduce_Sum", "ncclDevKernel_AllReduce_Sum", 200, 100, (96, 0, 12.5), 90, 78),
        )
    ]
    copied = "MemcpyH2D kind_src:pageable kind_dst:device size:2048 dest:0 async:1"
    copy = node("MemcpyH2D", 40, 12, copied, scheduled=30, thread=77)
    return run_metadata(
        device("/device:GPU:0/sync", node("cuStreamSynchronize", 120, 190, "ThreadId 77", thread=77)),
        device("/device:GPU:0/stream:14<MemcpyH2D>", copy),
        device("/device:GPU:0/memcpy", copy),
        device("/device:GPU:0/stream:13", *kernels[:2]),
        device("/device:GPU:0/stream:all", *kernels),
        device("/device:GPU:0/stream:20", kernels[2]),
        device("/device:GPU:0/stream:", node("Memset", 310, 5, "Memset"), node("Overhead", 320, 5, "Overhead")),
        device(
            "/host:CPU",
            node("SessionRun", 0, 400, thread=77),
            node("dense/MatMul", 55, 30, "MatMul", thread=77),
            threads={77: "tf_inter_op", 78: "nccl"},
        ),
        device(
            GPU,
            node("dense/MatMul", 55, 15, "dense/MatMul = MatMul(x, w)", nanos=(55_500, 15_250)),
            node("dense/Relu", 72, 8, "dense/Relu = Relu(dense/MatMul)", nanos=(72_000, 8_000)),
        ),
        graphs=[b"\x0a\x05\x0a\x03abc"],
    )
