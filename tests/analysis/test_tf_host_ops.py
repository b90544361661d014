"""What ops of TensorFlow on the host are: checkpoints and exchanges, in profiles without a device."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, line, space

MS = 10**9
"""Picoseconds."""


def steps(*of_one: tuple[str, str, int, int]) -> Facts:
    """Six steps of 100 ms with ops: thread, name, start and duration in ms."""
    lines: dict[str, list[Ev]] = {"python": []}
    for step in range(6):
        at = 100 * step
        lines["python"].append(Ev("train", at * MS, 99 * MS, {"_r": 1, "step_num": step}))
        lines["python"].append(Ev("EagerLocalExecute: __inference_train_step_7", at * MS, 60 * MS))
        for thread, name, start, dur in of_one:
            lines.setdefault(thread, []).append(Ev(name, (at + start) * MS, dur * MS))
    planes = [line(name, *events, id=at) for at, (name, events) in enumerate(lines.items(), 1)]
    return analyse(read(space(Plane("/host:CPU", tuple(planes)))))


@pytest.mark.parametrize("type", ["CollectiveReduceV2", "CollectiveGatherV2", "NcclAllReduce", "CollectiveBcastRecvV2"])
def test_exchanges_count_where_nothing_computes_meanwhile(type: str) -> None:
    facts = steps(("tf_Compute/1", "MatMul:MatMul", 2, 20), ("collective_ops/2", f"group/{type}_1:{type}", 12, 40))
    parts = mean_parts(facts)
    assert parts["host_compute"] == 20_000_000
    assert parts["collective"] == 30_000_000
    assert len(facts.collectives) == 6


def test_other_ops_of_those_threads_compute() -> None:
    parts = mean_parts(steps(("collective_ops/2", "group/ConcatV2:ConcatV2", 12, 40)))
    assert parts["host_compute"] == 40_000_000
    assert "collective" not in parts


def test_a_checkpoint_that_is_written_eagerly_is_no_launching() -> None:
    parts = mean_parts(steps(("python", "EagerLocalExecute: SaveV2", 62, 30)))
    assert parts["checkpoint_io"] == 30_000_000
