"""Places by share: each nanosecond counts for one, and they are named until most of the time is."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.analysis.limits import PLACES_SHARE, PLACES_SHOWN
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.where import Locator
from tests.kit.builder import TraceDrawing
from tests.support import trace_of

US = 1_000


def places(*calls: tuple[int, tuple[str, ...]], own_names: bool = False) -> tuple[Place, ...]:
    """The places of launches: each so many µs in a frame, annotation (``#``), module (``nn``) or op around another."""
    drawing = TraceDrawing()
    for number, (_, around) in enumerate(calls):
        at = 1_000 * number
        for depth, name in enumerate(around):
            start, dur = at + depth, 500 - 2 * depth
            if name.startswith("#"):
                drawing.annotation(name[1:], start, dur)
            elif "(" in name or name.startswith("nn.Module"):
                drawing.python(name, start, dur)
            else:
                drawing.host(name, start, dur)
        drawing.launch(at + 100, 5)
    trace = trace_of(drawing.events())
    slices = np.array([s for s in range(len(trace.slices)) if trace.name_of(s) == "cudaLaunchKernel"], np.int32)
    weight = np.array([us * US for us, _ in calls])
    return find_places(Locator(trace), slices, weight, own_names=own_names)


FORWARD, ZERO = "train.py(3): forward", "#Optimizer.zero_grad#SGD.zero_grad"


def test_the_largest_comes_first_with_its_share_and_time():
    found = places((30, (ZERO,)), (55, (FORWARD,)), (15, ("#Optimizer.step#SGD.step",)))
    assert [(p.name, p.ns, p.share) for p in found] == [
        ("`forward`", 55 * US, 0.55),
        ("`Optimizer.zero_grad#SGD.zero_grad`", 30 * US, 0.3),
    ]
    assert sum(p.share for p in found) >= PLACES_SHARE


def test_time_in_a_frame_and_an_annotation_and_a_module_counts_once():
    around = (FORWARD, "#teacher", "nn.Module: Linear_0", "aten::linear")
    (found,) = places((40, around), (60, around))
    assert found.share == 1.0
    assert (found.where.function, found.where.annotation) == ("forward", "teacher")
    assert (found.where.module, found.where.op) == ("Linear_0", "aten::linear")


def test_a_function_of_many_parts_is_one_place():
    calls = [(10, (FORWARD, f"nn.Module: Kind{chr(65 + n)}_0")) for n in range(10)]
    (found,) = places(*calls)
    assert (found.name, found.where.module, found.share) == ("`forward`", None, 1.0)


def test_modules_of_one_kind_are_one_place():
    calls = [(10, (FORWARD, f"nn.Module: FusedMoE_{n}")) for n in range(10)]
    (found,) = places(*calls)
    assert (found.where.module, found.share) == ("FusedMoE", 1.0)


def test_no_more_places_than_fit_and_how_many_more_there_are():
    *shown, rest = places(*((1, (f"m{n}.py(3): f{n}",)) for n in range(100)))
    assert len(shown) == PLACES_SHOWN
    assert (rest.name, rest.share, bool(rest.where)) == ("92 more places", pytest.approx(0.92), False)
    found = places((79, (FORWARD,)), *((1, (f"m{n}.py(3): f{n}",)) for n in range(21)))
    assert [p.name for p in found] == ["`forward`", "`f0`"]


def test_what_nothing_tells_of_counts_to_the_whole():
    (found,) = places((30, (FORWARD,)), (70, ()))
    assert found.share == pytest.approx(0.3)
    assert [p.name for p in places((30, (FORWARD,)), (70, ()), own_names=True)] == ["`cudaLaunchKernel`", "`forward`"]
