"""What other tools' meters would say, where it misleads."""

from __future__ import annotations

import pytest

from tests.diagnosis.loops import diagnosed, running
from tests.diagnosis.test_exposed_collective import communicating

GPU = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}]}


def told(events: list, header: dict | None = GPU) -> list[str]:
    return [notice.text for notice in diagnosed(events, header).notices if notice.code == "meter_misleads"]


def test_spinning_for_other_ranks_counts_as_utilised():
    (text,) = told(communicating(4_000, 2, 3_000))
    assert "nvidia-smi calls this GPU 100 % utilised" in text
    assert "It computes 40.0 %" in text


@pytest.mark.parametrize("events", [running(("k", 10_000)), communicating(9_000, 2, 500)])
def test_a_gpu_that_computes_is_not_misread(events: list):
    assert told(events) == []
