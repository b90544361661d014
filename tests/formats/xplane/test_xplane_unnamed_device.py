"""Ops of XLA:CPU that name no device, as in PyTorch/XLA 2.9: the one device's, where there can be but one."""

from __future__ import annotations

import pytest

from tests.formats.xplane.xplane_files import US, read, rows
from tests.kit.xplanes import Ev, Plane, line, space

EXECUTE = "PjRtCpuExecutable::ExecuteHelper"


def op(name: str, start: int, dur: int, **stats: int) -> Ev:
    return Ev(
        name, start * US, dur * US, {"hlo_op": name, "hlo_module": "SyncTensorsGraph.8", "program_id": 0, **stats}
    )


def profile(*ops: Ev, call: str = EXECUTE) -> bytes:
    calls = line("python", Ev(call, 0, 10 * US, {}))
    return space(Plane("/host:CPU", (calls, line("tf_XLAPjRtCpuClient/1", *ops))))


def test_they_are_the_only_devices():
    trace = read(profile(op("dot.1", 20, 30), op("add.2", 60, 10), op("dot.1", 100, 30)))
    assert [(device.id, device.kind) for device in trace.info.devices] == [(0, "cpu")]
    assert rows(trace, "slice", "device", table="device_ops") == [("dot.1", 0), ("add.2", 0), ("dot.1", 0)]


@pytest.mark.parametrize(
    "data",
    [
        profile(op("dot.1", 20, 30), op("dot.1", 40, 30)),
        profile(op("dot.1", 20, 30, device_ordinal=-1), op("add.2", 60, 10, device_ordinal=-1)),
        profile(op("dot.1", 20, 30), op("add.2", 60, 10), call="EagerExecute"),
    ],
    ids=["an op runs twice at a time", "no device, says TensorFlow", "nothing runs on devices"],
)
def test_else_they_are_the_hosts(data: bytes):
    trace = read(data)
    assert trace.info.devices == ()
    assert len(trace.device_ops) == 0
    assert "host_op" in set(trace.table("slices")["kind"])
