"""Functions in files of packages, in profiles that keep no folders."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analysis.frame import parse_frame
from stepscope.formats.beside.package_files import with_packages
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.support import trace_of

FRAMES = ("train.py(3): main", "util.py(270): wrapper", "pxla.py(9): shard", "lib/help.py(2): f", "<string>(1): g")


def job() -> Trace:
    d = TraceDrawing()
    for number, frame in enumerate(FRAMES):
        d.python(frame, 10 * number, 5)
    return trace_of(d.events())


def manifest(packages: Any) -> dict[str, Any]:
    return {"files": [{"path": "a.xplane.pb", "package_files": packages}]}


def users(trace: Trace) -> list[str]:
    frames = [parse_frame(trace.name_of(slice_id)) for slice_id in range(len(trace.slices))]
    return [frame.file for frame in frames if frame is not None and frame.is_users]


def test_a_packages_file_is_no_place_of_the_jobs() -> None:
    assert "util.py" in users(job())
    told = with_packages(job(), manifest("api.py/util.py/pxla.py"), "a.xplane.pb")
    assert users(told) == ["train.py", "lib/help.py"]
    packages = [parse_frame(text) for text in told.strings if "util.py" in text]
    assert [frame is not None and frame.tells_library for frame in packages] == [False]  # Nobody finds it by that.


def test_the_jobs_own_util_is_its_own() -> None:
    assert "util.py" in users(with_packages(job(), manifest("api.py"), "a.xplane.pb"))


@pytest.mark.parametrize("told", [None, 3, ["util.py"], {"a": 1}])
def test_what_makes_no_sense_changes_nothing(told: Any) -> None:
    trace = job()
    assert with_packages(trace, manifest(told), "a.xplane.pb") is trace
    assert with_packages(trace, manifest("api.py/util.py/pxla.py"), "b.xplane.pb") is trace
