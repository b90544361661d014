"""Real XPlane files against a plain decoder of the tests' own, and what is known of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.formats.xplane import read as xplane
from stepscope.inputs.source import Source
from stepscope.trace.tables import Kind
from tests.formats.xplane.xplane_files import rows
from tests.kit.traces import real_trace
from tests.kit.wire import fields

MI300 = "xplane/mi300_jax_conv.xplane.pb"
TORCH = "profiler_service/torch_process_captured_by_tf_client.xplane.pb"
FILES = [pytest.param(MI300, 6024, id="mi300"), pytest.param(TORCH, 21361, id="torch")]
EPOCH = 10**18

pytestmark = pytest.mark.real


def plain_events(data: bytes) -> list[tuple[str, int, int, int]]:
    """Name, start and end in ps, and duration of every event."""
    found = []
    for number, plane in fields(data):
        if number != 1:
            continue
        parts: list[tuple[int, Any]] = list(fields(plane))  # type: ignore[arg-type]
        entries = [dict(fields(entry)) for number, entry in parts if number == 4]
        names = {entry.get(1, 0): dict(fields(entry[2])).get(2, b"") for entry in entries}  # type: ignore[arg-type]
        for number, line in parts:
            if number == 3:
                told: list[tuple[int, Any]] = list(fields(line))
                time = dict(told).get(3, 0) * 1000
                for number, event in told:
                    if number == 4:
                        own: dict[int, Any] = dict(fields(event))
                        start, dur = time + own.get(2, 0), own.get(3, 0)
                        found.append((names[own[1]].decode(), start, start + dur, dur))  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize(("name", "count"), FILES)
def test_every_event_is_where_a_plain_decoder_finds_it(name: str, count: int) -> None:
    path = real_trace(name)
    trace, plain = xplane.read(Source(path)), plain_events(path.read_bytes())
    assert trace.completeness.events == len(plain) == count
    assert trace.completeness.losses == ()
    # Only frames and allocations have other names here; instants are on the host.
    spans = [(name, start // 1000, end // 1000) for name, start, end, dur in plain if dur]
    origin = min(start for _, start, _ in spans)
    expected = Counter((start - origin, end - start) for _, start, end in spans)
    assert Counter(zip(trace.slices.start_ns.tolist(), trace.slices.dur_ns.tolist(), strict=True)) == expected
    named = zip(rows(trace, "name"), trace.slices.kind, strict=True)
    assert Counter(name for name, *_ in spans if not name.startswith("$")) == Counter(
        name for (name,), kind in named if kind != Kind.PYTHON_FRAME
    )
    assert len(trace.instants) + len(trace.memory) == sum(dur == 0 for *_, dur in plain)


@pytest.mark.parametrize(("name", "count"), FILES)
def test_it_is_read_again_from_its_offsets(name: str, count: int) -> None:
    path = real_trace(name)
    trace = xplane.read(Source(path))
    chosen = trace.slices.offset[:: max(len(trace.slices) // 200, 1)].tolist()
    found = xplane.arguments(Source(path), chosen)
    steps = dict(zip(trace.slices.offset.tolist(), trace.slices.correlation.tolist(), strict=True))
    for offset, stats in zip(chosen, found, strict=True):
        if "correlation_id" in stats:
            assert stats["correlation_id"] == steps[offset]
    assert name == TORCH or sum("correlation_id" in stats for stats in found) > 0


def test_a_profile_of_jax_on_eight_gpus_of_amd() -> None:
    trace = xplane.read(Source(real_trace(MI300)))
    assert (trace.info.framework, trace.info.origin_epoch_ns) == ("JAX", 1757516928109224562)
    assert trace.info.host == "chi-mi300x-013.ord.vultr.cpe.ice.amd.com"
    assert [(d.id, d.name, d.memory_bytes, d.multiprocessors, d.compute_capability) for d in trace.info.devices] == [
        (number, "AMD Instinct MI300X", 206141652992, 304, None) for number in (0, 7)]  # fmt: skip
    assert trace.completeness.rows == {"slices": 4664, "memory": 460, "instants": 900}
    ops = Counter(rows(trace, "device", "bytes", "direction", "registers", "shared_memory", table="device_ops"))
    assert ops == {(0, 655360, "d2d", None, None): 53, (7, None, "unknown", None, None): 25}
    launched = rows(trace, "slice", "launch", table="device_ops")
    assert Counter(launched) == {
        ("CopyDeviceToDevice", "hipMemcpyDtoDAsync"): 53,
        **{(name, name): 5 for name, call in launched if name == call},
    }
    assert set(trace.launches.basis.tolist()) == {0}
    late = trace.slices.start_ns[trace.device_ops.slice] >= trace.slices.start_ns[trace.device_ops.launch]
    assert late.all(), "an op before its launch"
    assert Counter(rows(trace, "module", "program", "category", "source", table="xla_ops")) == {
        ("jit_forward_3d_conv", 15, "fusion", None): 10,
        ("jit_forward_3d_conv", 15, "custom-call", "/workspace/conv-jax/jax_conv_profiling.py:77"): 10,
        ("jit_forward_3d_conv", 15, "fusion", "/workspace/conv-jax/jax_conv_profiling.py:77"): 5,
    }
    kinds = Counter(Kind(kind).name for kind in trace.slices.kind)
    assert (kinds["KERNEL"], kinds["COPY"], kinds["PYTHON_FRAME"]) == (25, 53, 2648)
    total = trace.memory.bytes.sum()
    assert abs(int(total)) < 10**9, "what is allocated is freed, but for the last arrays"


def test_a_profile_of_pytorch_captured_by_tensorflow_s_client() -> None:
    trace = xplane.read(Source(real_trace(TORCH)))
    assert (trace.info.framework, trace.info.host, trace.info.devices) == ("PyTorch", "localhost:9401", ())
    marks = rows(trace, "slice", "source", "number", table="step_marks")
    assert [number for _, _, number in marks] == list(range(1697, 1766))
    assert {(name, source) for name, source, _ in marks} == {("train", "step_num_root")}


@pytest.mark.parametrize("name", [MI300, TORCH])
def test_every_nanosecond_is_accounted_for(name: str) -> None:
    facts = analyse(xplane.read(Source(real_trace(name))))
    for account in facts.accounts:
        assert (account.parts.sum(axis=1) == account.rows.bounds[1:] - account.rows.bounds[:-1]).all()


def test_the_memory_of_a_tpu_is_what_programs_reserve_and_what_is_allocated() -> None:
    """Known: 21.49 GB of 31.2 GiB at most, on each of four chips."""
    trace = xplane.read(Source(real_trace("xplane/tpu_v6e_4_chips.xplane.pb")))
    memory = trace.memory
    assert (len(memory), set(memory.device.tolist())) == (906, {0, 1, 2, 3})
    assert set(memory.limit.tolist()) == {33_550_237_696}
    peaks = [int(memory.allocated[memory.device == chip].max()) for chip in range(4)]
    assert all(21_490_000_000 < peak < 21_500_000_000 for peak in peaks)
    assert (memory.allocated + memory.available == memory.limit).all()
