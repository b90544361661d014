"""Every nanosecond once: on arbitrary traces and on every real one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from stepscope.analysis.accounting import Account, account_devices, check
from stepscope.analysis.analyse import analyse
from stepscope.analysis.categories import CATEGORIES, RECORDED
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.errors import TraceInvariantError
from stepscope.trace.tables import Kind
from tests.kit.kineto_writer import write_kineto
from tests.kit.random_traces import random_traces
from tests.kit.shapes import SHAPES
from tests.kit.traces import KINETO_TRACES
from tests.support import facts_of, facts_of_drawing, real_facts, trace_of_bytes


def assert_exact(facts: Facts) -> None:
    """Rows tile from the first device op or marker to the last device op, and parts sum to them; busy time is the
    union of the device's slices, counted here without any of the product's interval arithmetic."""
    trace = facts.trace
    for activity, account in facts.devices:
        bounds = account.rows.bounds
        assert (account.parts.sum(axis=1) == np.diff(bounds)).all()
        begun = facts.markers.start[0] - facts.markers.start_up_ns  # start-up before the first step is a row too
        assert bounds[0] == min(activity.start.min(), begun)
        assert bounds[-1] == activity.end.max()
        busy = sum(int(account.parts[:, CATEGORIES.index(category)].sum()) for category in RECORDED)
        rows = np.isin(trace.slices.kind, (Kind.KERNEL, Kind.COLLECTIVE, Kind.COPY, Kind.MEMSET))
        rows &= trace.tracks.device[trace.slices.track] == activity.device
        spans = sorted(zip(trace.slices.start_ns[rows].tolist(), trace.slices.dur_ns[rows].tolist(), strict=True))
        covered, reach = 0, spans[0][0]
        for start, dur in spans:
            covered += max(0, start + dur - max(start, reach))
            reach = max(reach, start + dur)
        assert busy == covered
        steps = [step for step in account.rows.steps if step is not None]
        assert steps == list(range(len(facts.markers)))
        assert (account.between_steps_ns >= 0).all()
        assert (account.between_steps_ns <= np.diff(bounds)).all()


@given(random_traces())
def test_the_integers_sum_on_any_trace(events):
    facts = facts_of(events)
    assert_exact(facts)
    for account in facts.accounts:
        check(account)
        if account.rows.device is None:
            assert (account.parts.sum(axis=1) == np.diff(account.rows.bounds)).all()


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_the_integers_sum_on_every_real_trace(name):
    assert_exact(real_facts(name))


def test_a_wrong_sum_is_an_error_not_a_report():
    facts = facts_of_drawing("""
        main  |[S        ]
        main  | [a]
        gpu0/7|    [a  ]
        S = step 1
    """)
    facts.accounts[0].parts[0, 0] += 1
    with pytest.raises(TraceInvariantError, match="do not sum"):
        check(facts.accounts[0])


class _Counted(list[DeviceActivity]):
    times = 0

    def __iter__(self) -> Iterator[DeviceActivity]:
        self.times += 1
        return super().__iter__()


def test_devices_are_not_gone_through_for_every_device():
    """A file of a few hundred kilobytes can have thousands."""
    times = set()
    for devices in (3, 40):
        facts = analyse(trace_of_bytes(write_kineto(SHAPES["many_devices"](devices))))
        counted = _Counted(facts.activities)
        account_devices(facts.trace, counted, facts.host, facts.markers)
        times.add(counted.times)
    assert len(times) == 1


def test_rows_of_the_used_steps_are_looked_up_a_few_times_per_device(monkeypatch: pytest.MonkeyPatch):
    """Every rule asks for them of every device: with thousands of steps that was most of its time."""
    facts = analyse(trace_of_bytes(write_kineto(SHAPES["devices_in_every_step"](120))))
    asked = [0]
    looked_up = Account.step_rows

    def counted(account: Account, steps: tuple[int, ...]) -> list[int]:
        asked[0] += 1
        return looked_up(account, steps)

    monkeypatch.setattr(Account, "step_rows", counted)
    diagnose(facts)
    assert asked[0] <= 10 * len(facts.accounts)
