"""What no run can have is left out of a trace, and counted, whichever format says it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.check import fault_of
from stepscope.trace.plausible import MOST_RANKS
from stepscope.trace.trace import Completeness, Device, Info, Trace

FINE = Info(
    "test",
    rank=3,
    world_size=8,
    origin_epoch_ns=1 << 60,
    devices=(Device(0, "A100", 1 << 36, 108, (8, 0), clock_khz=1_410_000),),
    process_groups=({"pg_name": "0", "ranks": [0, 3]},),
    header={"deep": [{"er": 1}], "text": "é"},
)


def built(info: Info) -> Trace:
    return TraceBuilder().build(info, Completeness(0, {}))


def test_what_can_be_stays():
    made = built(FINE)
    assert made.info == FINE
    assert made.completeness.losses == ()


@pytest.mark.parametrize(
    ("given", "left", "said"),
    [
        ({"rank": -(2**63)}, {"rank": None}, "its rank"),
        ({"rank": 10**400}, {"rank": None}, "its rank"),
        ({"world_size": 0}, {"world_size": None}, "the number of ranks"),
        ({"world_size": -1}, {"world_size": None}, "the number of ranks"),
        ({"world_size": MOST_RANKS + 1}, {"world_size": None}, "the number of ranks"),
        ({"origin_epoch_ns": 2**63}, {"origin_epoch_ns": None}, "the date"),
        ({"devices": (Device(-1),)}, {"devices": ()}, "a device's number"),
        ({"devices": (Device(0, memory_bytes=-5),)}, {"devices": (Device(0),)}, "a device's memory bytes"),
        ({"devices": (Device(0, compute_capability=(-1, 0)),)}, {"devices": (Device(0),)},
         "a device's compute capability"),
        ({"process_groups": ({"ranks": [0, -2]},)}, {"process_groups": ({},)}, "the ranks of a group"),
        ({"header": {"a": [10**30]}}, {"header": {"a": [None]}}, "a number of its header"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_left_out_and_said(given, left, said):
    made = built(dataclasses.replace(FINE, **given))
    assert made.info == dataclasses.replace(FINE, **left)
    (loss,) = made.completeness.losses
    assert (loss.code, loss.damaged, loss.lost_events) == ("implausible", False, 0)
    assert said in loss.text
    assert made.completeness.complete


def test_halves_of_characters_are_no_text():
    made = built(dataclasses.replace(FINE, host="a\ud800", devices=(Device(0, "\udfff"),), header={"\ud800": "\ud800"}))
    assert (made.info.host, made.info.devices[0].name, made.info.header) == ("a?", "?", {"?": "?"})


def test_a_header_is_kept_to_some_depth():
    deep: object = "end"
    for _ in range(500):
        deep = [deep]
    made = built(dataclasses.replace(FINE, header={"deep": deep}))
    assert "what lies deep" in made.completeness.losses[0].text


def test_counts_that_cannot_be_are_absent():
    builder = TraceBuilder(["k"])
    builder.track(t.TrackKind.DEVICE_STREAM, "1", "s", device=0)
    one = np.zeros(3, np.int64)
    builder.slices(
        track=np.zeros(3, np.int32), start_ns=np.arange(3), dur_ns=one, name=np.zeros(3, np.int32),
        kind=np.full(3, t.Kind.COLLECTIVE, np.uint8),
    )  # fmt: skip
    kinds = {declared.name: t.dtype_of(declared) for declared in dataclasses.fields(t.DeviceOps)}
    columns = {name: np.full(3, -1 if kind == np.int32 else 0, kind) for name, kind in kinds.items()}
    columns |= {"slice": np.arange(3, dtype=np.int32), "device": np.zeros(3, np.int32)}
    columns |= {"group_size": np.array([8, -15, t.NULL]), "bytes": np.array([0, -1, 5])}
    builder.table(t.DeviceOps(**columns))
    made = builder.build(FINE, Completeness(3, {"slices": 3}))
    assert made.device_ops.group_size.tolist() == [8, t.NULL, t.NULL]
    assert made.device_ops.bytes.tolist() == [0, t.NULL, 5]
    assert made.completeness.losses[0].count == 2
    wrong = dataclasses.replace(made.device_ops, bytes=np.array([0, -1, 5]))
    assert "device_ops.bytes" in fault_of(dataclasses.replace(made, device_ops=wrong))
