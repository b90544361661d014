"""Known truths of real traces (their README states them; the figures were not made by this code)."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from stepscope.formats.chrome.events import ArgumentColumn, RawEvents
from stepscope.formats.chrome.kineto import fill
from stepscope.formats.chrome.scan import read_events
from stepscope.inputs.source import Source
from stepscope.trace import intervals as iv
from tests.kit.traces import KINETO_NAMES, KINETO_TRACES, real_trace

pytestmark = pytest.mark.real
MS = 1_000_000


@cache
def raw(name: str) -> RawEvents:
    return read_events(Source(str(real_trace(f"kineto/{name}.json.gz"))))


@cache
def facts(name: str) -> Facts:
    return analyse(fill(raw(name))())


@cache
def diagnosis(name: str) -> Diagnosis:
    return diagnose(facts(name))


def notices(name: str) -> set[str]:
    return {notice.code for notice in diagnosis(name).notices}


def rules(name: str) -> list[str]:
    return [finding.rule for finding in diagnosis(name).findings]


@pytest.mark.parametrize(
    ("name", "busy_ms", "span_ms"),
    [
        ("v100_resnet50_workers0", 603.56, 996.48),
        ("v100_two_ranks_rank1", 1000.61, 1732.97),
        ("h100_qwen05b", 45.65, 49.65),
        ("h100_bert_small", 0.31, 3.91),
        ("b200_eager_rank0_of_8", 11.60, 84.49),
    ],
)
def test_busy_time_and_span_of_the_device(name, busy_ms, span_ms):
    (activity,) = facts(name).activities
    assert iv.measure(activity.busy) / MS == pytest.approx(busy_ms, abs=0.006)
    assert (activity.end.max() - activity.start.min()) / MS == pytest.approx(span_ms, abs=0.006)


def test_resnet_is_input_bound_and_the_five_long_gaps_are_the_loaders():
    name = "v100_resnet50_workers0"
    (account,) = facts(name).accounts
    gaps, pieces = account.idle.gaps, account.idle.pieces
    inside = np.flatnonzero((gaps.end - gaps.start > 40 * MS) & (gaps.start > gaps.start[0]))
    assert inside.size == 5
    for gap in inside.tolist():
        mine = pieces.gap == gap
        waiting = (pieces.end - pieces.start)[mine & (pieces.category == Category.INPUT.code)].sum()
        length = gaps.end[gap] - gaps.start[gap]
        assert 48 * MS <= length <= 63 * MS
        assert waiting >= 0.99 * length
    finding = diagnosis(name).findings[0]
    assert finding.rule == "input_bound"
    assert "_SingleProcessDataLoaderIter" in finding.why
    assert "num_workers" in finding.fix
    assert (finding.where[0].file, finding.where[0].line) == ("resnet50_profiler_api.py", 42)
    assert diagnosis(name).bottleneck == "input"


def test_resnet_on_mi300_has_even_windows_and_work_from_before_the_profile():
    name = "mi300_resnet_checkpointing_rank0_of_8"
    assert [ns / MS for ns in facts(name).step_ns.tolist()] == pytest.approx([18.98, 18.98, 18.55], abs=0.01)
    assert max(facts(name).host_step_ns) < 17 * MS
    assert int(facts(name).activities[0].before_profile.sum()) == 968
    assert {"profile_launched_before", "host_ran_ahead"} <= notices(name)
    assert diagnosis(name).bottleneck == "communication"


def test_a_device_bound_profile_says_what_the_device_does_in_vain():
    """Normalisation and rotary embedding run op by op: 40 % of kernel time is in runs that one kernel could do."""
    assert rules("h100_qwen05b") == ["memory_bound_chain"]
    assert diagnosis("h100_qwen05b").bottleneck == "device"


def test_a_host_bound_profile_with_stacks_says_both():
    # A tiny model on a large GPU, whose layers ask for the signature of a function in each call.
    assert rules("h100_bert_small") == ["launch_bound", "hot_python", "too_little_work"]
    for finding in diagnosis("h100_bert_small").findings[:2]:
        assert finding.confidence == "medium"
        assert "recording stacks" in finding.why
    assert "`signature` (inspect.py:3346)" in diagnosis("h100_bert_small").findings[1].why
    assert "capture_slows_host" in notices("h100_bert_small")


def test_many_small_launches_are_launch_bound():
    assert rules("v100_two_ranks_rank1")[0] == "launch_bound"


@pytest.mark.parametrize("name", ["a100_rank0_of_128", "a100_rank1_of_128"])
def test_the_sampled_pair_is_called_sampled(name):
    assert "profile_sampled" in notices(name)
    assert all(finding.cost_ns_per_step is None for finding in diagnosis(name).findings)


def test_only_the_sampled_pair_is_called_sampled():
    assert {name for name in KINETO_NAMES if "profile_sampled" in notices(name)} == {
        "a100_rank0_of_128",
        "a100_rank1_of_128",
    }


def test_a_graph_launch_owns_all_its_ops():
    trace = facts("mi300_vllm_decode").trace
    calls, counts = np.unique(trace.launches.call, return_counts=True)
    assert counts.max() == 421
    assert trace.name_of(int(calls[counts.argmax()])) == "hipGraphLaunch"


def test_waits_of_mtia_are_no_work():
    trace = facts("mtia_inference").trace
    names = {trace.name_of(int(s)) for s in trace.device_ops.slice}
    assert "event_wait" not in names
    assert "event_record" not in names
    assert int((trace.device_ops.direction != 0).sum()) == 877


@pytest.mark.parametrize("name", ["cpu_only_rank34_of_300", "cpu_only_no_device"])
def test_without_a_device_nothing_is_said_of_one(name):
    assert "profile_no_device" in notices(name)
    assert facts(name).activities == []
    assert "No device was recorded" in diagnosis(name).verdict


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_every_event_of_the_file_is_accounted_for(name):
    trace = fill(read_events(Source(str(real_trace(name)))))()
    left = sum(loss.count for loss in trace.completeness.losses if loss.code == "flow_open" or loss.lost_events)
    assert sum(trace.completeness.rows.values()) + left == trace.completeness.events


def without_python_frames(events: RawEvents) -> RawEvents:
    """The same profile, captured without stacks."""
    keep = np.flatnonzero(events.category != events.strings.index("python_function"))
    place = np.full(len(events), -1, np.int32)
    place[keep] = np.arange(keep.size, dtype=np.int32)

    def kept(argument: ArgumentColumn) -> ArgumentColumn:
        rows = place[argument.rows]
        return ArgumentColumn(rows[rows >= 0], argument.ints[rows >= 0], argument.texts[rows >= 0])

    columns = {
        f.name: getattr(events, f.name)[keep]
        for f in dataclasses.fields(RawEvents)
        if isinstance(getattr(events, f.name), np.ndarray)
    }
    arguments = {key: kept(argument) for key, argument in events.arguments.items()}
    return dataclasses.replace(events, arguments=arguments, **columns)


@pytest.mark.parametrize(
    "name",
    [
        "b200_eager_rank0_of_8",
        "h100_bert_small",
        "h100_qwen05b",
        "mi300_vllm_decode",
        "mi300_resnet_checkpointing_rank0_of_8",
        "mi300_vllm_prefilldecode",
    ],
)
def test_deleting_python_frames_moves_only_python_time(name):
    before = facts(name).accounts[0].parts.sum(axis=0)
    after = analyse(fill(without_python_frames(raw(name)))()).accounts[0].parts.sum(axis=0)
    idle = sum(int(before[c.code]) for c in CATEGORIES if c not in BUSY)
    for category in (Category.INPUT, Category.SYNC, Category.LAUNCH):
        assert abs(int(after[category.code] - before[category.code])) <= 0.02 * idle
    named = {
        Category.PYTHON,
        Category.UNKNOWN_HOST,
        Category.PROFILER,
        Category.GC,
        Category.COMPILE,
        Category.CHECKPOINT_IO,
    }
    for category in CATEGORIES:
        if category not in named:
            assert abs(int(after[category.code] - before[category.code])) <= 0.02 * idle, category


@pytest.mark.parametrize("name", ["b200_eager_rank0_of_8", "h100_bert_small", "h100_qwen05b"])
def test_hardly_any_idle_time_is_unknown_where_stacks_were_recorded(name):
    parts = facts(name).accounts[0].parts[facts(name).used_rows(facts(name).accounts[0])].sum(axis=0)
    idle = sum(int(parts[c.code]) for c in CATEGORIES if c not in BUSY)
    assert parts[Category.UNKNOWN_HOST.code] <= 0.02 * idle
