"""The clock of a TPU beside the host's: durations are the device's, whatever becomes of the host's estimates of it."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.notices import notices
from stepscope.trace.trace import Trace
from tests.formats.xplane.xplane_files import read, rows
from tests.kit.xplanes import Ev, Plane, line, space

MS = 1_000_000_000
"""Picoseconds."""
STEP_MS, STEPS = 784.1, 100


def chip(host_ahead_ms: list[float], number: int = 0, pause_at: int | None = None) -> Plane:
    """A program that runs a hundred times, back to back; per run, how far the written host time is ahead."""
    modules, ops = [], []
    for run, ahead in enumerate(host_ahead_ms):
        begin = run * STEP_MS + (5_000 if pause_at is not None and run >= pause_at else 0)
        for k, (at, dur) in enumerate(((0.001, 189.0), (189.001, 8.0), (197.001, 586.0), (783.001, 1.0))):
            own = {"device_offset_ps": round((begin + at) * MS), "device_duration_ps": round(dur * MS)}
            # The estimate changes inside the third op: its written length is wrong by that.
            jump = host_ahead_ms[run + 1] - ahead if k == 2 and run + 1 < len(host_ahead_ms) else 0
            late = host_ahead_ms[run + 1] if k == 3 and run + 1 < len(host_ahead_ms) else ahead
            start = begin + at + 1_000 + late
            ops.append(Ev(f"op.{k}", round(start * MS), round(max(dur + jump, 0.001) * MS), own))
        start = begin + 1_000 + ahead
        last = host_ahead_ms[min(run + 1, len(host_ahead_ms) - 1)]
        modules.append(Ev("jit_f(7)", round(start * MS), round((784.05 + last - ahead) * MS), {"run_id": run + 1}))
    return Plane(f"/device:TPU:{number}", (line("XLA Modules", *modules, id=2), line("XLA Ops", *ops, id=3)))


def steps_ms(trace: Trace) -> np.ndarray:
    starts = sorted(start for name, start in rows(trace, "name", "start_ns") if name == "op.0")
    return np.diff(starts) / 1e6


def noisy() -> list[float]:
    """As in a real profile of four chips: mostly right, in between up to 198 ms off and slowly back."""
    return [[0.25, 0.25, 0.27, 173.3, 65.3][run % 5] + 0.014 * run for run in range(STEPS)]


def test_steps_take_what_the_device_s_clock_says_where_the_host_s_estimate_jumps() -> None:
    trace = read(space(chip(noisy())))
    assert steps_ms(trace) == pytest.approx(STEP_MS, abs=0.001)
    drawn = sorted(rows(trace, "start_ns", "dur_ns", "name"))
    modules = [(start, dur) for start, dur, name in drawn if name.startswith("jit_f")]
    assert [dur / 1e6 for _, dur in modules] == pytest.approx([784.05] * STEPS, abs=0.01)
    assert {dur for _, dur, name in drawn if name == "op.2"} == {586_000_000}
    (loss,) = [loss for loss in trace.completeness.losses if loss.code == "device_clock"]
    assert "/device:TPU:0 are up to 17" in loss.text
    assert "durations are those of its own clock" in loss.text
    assert trace.completeness.complete


def test_what_most_estimates_agree_on_places_the_device_on_the_session_s_clock() -> None:
    host = Plane("/host:CPU", (line("python", Ev("mark", 1_000 * MS, MS)),))
    trace = read(space(chip(noisy()), host))
    start = dict(sorted(rows(trace, "name", "start_ns"), reverse=True))
    assert (start["op.0"] - start["mark"]) / 1e6 == pytest.approx(0.25 + 0.7, abs=0.8)
    (loss,) = [loss for loss in trace.completeness.losses if loss.code == "device_clock"]
    assert "known to ±" in loss.text


def test_a_clock_that_drifts_by_a_hundred_milliseconds_is_followed() -> None:
    trace = read(space(chip([1.05 * run for run in range(STEPS)])))
    assert steps_ms(trace) == pytest.approx(STEP_MS, rel=0.01)
    assert steps_ms(trace).sum() == pytest.approx((STEPS - 1) * (STEP_MS + 1.05), rel=0.001)
    assert [dur for name, dur in rows(trace, "name", "dur_ns") if name == "op.2"] == [586_000_000] * STEPS


def test_behind_a_pause_the_distance_of_the_clocks_is_taken_anew() -> None:
    ahead = [0.0] * 50 + [40.0] * 50
    trace = read(space(chip(ahead, pause_at=50)))
    found = steps_ms(trace)
    assert np.delete(found, 49) == pytest.approx(STEP_MS, abs=0.001)
    assert 5_000 < found[49] - STEP_MS < 5_060


def test_chips_of_one_program_keep_steps_of_their_own() -> None:
    trace = read(space(*(chip(noisy(), number) for number in range(4))))
    assert len(trace.tracks) == 8
    (loss,) = [loss for loss in trace.completeness.losses if loss.code == "device_clock"]
    assert loss.count == 4


def test_the_notice_names_each_device_and_does_not_count_them_too() -> None:
    told = notices(analyse(read(space(chip(noisy()), chip(noisy(), 1)))))
    (notice,) = [one for one in told if one.code == "profile_device_clock"]
    assert "of /device:TPU:0, /device:TPU:1 are up to" in notice.text
    assert "durations are those of their own clock" in notice.text
    assert (notice.count, notice.says_count) == (2, True)
