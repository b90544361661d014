"""Devices that mark the same steps on lines of their own, each at its own times."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.excerpt import by_steps
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import behind_ns
from stepscope.diagnosis.engine import diagnose
from stepscope.trace import intervals as iv
from stepscope.trace.select import select
from stepscope.whatif.change import Change
from stepscope.whatif.graph import dependency_graph
from stepscope.whatif.replay import replay
from tests.formats.xplane.xplane_files import read
from tests.kit.xplanes import Ev, Plane, Unsigned, line, space

US = 1_000_000
"""Picoseconds."""


def gpu(number: int, at_us: int, step_us: int, steps: int) -> Plane:
    """A device whose profiler drew a Steps line: a kernel of nine tenths of each step."""
    drawn, kernels = [], []
    for k in range(steps):
        begin = (at_us + k * step_us) * US
        drawn.append(Ev(str(k), begin, step_us * US))
        kernels.append(Ev("sgemm", begin + step_us * US // 10, step_us * US * 9 // 10,
                          {"correlation_id": Unsigned(1000 * number + k)}))  # fmt: skip
    return Plane(
        f"/device:GPU:{number}",
        (line("Steps", *drawn, id=1), line("Stream #7(Kernel)", *kernels, id=7)),
        {"device_vendor": "Nvidia"},
    )


def numbered(number: int, at_us: int, steps: range) -> Plane:
    """The same of steps of 200 us with these numbers, step 0 at some time."""
    drawn = [Ev(str(k), (at_us + k * 200) * US, 200 * US) for k in steps]
    kernels = [Ev("sgemm", (at_us + k * 200 + 20) * US, 180 * US, {"correlation_id": Unsigned(1000 * number + k)})
               for k in steps]  # fmt: skip
    lines = line("Steps", *drawn, id=1), line("Stream #7(Kernel)", *kernels, id=7)
    return Plane(f"/device:GPU:{number}", lines, {"device_vendor": "Nvidia"})


def launched_one_by_one(number: int, at_us: int) -> tuple[Plane, list[Ev]]:
    """A device that marks one step of ten kernels of 10 us, and their launches, 50 us apart."""
    calls, kernels = [], []
    for k in range(10):
        ids, at = {"correlation_id": Unsigned(1000 * number + k)}, (at_us + 50 * k) * US
        calls.append(Ev("cuLaunchKernel", at, 5 * US, {"device_id": number, **ids}))
        kernels.append(Ev("sgemm", at + 10 * US, 10 * US, ids))
    step = Ev("0", at_us * US, 500 * US)
    lines = line("Steps", step, id=1), line("Stream #7(Kernel)", *kernels, id=7)
    return Plane(f"/device:GPU:{number}", lines, {"device_vendor": "Nvidia"}), calls


def facts_of_planes(*planes: Plane) -> Facts:
    host = Plane("/host:CPU", (line("python", Ev("load", 0, US), id=5),))
    return analyse(read(space(*planes, host)))


def test_each_device_s_steps_are_those_of_its_own_line() -> None:
    """Two programs recorded together: the second runs long after the first has ended."""
    facts = facts_of_planes(gpu(4, 100, 200, 1), gpu(6, 5_000, 213, 1))
    assert facts.unused == frozenset()
    windows = [int(account.duration_ns[account.step_rows((0,))].sum()) for _, account in facts.devices]
    assert windows == [200_000, 213_000]
    assert facts.steps_apart
    assert {notice.code for notice in diagnose(facts).notices}.isdisjoint({"devices_unused", "devices_outside_steps"})
    assert "devices_serialised" not in [finding.rule for finding in diagnose(facts).findings]


@pytest.mark.parametrize("late_us", [0, 30])
def test_devices_of_one_program_that_run_a_little_apart(late_us: int) -> None:
    facts = facts_of_planes(gpu(0, 100, 200, 6), gpu(1, 100 + late_us, 200, 6))
    assert not facts.steps_apart
    assert facts.step_ns.tolist() == [200_000] * 6
    assert [behind_ns(facts, account) for _, account in facts.devices] == [0, late_us * 1_000]


def test_what_the_host_does_between_the_steps_of_two_devices_is_no_saving_of_either() -> None:
    """Without 3 ms of host time ahead of the second device's step its ops and its mark both come earlier; without 20 us
    inside of it, it is 20 us shorter."""
    (first, calls), (second, others) = launched_one_by_one(4, 100), launched_one_by_one(6, 5_000)
    host = Plane("/host:CPU", (line("python", *calls, *others, id=5),))
    facts = analyse(read(space(first, second, host)))
    graph, track = dependency_graph(facts), facts.host.main

    def without(begin_us: int, end_us: int) -> int:
        spans: iv.Intervals = iv.union(np.array([begin_us * 1_000]), np.array([end_us * 1_000]))
        return int(replay(facts, graph, Change(host={track: spans}))[0])

    unchanged = int(replay(facts, graph, Change())[0])
    assert unchanged == facts.step_ns[0] == 470_000
    assert without(1_000, 4_000) == unchanged
    assert without(5_210, 5_230) == unchanged - 20_000
    assert "host_ran_ahead" not in {notice.code for notice in diagnose(facts).notices}


def test_a_step_that_only_some_devices_mark_is_none() -> None:
    """The profile begins in a step of the second device and ends in one of the first."""
    facts = facts_of_planes(numbered(0, 100, range(3, 8)), numbered(1, 50, range(2, 7)))
    assert facts.markers.numbers == (3, 4, 5, 6)
    assert {device: start.tolist() for device, (start, _) in facts.markers.own.items()} == {
        0: [700_000, 900_000, 1_100_000, 1_300_000], 1: [650_000, 850_000, 1_050_000, 1_250_000],
    }  # fmt: skip
    assert facts.unused == frozenset()


def test_another_program_that_marks_fewer_steps_is_not_unused() -> None:
    facts = facts_of_planes(numbered(4, 100, range(6)), numbered(6, 9_000, range(4)))
    assert facts.unused == frozenset()
    assert facts.steps_apart
    windows = [account.duration_ns[account.step_rows((1, 2))].tolist() for _, account in facts.devices]
    assert windows == [[200_000, 200_000]] * 2


def test_steps_that_are_cut_out_are_each_device_s_own() -> None:
    """The second device is 130 of 200 us behind: it runs step 1 when the first begins step 2."""
    whole = facts_of_planes(numbered(0, 100, range(6)), numbered(1, 230, range(6)))
    part = by_steps(whole, 2, 5)
    cut = analyse(select(whole.trace, part))
    assert cut.markers.numbers == (2, 3, 4)
    assert cut.complete == (True, True, True)
    assert sorted(cut.markers.own) == [0, 1]
    for (activity, _), (before, _) in zip(cut.devices, whole.devices, strict=True):
        assert len(activity) == 3 < len(before)
