"""Functions by the time spent in their own code."""

from __future__ import annotations

from stepscope.analysis.functions import FunctionUse, functions_by_self_time, only_functions
from stepscope.trace.tables import Kind
from tests.kit.xla import US, HostRange, Job, build


def calls(*more: HostRange) -> Job:
    frames = [("main", 0, 100, "a"), ("load", 10, 30, "a"), ("read", 15, 20, "a"), ("load", 50, 10, "a"),
              ("load", 0, 40, "b")]  # fmt: skip
    return Job([*(HostRange(name, start, dur, Kind.PYTHON_FRAME, thread=thread)
                  for name, start, dur, thread in frames), *more], [], framework=None)  # fmt: skip


def test_the_time_of_a_function_is_what_nothing_inside_it_takes_over_all_threads():
    assert functions_by_self_time(build(calls())) == [
        FunctionUse("main", 1, 60 * US),
        FunctionUse("load", 3, (10 + 10 + 40) * US),
        FunctionUse("read", 1, 20 * US),
    ]


def test_an_op_or_a_call_makes_it_another_kind_of_profile():
    assert only_functions(build(calls()))
    assert only_functions(build(calls(HostRange("range", 1, 2))))
    assert not only_functions(build(Job([HostRange("range", 1, 2)], [])))
    for kind in (Kind.HOST_OP, Kind.RUNTIME_CALL, Kind.SYNC):
        assert not only_functions(build(calls(HostRange("x", 1, 2, kind))))
