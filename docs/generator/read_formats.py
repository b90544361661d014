"""What each reader reads, in a few lines: the sections of ``docs/formats.md``."""

from __future__ import annotations

from generator.markdown import table
from stepscope.formats.chrome.dialects import DIALECTS
from stepscope.formats.readers import READERS

CHROME = """\
The root is an object with `traceEvents`, or the bare list of events. What these hold tells who wrote them:

{dialects}
Kineto JSON is read as `torch.profiler` has written it since 2021, all spellings of categories in any mixture. Times
become integer nanoseconds exactly. The text is read as a stream, files of more than 4 GB as well.
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
        "what `jax.profiler` writes beside the XPlane, which is better: the JSON leaves out programs and hand-overs "
        "between threads, and ends after some million events (`TF_PROFILER_TRACE_VIEWER_MAX_EVENTS`)",
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
The whole trace as columns, open at once. It is refused where it is damaged, cut off or of another version. Arguments
of events are read from the file that it was made of, where that still lies beside it, unchanged.
""",
    "Nsight Systems SQLite": """\
Kernels, copies, memsets and whole CUDA graphs; runtime and driver calls; waits between streams; NVTX ranges and
marks, PyTorch's ops among them; calls of libraries, MPI and the OS; device memory; MPI ranks. Of several processes the
one with most device work is read; a notice counts the others, and what is not used (samples, hardware metrics). A
report (`.nsys-rep`) must be exported first. Tried on files made after NVIDIA's schema reference alone.
""",
    "TensorFlow StepStats": """\
Bytes as `SerializeToString()` gives them, of TensorFlow 1 or 2. Memory, outputs and placement are read, graphs are
not. [What the rows are](guides/tensorflow-1.md#what-the-rows-are).
""",
    "XPlane": """\
CPUs, NVIDIA and AMD GPUs, TPUs, devices of plug-ins; a file, or a folder in TensorBoard's layout. Steps are told by
`step_num`, the line of steps, or the module that took most time. Ops get category, FLOPs, bytes, name scope and source
line from the modules in the file. Megascale's plane, sparse cores and counters were checked on made files only.
Utilisation per unit of a TPU (`% util`), and the sizes that Megascale sends, are in no table.
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
    return CHROME.format(dialects=dialects)
