"""In which order a finding names its places."""

from __future__ import annotations

from stepscope.analysis.places import Place
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import placed
from tests.diagnosis.loops import facts_with, waiting_for_input


def test_a_function_stands_behind_lines_of_it_that_are_known():
    whole, line = Where("train.py", 4, "prepare", defined=True), Where("train.py", 8, "prepare")
    other = Where("train.py", 20, "load", defined=True)
    places = [Place(where, "", ns, 0.3) for where, ns in ((whole, 900), (other, 600), (line, 300))]
    told = placed(facts_with(waiting_for_input(1_000, 100)), places)
    assert [where.line for where in told] == [20, 8, 4]
