"""Recorded waits between streams: what each makes the next op of its stream wait for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from stepscope.analysis.categories import Category
from stepscope.analysis.waits import UNKNOWN_END, awaited_ends
from stepscope.trace.tables import NULL, Kind

DEVICES = (0, 2, 5)


class Activity(SimpleNamespace):
    """What a wait asks of a device's activity."""

    def __len__(self) -> int:
        return len(self.launch)


def drawn(seed: int, ops: int, waits: int, streams: int) -> tuple[Any, list[Any]]:
    """A trace's waits and calls, and its devices' ops, all at random: ties, absent ids and unknown streams too."""
    random = np.random.default_rng(seed)

    def some(high: int, count: int = waits) -> Any:
        return np.where(random.random(count) < 0.9, random.integers(0, high, count), NULL)

    activities = []
    for device in DEVICES:
        launch = random.integers(0, 1000, ops)
        activities.append(
            Activity(
                device=device,
                launched=random.random(ops) < 0.9,
                launch=launch,
                end=launch + random.integers(1, 300, ops),
                stream=random.integers(0, streams, ops),
                category=np.full(ops, Category.COMPUTE.code),
            )
        )
    slices = SimpleNamespace(
        kind=np.repeat([int(Kind.RUNTIME_CALL), int(Kind.DEVICE_WAIT)], waits),
        correlation=some(waits, 2 * waits),
        start_ns=random.integers(0, 1100, 2 * waits),
    )
    table = SimpleNamespace(
        slice=np.arange(waits, 2 * waits),
        device=random.choice([*DEVICES, 9], waits).astype(np.int32),
        stream=some(streams + 1),
        wait_on_stream=some(streams + 1),
        wait_on_correlation=some(waits),
    )
    return SimpleNamespace(device_waits=table, slices=slices), activities


def expected(trace: Any, activities: list[Any]) -> list[list[int]]:
    """The same, wait by wait, in words of the definition."""
    ends = [[NULL] * len(activity) for activity in activities]
    waits, slices = trace.device_waits, trace.slices
    calls: dict[int, int] = {}
    for slice_ in np.flatnonzero(slices.kind == Kind.RUNTIME_CALL).tolist():
        calls.setdefault(int(slices.correlation[slice_]), int(slices.start_ns[slice_]))
    queues = [
        (k, int(stream), sorted((one.launch[op], op) for op in np.flatnonzero(one.launched & (one.stream == stream))))
        for k, one in enumerate(activities)
        for stream in np.unique(one.stream)
    ]
    for w in range(len(waits.slice)):
        if waits.wait_on_correlation[w] == NULL or waits.stream[w] == NULL:
            continue
        begun, recorded = slices.start_ns[waits.slice[w]], calls.get(int(waits.wait_on_correlation[w]), NULL)
        own = [q for q in queues if activities[q[0]].device == waits.device[w] and q[1] == waits.stream[w]]
        following = [(q[0], op) for q in own for launch, op in q[2] if launch >= begun][:1]
        before = [
            (launch, int(activities[q[0]].end[op]), -rank)
            for q in queues
            if q[1] == waits.wait_on_stream[w] and q not in own
            for rank, (launch, op) in [*enumerate(x for x in q[2] if recorded != NULL and x[0] <= recorded)][-1:]
        ]
        for k, op in following:
            ends[k][op] = max(ends[k][op], max(before, default=(0, UNKNOWN_END, 0))[1])
    return ends


def test_every_wait_holds_up_the_op_that_follows_it_on_its_stream() -> None:
    known = 0
    for seed in range(40):
        trace, activities = drawn(seed, ops=40, waits=30, streams=4)
        found = [ends.tolist() for ends in awaited_ends(trace, activities)]
        assert found == expected(trace, activities)
        known += sum(end not in (NULL, UNKNOWN_END) for ends in found for end in ends)
    assert known > 100
