"""What each reader reads, in a few lines: the sections of ``docs/formats.md``."""

from __future__ import annotations

from generator.markdown import table
from stepscope.formats.chrome.dialects import DIALECTS
from stepscope.formats.chrome.kineto_schema import CATEGORIES
from stepscope.formats.readers import READERS

CHROME = """\
The root is an object with `traceEvents`, or the bare list of events. Events of phases `X`, `B`/`E`, `b`/`n`/`e`,
`S`/`T`/`F`, `C`, `i`/`I`/`R`, `s`/`t`/`f` and `M` are read. What the events hold tells who wrote them:

{dialects}
Kineto JSON is read as `torch.profiler` has written it since 2021 (`export_chrome_trace`, `tensorboard_trace_handler`,
dynolog):

| written in | categories | times |
| --- | --- | --- |
| 2021 | `Operator`, `Runtime`, `Kernel`, `Memcpy`, …; threads as text (`"stream 7"`) | whole microseconds, Unix time |
| 2022 | `cpu_op`, `cuda_runtime`, `kernel`, `gpu_memcpy`, `user_annotation`, `python_function`, … | the same |
| 2023 | also `cuda_sync`, … | also with three decimals |
| since 2024 | also `cuda_driver`, `mtia_*`, `xpu_*`, … | three decimals, from `baseTimeNanoseconds` |

All spellings are read in any mixture, in upper or lower case. Times are read from the decimal text into integer
nanoseconds, exactly. Known categories: {categories}.

The text is read as a stream, files of more than 4 GB as well (measureme#236).
"""

DIALECT: dict[str, tuple[str, str]] = {
    "Kineto JSON": (
        "a category of PyTorch's profiler",
        "NVIDIA, AMD, Intel and MTIA devices, or none. [How to record one](guides/record-a-profile.md)",
    ),
    "TensorFlow Timeline": (
        "processes called `<device> Compute` that hold events of category `Op`",
        "as StepStats, in microseconds and without what the JSON leaves out (threads, names of kernels, memory of "
        "single nodes)",
    ),
    "XLA trace JSON": (
        "a process called `/host:…` or `/device:…`",
        "what `jax.profiler` writes beside the XPlane: threads, Python frames, steps, ops of XLA on the CPU, GPU "
        "streams, TPU ops. It leaves out programs and hand-overs between threads, and its end is missing past a "
        "million events (five million since the end of 2025, or what `TF_PROFILER_TRACE_VIEWER_MAX_EVENTS` says): the "
        "XPlane is better",
    ),
    "Chrome trace JSON": (
        "anything else",
        "ranges, counters, instants and arrows as they are drawn; Python functions recorded by VizTracer. No device "
        "is known",
    ),
}
"""Told by what, and what is read."""

SECTIONS: dict[str, str] = {
    "stepscope's saved form": """\
The whole trace as columns. A file that lies uncompressed on disk is
mapped, not read, and so opens at once. It is checked as if it came from anywhere, and refused where it is damaged, cut
off or of another version: it can be made again. It holds the SHA-256 of the file that it was made of: arguments of
events are read from a file of that name beside it that has this digest, wherever both were copied to, and from
nothing else.
""",
    "Nsight Systems SQLite": """\
Kernels, copies, memsets and whole CUDA graphs; runtime and driver calls;
waits between streams; NVTX ranges and marks, the ops that PyTorch writes among them; cuBLAS, cuDNN and MPI calls; OS
runtime calls; device memory; devices, host, threads and MPI ranks. Every table and column is asked for by name: what a
schema version lacks is not recorded. Of several processes the one with most device work is read; a notice counts the
others, and what is not used (samples, hardware metrics). The file is read page by page, without SQLite: damage costs
the rows it hit. A report (`.nsys-rep`) must be exported first. Written after NVIDIA's schema reference and tried on
files made after it; no file of the tool itself was at hand.
""",
    "TensorFlow StepStats": """\
Bytes as `SerializeToString()` gives them, of TensorFlow 1 or 2. Times in nanoseconds where they are
there, else in microseconds. Rows of CPUs are ops on lanes, which are no threads. Rows of a GPU (`/gpu:0`) are the host
launching, not the GPU's time; its streams (`/gpu:0/stream:12`) are. What `stream:all` and `memcpy` repeat counts once.
Memory, outputs and placement are read, graphs are not.
""",
    "XPlane": """\
CPUs, NVIDIA and AMD GPUs, TPUs, devices of plug-ins; a file, or a folder in TensorBoard's layout. Steps are told by
`step_num`, the line of steps, or the module that took most time. Launches are matched by correlation id, or by the run
of a compiled module. Ops get category, FLOPs, bytes, name scope and source line from the modules in the file. Only
streams and op lines are measured; lines derived from them (`Framework Ops`, `Source code`, …) are not read again.
Megascale's plane, sparse cores, and counters (`_counters_`, `counters_N`) were checked against XLA's and XProf's
sources and made files only: no recorded file that has them was at hand. Utilisation that is drawn per unit of a TPU
(`% util`), and the sizes that Megascale sends, are in no table.
[How to record one](guides/record-xla.md).
""",
    "Chrome trace JSON": CHROME,
}


def sections() -> str:
    """A part per reader, in the order in which they are tried."""
    assert list(SECTIONS) == [reader.name for reader in READERS]
    return "\n".join(f"### {reader.name}\n\nFrom {reader.about}.\n\n{_text(reader.name)}" for reader in READERS)


def _text(name: str) -> str:
    if SECTIONS[name] is not CHROME:
        return SECTIONS[name]
    assert list(DIALECT) == [dialect.name for dialect in DIALECTS]
    dialects = table(("dialect", "told by", "what is read"), ((one, *DIALECT[one]) for one in DIALECT))
    return CHROME.format(dialects=dialects, categories=", ".join(f"`{category}`" for category in CATEGORIES))
