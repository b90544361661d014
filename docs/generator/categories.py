"""``docs/categories.md``: the frozen names under which every nanosecond is booked."""

from __future__ import annotations

from generator.markdown import section, table
from stepscope.analysis.categories import Category
from stepscope.analysis.limits import DISPATCH_GAP_NS, LATENCY_CAP_NS, UNRECORDED_NS
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.units import format_ns

INTRO = f"""\
# Where time goes: the categories

Every nanosecond of a device is booked to exactly one of these names; the integers of a row of
[`accounting`](report-schema.md#accounting_row) sum to its duration. The names are frozen. Made from
`docs/generator/categories.py` by `make docs`.

A gap is explained through the op that *ended* it. Time before that op's launch call belongs to what the launching
thread did, to the first that applies of: `profiler`, `gc`, `compile`, `checkpoint_io`, `input`, `allocator`, `sync`,
`launch`, `python`, `unknown_host`. Time inside the call is `launch` (or `copy_staging`, `allocator`, `compile`), time
after it is latency, at most the profile's own 95th percentile and {format_ns(LATENCY_CAP_NS)}.

A profile without a device gets one account for its main thread. There each instant goes to the first of:
`profiler`, `gc`, `compile`, `checkpoint_io`, `input`, `allocator`, `host_compute`, `collective`, `python`,
`unknown_host`.
"""

DEFINITIONS: dict[Category, str] = {
    Category.COMPUTE: "At least one compute kernel runs.",
    Category.COLLECTIVE: "A collective (NCCL, RCCL, gloo …) runs and no compute kernel does; waiting and transfer, "
    "which one rank's profile cannot tell apart.",
    Category.COPY_H2D: "A copy from host to device runs, and neither a kernel nor a collective does.",
    Category.COPY_D2H: "The same for a copy from device to host.",
    Category.COPY_D2D: "The same for a copy within a device, and for copies whose direction is not recorded.",
    Category.COPY_P2P: "The same for a copy between devices.",
    Category.MEMSET: "A memset runs and nothing else does.",
    Category.COLLECTIVE_WAIT: "The part of a collective spent waiting for the last rank to arrive.",
    Category.COLLECTIVE_TRANSFER: "The part of a collective in which data moves.",
    Category.UNRECORDED: "The device worked on what the profile does not hold: ops were launched and did not start, or "
    f"the host was blocked in a wait for the device, for {format_ns(UNRECORDED_NS)} or more in which nothing recorded "
    "ran. Before a device's first op it belongs to no step.",
    Category.HOST_MEMORY: "The device waits in the end of an asynchronous copy (XLA's `copy-done`) to or from memory "
    "of the host (`S(5)`), and nothing else runs.",
    Category.MEMORY_SPACE: "The same for a copy between the device's own memories, or memories not recorded.",
    Category.PEER: "The device waits for another one or another core: in the end of a send or receive, for a "
    "SparseCore, at a barrier of the cores that run one program.",
    Category.INPUT: "The launching thread was inside a data loader's `next` or another input range: reading, decoding, "
    "transforming, collating.",
    Category.SYNC: "The host had been blocked in a wait for the device (`.item()`, `nonzero`, `synchronize`, a "
    "pageable copy …), and the lead it lost was missing when the device ran dry; at most the time blocked. Recorded "
    "Python code stays Python's.",
    Category.COMPILE: "The host compiled or loaded code (torch.compile, Triton, loading of kernels).",
    Category.ALLOCATOR: "The host was inside a call that allocates or frees device memory.",
    Category.COPY_STAGING: "The host moved pageable memory into a staging buffer before the copy could start.",
    Category.LAUNCH: "The host was dispatching and launching: Python, ops and runtime calls at most "
    f"{format_ns(DISPATCH_GAP_NS)} apart.",
    Category.LAUNCH_LATENCY: "The launch call had returned and the op had not begun, up to the latency cap.",
    Category.PYTHON: "Under a recorded Python frame, module or annotation, a stretch of more than "
    f"{format_ns(DISPATCH_GAP_NS)} with neither op nor launch: callbacks, logging, metrics. "
    "Without a device: any time there outside ops.",
    Category.CHECKPOINT_IO: "The host was saving or loading a checkpoint.",
    Category.GC: "Python's garbage collector ran; profiles that stepscope records show it.",
    Category.PROFILER: "The profiler's own work: starting, stopping, flushing buffers.",
    Category.DEPENDENCY: "The op was already launched and waited for a recorded event or for another stream.",
    Category.DEVICE_LATENCY: "The op was already launched and the device had not begun it, up to the latency cap.",
    Category.UNKNOWN_HOST: "The launching thread did something the profile does not show; a notice names the option "
    "that would (PyTorch: `with_stack=True`).",
    Category.UNKNOWN_DEVICE: "The op was launched longer ago than any latency explains, or its launch is not recorded: "
    "the profile does not show what it waited for.",
    Category.GRAPH_BUILD: "The host built or traced a graph.",
    Category.TRANSFER: "Buffers were on their way to the server that owns the device.",
    Category.INFEED: "The device waited for the host to bring data or take it: infeed, outfeed, host send and receive.",
    Category.HOST_COMPUTE: "Without a device: an op ran on a host thread.",
}

ORDER = """\
Where streams overlap, each instant goes to the first of: compute, collective, copy, memset. Collectives and copies
therefore count only where nothing hides them."""


def page() -> str:
    """Busy categories and idle ones."""
    now = list(Category)
    return "\n".join(
        [
            INTRO,
            section("The device works", ORDER, listing([c for c in now if LABELS[c].busy])),
            section("The device is idle", listing([c for c in now if not LABELS[c].busy])),
        ]
    )


def listing(categories: list[Category]) -> str:
    """A row per category."""
    rows = ((f"`{category}`", LABELS[category].words, DEFINITIONS[category]) for category in categories)
    return table(("name", "in reports", "when"), rows)
