"""Devices that work on what the profile does not hold are busy, whatever the profile shows."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import UNRECORDED_NS
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from tests.kit.builder import TraceDrawing
from tests.kit.events import Stream
from tests.kit.traces import KINETO_TRACES
from tests.support import real_facts, trace_of

MS = 1_000


def analyse_real(name: str) -> Facts:
    return real_facts(name)


def parts(facts: Facts, at: int = 0) -> dict[str, int]:
    """Booked time of one device by category, in µs."""
    booked = facts.accounts[at].parts.sum(axis=0)
    return {str(c): int(booked[c.code]) // 1_000 for c in CATEGORIES if booked[c.code]}


def told(found: Diagnosis) -> str | None:
    return next((notice.text for notice in found.notices if notice.code == "device_busy_unrecorded"), None)


def decode(held_us: int = 463_000, memory: str = "Pageable") -> TraceDrawing:
    """One iteration of a server: kernels and a copy are launched while the device is still at older work."""
    drawing = TraceDrawing()
    drawing.annotation("step[DECODE bs=1]", 0, held_us + 8 * MS)
    first = drawing.launch(120, 10)
    drawing.kernel(first, "embedding", held_us, 20)
    copied = drawing.call("hipMemcpyWithStream", 200, held_us - 100)
    drawing.copy(copied, "DtoH", held_us + 21, 29, memory=memory)
    at = held_us + 150
    for index in range(100):
        begun = max(at + 20, held_us + 150 + 100 * index)
        drawing.kernel(drawing.launch(at, 5), f"layer_{index}", begun, 95)
        at += 50
    return drawing


def test_a_device_that_is_blocked_for_is_busy_and_the_step_is_its_own_time():
    facts = analyse(trace_of(decode().events()))
    booked = parts(facts)
    assert booked["unrecorded"] == 463_000
    assert "unknown_device" not in booked
    assert facts.mean_step_ns == pytest.approx(10_150_000, rel=0.02)
    assert facts.accounts[0].rows.phases[0] == "before"
    found = diagnose(facts)
    assert "computes" in found.verdict
    assert "idle" not in found.verdict
    text = told(found)
    assert text is not None
    assert "463 ms" in text
    assert "hipMemcpyWithStream" in text


def test_no_cure_saves_what_the_device_spends_on_work_that_was_not_recorded():
    found = diagnose(analyse(trace_of(decode().events())))
    assert all((f.saving_ns_per_step or 0) < 1_000_000 for f in (*found.findings, *found.minor))


def test_launches_that_do_not_start_tell_it_without_a_blocking_call():
    drawing = TraceDrawing()
    at = 500
    for index in range(50):
        drawing.kernel(drawing.launch(at, 5), f"k{index}", 20 * MS + 200 * index, 195)
        at += 20
    drawing.sync(600, 4)  # returns at once: it is not what shows it
    facts = analyse(trace_of(drawing.events()))
    assert "work that was launched did not start" in (told(diagnose(facts)) or "")
    assert parts(facts)["unrecorded"] >= 19_000
    assert facts.mean_step_ns == pytest.approx(10_000_000, rel=0.02)


def steady(stall_at: int, *, wait_us: int = 0, between: str | None = None) -> TraceDrawing:
    """Four steps of ten kernels; one kernel of the third starts 5 ms late, or the host waits so long before it."""
    drawing = TraceDrawing()
    at, free = 0, 0
    for step in range(4):
        begun = at
        for index in range(10):
            late = step == 2 and index == stall_at
            if late and wait_us:
                drawing.sync(at, free - at + wait_us + 10)
                at = free + wait_us + 20
                free = at
            if late and between:
                drawing.call(between, at, 5)
                at += 5
            launched = drawing.launch(at, 5)
            start = max(at + 10, free) + (5 * MS if late and not wait_us else 0)
            drawing.kernel(launched, f"k{index}", start, 300)
            at, free = at + 30, start + 301
        drawing.step(step, begun, at - begun)
    return drawing


def test_a_queued_kernel_that_starts_late_waits_for_what_was_not_recorded_within_the_step_too():
    facts = analyse(trace_of(steady(5).events()))
    assert parts(facts)["unrecorded"] == pytest.approx(5_000, abs=20)
    rows = facts.accounts[0]
    assert rows.parts[rows.step_row(2), Category.UNRECORDED.code] > 0


def test_a_host_blocked_while_nothing_recorded_runs_waits_for_what_was_not_recorded():
    facts = analyse(trace_of(steady(5, wait_us=5 * MS).events()))
    assert parts(facts)["unrecorded"] == pytest.approx(5_000, abs=60)
    assert not diagnose(facts).findings or diagnose(facts).findings[0].rule != "sync_bound"


def test_a_stream_that_was_told_to_wait_for_an_event_may_wait_for_anything():
    facts = analyse(trace_of(steady(5, between="cudaStreamWaitEvent").events()))
    assert "unrecorded" not in parts(facts)
    assert parts(facts)["unknown_device"] >= 4_800


def test_a_second_device_at_work_may_be_what_was_waited_for():
    drawing = steady(5)
    start = next(e.start_ns // 1_000 for e in drawing.events() if e.name == "k5" and e.start_ns > 10_000_000)
    drawing.kernel(drawing.launch(10, 5), "other", 40, start, Stream(1, 7))
    facts = analyse(trace_of(drawing.events()))
    assert "unrecorded" not in parts(facts)


def test_staging_a_large_batch_is_the_hosts_and_not_the_devices():
    drawing = TraceDrawing()
    copied = drawing.call("cudaMemcpyAsync", 10, 30 * MS)
    drawing.copy(copied, "HtoD", 29 * MS, 1 * MS, size=100_000_000, memory="Pageable")
    drawing.kernel(drawing.launch(31 * MS, 5), "gemm", 31 * MS + 20, 10 * MS)
    assert "unrecorded" not in parts(analyse(trace_of(drawing.events())))


def test_where_the_memory_is_not_said_a_call_that_blocks_for_a_large_batch_stages_it():
    """ROCm writes "Host -> Device" of any memory. A few bytes take no time to stage."""

    def batch(size: int) -> dict[str, int]:
        drawing = TraceDrawing()
        drawing.kernel(drawing.launch(0, 5), "before", 20, 100)
        copied = drawing.call("hipMemcpyWithStream", 200, 30 * MS)
        drawing.copy(copied, "HtoD", 29 * MS, 1 * MS, size=size, memory="")
        drawing.kernel(drawing.launch(31 * MS, 5), "gemm", 31 * MS + 20, 10 * MS)
        return parts(analyse(trace_of(drawing.events())))

    large = batch(100_000_000)
    assert "unrecorded" not in large
    assert large["copy_staging"] > 28 * MS
    assert batch(4_096)["unrecorded"] > 28 * MS


def test_a_first_launch_that_loads_code_is_the_hosts():
    drawing = TraceDrawing()
    drawing.kernel(drawing.launch(10, 40 * MS), "gemm", 40 * MS + 20, 10 * MS)
    assert "unrecorded" not in parts(analyse(trace_of(drawing.events())))


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_no_device_is_at_unrecorded_work_and_idle_or_at_recorded_work_at_once(name: str):
    facts = analyse_real(name)
    for activity, account in facts.devices:
        start, end = activity.unrecorded
        assert ((end - start) >= 0).all()
        spans = list(zip(start.tolist(), end.tolist(), strict=True))
        both = [((activity.start < until) & (activity.end > since)).any() for since, until in spans]
        assert not any(both)
        assert account.idle is not None
        gaps = account.idle.gaps
        assert not any(((gaps.start < until) & (gaps.end > since)).any() for since, until in spans)
        assert int(account.parts[:, Category.UNRECORDED.code].sum()) == int((end - start).sum())


@pytest.mark.real
@pytest.mark.parametrize(("name", "step_ms"), [("decode", 10.74), ("prefilldecode", 156.5)])
def test_a_server_of_which_only_the_last_step_is_recorded_has_that_steps_time(name: str, step_ms: float):
    facts = analyse_real(f"kineto/mi300_vllm_{name}.json.gz")
    assert facts.mean_step_ns == pytest.approx(step_ms * 1e6, rel=0.01)
    assert facts.activities[0].unrecorded[1][0] > UNRECORDED_NS
