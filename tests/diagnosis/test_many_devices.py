"""Several devices of one process: serialised, launched in turn, one overloaded, DataParallel; planted and healthy."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepscope.analysis.balance import balance
from tests.diagnosis.loops import diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream

STEP = 4_000
RULES = {"devices_serialised", "launched_in_turn", "device_overloaded", "data_parallel"}
Kernel = tuple[int, int, int, int]
"""Device, start of its launch, its own start and duration."""


def devices(kernels: Sequence[Kernel], module: str = "") -> list[Event]:
    """The same kernels in every step."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        if module:
            drawing.python(module, start, STEP)
        for place, (device, launch, begin, dur) in enumerate(kernels):
            call = drawing.launch(start + launch, 5)
            drawing.kernel(call, f"k{place}", start + begin, dur, Stream(device, 7))

    return loop(STEP, step)


def found(events: list[Event]) -> dict[str, int | None]:
    diagnosis = diagnosed(events)
    return {f.rule: f.cost_ns_per_step for f in (*diagnosis.findings, *diagnosis.minor) if f.rule in RULES}


def even(count: int = 2) -> list[Kernel]:
    """Launched alternately, all compute at once."""
    return [(d, 10 * (2 * k + d), 60 + 1900 * k, 1_850) for k in range(2) for d in range(count)]


def test_devices_that_share_the_work_have_no_finding() -> None:
    assert found(devices(even())) == {}
    assert found(devices(even(4))) == {}


def test_one_device_after_another() -> None:
    events = devices([(0, 0, 20, 1_900), (1, 20, 1_950, 1_900)])
    assert found(events)["devices_serialised"] == 1_900_000
    finding = next(f for f in diagnosed(events).findings if f.rule == "devices_serialised")
    assert finding.saving_ns_per_step == 1_900_000
    assert finding.predicted_step_ns == pytest.approx(2_100_000, rel=0.02)


def test_idle_devices_are_not_serialised() -> None:
    """They are kept idle by something else."""
    assert "devices_serialised" not in found(devices([(0, 0, 20, 400), (1, 2_000, 2_020, 400)]))


def test_launches_of_one_device_after_the_other() -> None:
    first = [(0, 100 * k, 20 + 100 * k, 90) for k in range(14)]
    then = [(1, 1_500 + 100 * k, 1_520 + 100 * k, 90) for k in range(14)]
    events = devices([*first, (0, 1_400, 1_420, 2_500), *then, (1, 2_900, 2_920, 1_000)])
    assert found(events)["launched_in_turn"] == pytest.approx(1_500_000, rel=0.1)


def test_launches_in_turn_where_devices_stay_busy_cost_nothing() -> None:
    events = devices([(0, 0, 20, 3_900), (1, 10, 30, 3_900)])
    assert found(events).get("launched_in_turn", 0) <= 20_000  # type: ignore[operator]


def test_an_overloaded_device() -> None:
    events = devices([(0, 0, 40, 3_900), *((d, 10 * d, 60, 1_900) for d in range(1, 4))])
    diagnosis = diagnosed(events)
    finding = next(f for f in diagnosis.findings if f.rule == "device_overloaded")
    assert finding.device == 0
    assert finding.saving_ns_per_step == 3_900_000 - (3_900_000 + 3 * 1_900_000) // 4
    assert "devices_serialised" not in {f.rule for f in diagnosis.findings}


@pytest.mark.parametrize(
    "module", ["nn.Module: DataParallel_0", "torch/nn/parallel/data_parallel.py(171): forward", "DataParallel.forward"]
)
def test_data_parallel_is_named(module: str) -> None:
    kernels = [(0, 0, 20, 1_000), (1, 1_200, 1_220, 1_000), (0, 2_400, 2_420, 1_000), (1, 2_500, 2_520, 1_400)]
    assert "data_parallel" in found(devices(kernels, module))
    assert "data_parallel" not in found(devices(kernels, "nn.Module: DistributedDataParallel_0"))
    assert "data_parallel" not in found(devices([k for k in kernels if k[0] == 0], module))


def test_what_balance_measures() -> None:
    found_balance = balance(facts_with(devices([(0, 0, 20, 1_000), (1, 10, 520, 1_000)])))
    assert found_balance is not None
    assert found_balance.compute_ns == (1_000_000, 1_000_000)
    assert (found_balance.any_ns, found_balance.together_ns) == (1_500_000, 500_000)
    assert (found_balance.blocks, found_balance.first, found_balance.one_thread) == (1.0, 0, True)
