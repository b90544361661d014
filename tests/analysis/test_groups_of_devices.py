"""Which devices exchange data, of what XLA writes of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stepscope.analysis.exchange.groups import groups_of


def names(written: str, devices: range) -> list[str]:
    """The group of the same op on each of some devices, whose list is gone through once."""
    walked: list[int] = []

    def listed() -> Any:
        walked.append(1)
        return iter([SimpleNamespace(id=device) for device in devices])

    trace: Any = SimpleNamespace(
        info=SimpleNamespace(
            process_groups=(), devices=type("Devices", (), {"__iter__": lambda _: listed()})(), rank=3
        ),
        strings=["step", written],
        xla_ops=SimpleNamespace(slice=np.array([5]), replica_groups=np.array([1]), module=np.array([0])),
        device_ops=SimpleNamespace(group_size=np.array([-1]), process_group=np.array([-1]), stream=np.array([0])),
    )
    row, slice_ = np.array([0], np.int32), np.array([5], np.int32)
    found = [groups_of(trace, device, row, slice_)[0].name for device in devices]
    assert len(walked) <= 1
    return [name.removeprefix(f"step {written}").strip() for name in found]


@pytest.mark.parametrize(
    ("written", "devices", "told"),
    [
        ("{{0,2},{1,3}}", range(4), ["of devices 0, 2", "of devices 1, 3"] * 2),
        ("[2,2]<=[4]", range(4), ["of devices 0, 1"] * 2 + ["of devices 2, 3"] * 2),
        ("{{0,1,2,3}}", range(4), [""] * 4),
        ("{{0,2},{1,3}}", range(2), ["of device 0 of rank 3", "of device 1 of rank 3"]),
    ],
)
def test_a_device_is_of_the_group_that_lists_it(written: str, devices: range, told: list[str]) -> None:
    assert names(written, devices) == told
