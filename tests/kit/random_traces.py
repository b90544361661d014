"""Small arbitrary traces for property tests: legal ones, and such that break what a reader may assume.

Ranges cross, kernels overlap on one stream, durations are zero, launches are missing, come after their work
or share a number, steps nest or are absent, events are in no order. Times are integers in nanoseconds and
events are never negative.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.kit.events import Category, Event, FlowEnd, Stream, Thread, Track

_THREADS = (Thread("main"), Thread("main"), Thread("autograd"), Thread("loader"))
_STREAMS = (Stream(0, 7), Stream(0, 7), Stream(0, 20), Stream(1, 7), Stream(0, 0))

_HOST_NAMES: dict[Category, tuple[str, ...]] = {
    "cpu_op": ("aten::linear", "aten::item", "aten::copy_", "AddmmBackward0"),
    "user_annotation": (
        "ProfilerStep#1",
        "ProfilerStep#2",
        "ProfilerStep#7",
        "forward",
        "Optimizer.step#SGD.step",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "",
    ),
    "python_function": ("train.py(12): main", "nn.Module: Net_0", "<built-in function collect>", "Python GC"),
    "cuda_runtime": (
        "cudaLaunchKernel",
        "cudaMemcpyAsync",
        "cudaStreamSynchronize",
        "cudaDeviceSynchronize",
        "cudaMalloc",
        "cudaGraphLaunch",
    ),
    "cuda_driver": ("cuLaunchKernel",),
}
_DEVICE_NAMES: dict[Category, tuple[str, ...]] = {
    "kernel": ("sgemm_128x128", "elementwise", "ncclDevKernel_AllReduce_Sum_f32_RING_LL()"),
    "gpu_memcpy": ("copy",),
    "gpu_memset": ("Memset (Device)",),
    "cuda_sync": ("Stream Wait Event", "Stream Sync"),
    "gpu_user_annotation": ("forward",),
}


@st.composite
def _spans(draw: st.DrawFn, grain_ns: int) -> tuple[int, int]:
    """A start and a duration; few distinct values, so that edges meet often."""
    start = draw(st.one_of(st.integers(0, 40), st.integers(0, 5_000)))
    dur = draw(st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 3_000)))
    return start * grain_ns, dur * grain_ns


@st.composite
def _event(draw: st.DrawFn, grain_ns: int) -> Event:
    on_host = draw(st.booleans())
    names = _HOST_NAMES if on_host else _DEVICE_NAMES
    cat = draw(st.sampled_from(sorted(names)))
    track: Track = draw(st.sampled_from(_THREADS)) if on_host else draw(st.sampled_from(_STREAMS))
    start, dur = draw(_spans(grain_ns))
    calls = ("cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
    correlation = draw(st.one_of(st.none(), st.integers(1, 12))) if cat in calls else None
    args: dict[str, Any] = {}
    if cat == "gpu_memcpy":
        args = {
            "direction": draw(st.sampled_from(("HtoD", "DtoH", "DtoD", "PtoP"))),
            "bytes": draw(st.integers(0, 1 << 40)),
            "memory": draw(st.sampled_from(("Pageable", "Pinned"))),
        }
    elif cat == "gpu_memset":
        args = {"bytes": draw(st.integers(0, 1 << 20))}
    elif cat == "cuda_sync" and draw(st.booleans()):
        args = {
            "wait_on_stream": draw(st.sampled_from((7, 20, -1))),
            "wait_on_cuda_event_record_corr_id": draw(st.integers(-1, 12)),
        }
    flows = (FlowEnd(draw(st.integers(1, 4)), draw(st.booleans())),) if cat == "cpu_op" and draw(st.booleans()) else ()
    return Event(cat, draw(st.sampled_from(names[cat])), track, start, dur, correlation, flows, args)


@st.composite
def _tidy_step(draw: st.DrawFn, number: int, start: int, grain_ns: int) -> list[Event]:
    """A step as it should be: launches in order, work after its launch, streams in order."""
    at, free, events = start + grain_ns, start, []
    for index in range(draw(st.integers(0, 4))):
        at += draw(st.integers(0, 30)) * grain_ns
        call, work = draw(st.integers(0, 5)) * grain_ns, draw(st.integers(0, 40)) * grain_ns
        correlation = 1000 + 10 * number + index
        begin = max(at + call, free) + draw(st.integers(0, 3)) * grain_ns
        events += [
            Event("cuda_runtime", "cudaLaunchKernel", Thread(), at, call, correlation),
            Event("kernel", f"kernel_{index}", Stream(), begin, work, correlation),
        ]
        at, free = at + call, begin + work
    end = at + draw(st.integers(1, 20)) * grain_ns
    return [Event("user_annotation", f"ProfilerStep#{number}", Thread(), start, end - start), *events]


@st.composite
def random_traces(draw: Any, grain_ns: int = 1000, most: int = 25) -> list[Event]:
    """A trace of a few tidy steps, arbitrary events strewn over it, some of them twice, in no order.

    With ``grain_ns=1000`` every generation of the format can write it; 1 gives times to the nanosecond.
    """
    events: list[Event] = []
    start = draw(st.integers(0, 50)) * grain_ns
    for number in range(draw(st.integers(0, 4))):
        step = draw(_tidy_step(number, start, grain_ns))
        events += step
        start = step[0].end_ns + draw(st.sampled_from((0, 0, 1, 500))) * grain_ns
    events += draw(st.lists(_event(grain_ns), max_size=most))
    if events and draw(st.booleans()):
        events += draw(st.lists(st.sampled_from(events), max_size=3))
    return list(draw(st.permutations(events))) if draw(st.booleans()) else events
