"""What is written as XPlane and read again is what it was: slices, devices, launches, flows, XLA facts and steps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from stepscope.analysis.analyse import analyse
from stepscope.formats.xplane import read as xplane
from stepscope.formats.xplane.writing import write
from stepscope.inputs.source import Source
from stepscope.trace import tables as t
from stepscope.trace.trace import Trace
from tests.kit.events import Event
from tests.kit.random_traces import random_traces
from tests.kit.traces import REPOSITORY, marks_of, real_trace
from tests.support import read_trace, real_profile, trace_of

DETAILS = ("device", "stream", "bytes", "direction", "source_memory", "target_memory", "registers", "shared_memory",
           "occupancy_pct", "graph")  # fmt: skip


def read_back(trace: Trace, folder: Path) -> Trace:
    path = folder / "host.xplane.pb"
    write(trace, path)
    with path.open("rb") as file:
        assert xplane.recognise(file.read(65_536))
    return xplane.read(Source(str(path)), None)


def slice_keys(trace: Trace) -> list[tuple[Any, ...]]:
    """Each slice as what it is and where it lies."""
    slices, tracks, text = trace.slices, trace.tracks, (*trace.strings, None)
    on_device = (tracks.kind == t.TrackKind.DEVICE_STREAM)[slices.track]
    device = np.where(on_device, tracks.device[slices.track], -1)
    stream = np.where(on_device, tracks.stream[slices.track], t.NULL)
    columns = (slices.start_ns, slices.dur_ns, slices.kind, slices.correlation, slices.external_id, device, stream)
    return list(
        zip(
            [text[code] for code in slices.name.tolist()],
            [text[code] for code in slices.category.tolist()],
            *(column.tolist() for column in columns),
            strict=True,
        )
    )


def rows_of(trace: Trace, table: t.Table, ids: tuple[str, ...], columns: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """A table's rows, with slices for their ids and texts for their codes."""
    keys, text = [*slice_keys(trace), None], (*trace.strings, None)
    found = []
    for column in (*ids, *columns):
        values = getattr(table, column)
        if column in ids:
            found.append([keys[row] for row in values.tolist()])
        elif values.dtype == np.int32 and column != "device":
            found.append([text[code] for code in values.tolist()])
        else:
            # A share of 0 is what profilers of XPlane write where they could not tell.
            found.append([None if value != value or (column == "occupancy_pct" and not value) else value
                          for value in values.tolist()])  # fmt: skip
    return Counter(zip(*found, strict=True))


def check_same(one: Trace, other: Trace) -> None:
    assert Counter(slice_keys(other)) == Counter(slice_keys(one))
    assert rows_of(other, other.device_ops, ("slice", "launch"), DETAILS) == rows_of(
        one, one.device_ops, ("slice", "launch"), DETAILS
    )
    assert rows_of(other, other.launches, ("call", "op"), ()) == rows_of(one, one.launches, ("call", "op"), ())
    before, after = analyse(one).markers, analyse(other).markers
    assert (after.numbers, after.start.tolist(), after.end.tolist()) == (
        before.numbers, before.start.tolist(), before.end.tolist(),
    )  # fmt: skip
    assert not other.completeness.losses


@given(events=random_traces(grain_ns=1))
def test_arbitrary_traces(events: list[Event], tmp_path_factory: pytest.TempPathFactory) -> None:
    trace = trace_of(events)
    if len(trace.slices):
        check_same(trace, read_back(trace, tmp_path_factory.mktemp("trace")))


KINETO = ("a100_event_sync_multi_stream", "h100_bert_small", "mi300_resnet_checkpointing_rank0_of_8",
          "mi300_vllm_decode", "mtia_inference", "v100_resnet50_workers0")  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in KINETO])
def test_profiles_of_pytorch(name: str, tmp_path: Path) -> None:
    trace = real_profile(f"kineto/{name}.json.gz").trace
    again = read_back(trace, tmp_path)
    check_same(trace, again)
    assert rows_of(again, again.flows, ("source", "target"), ("kind",)) == rows_of(
        trace, trace.flows, ("source", "target"), ("kind",)
    )
    assert again.info.origin_epoch_ns == trace.info.origin_epoch_ns
    assert [(d.id, d.name, d.memory_bytes, d.multiprocessors) for d in again.info.devices] == [
        (d.id, d.name, d.memory_bytes, d.multiprocessors) for d in trace.info.devices
    ]


def test_a_profile_without_a_device(tmp_path: Path) -> None:
    trace = read_trace(REPOSITORY / "examples" / "profiles" / "cpu_input_bound.json.gz")
    check_same(trace, read_back(trace, tmp_path))


@pytest.mark.real
def test_a_profile_of_jax(tmp_path: Path) -> None:
    trace = xplane.read(Source(str(real_trace("xplane/mi300_jax_conv.xplane.pb"))), None)
    again = read_back(trace, tmp_path)
    check_same(trace, again)
    columns = ("module", "program", "run", "op", "category", "scope", "flops", "bytes_accessed", "replica_groups")
    assert rows_of(again, again.xla_ops, ("slice",), columns) == rows_of(trace, trace.xla_ops, ("slice",), columns)
    assert len(again.xla_ops) == 25
    assert again.info.devices == trace.info.devices
