"""Where in the program a batch is made: the lines of the function that takes most of it, and the line that asks."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.analysis.frame import Frame
from stepscope.analysis.inputs import InputRanges
from stepscope.analysis.places import Place, find_places
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import placed
from stepscope.diagnosis.function_lines import lines_of
from stepscope.trace.codes import marked


def input_places(facts: Facts, ranges: InputRanges) -> tuple[Where, ...]:
    """The places of a finding about input, those first that can be changed."""
    slices = np.array(ranges.slices, np.int32)
    asking = find_places(facts.locator, slices, facts.trace.slices.dur_ns[slices])
    hot = () if ranges.hot is None else placed(facts, loader_lines(facts, ranges, ranges.hot))
    told = {(place.file, place.function) for place in hot}
    # That the function as a whole takes its time is said by its lines.
    others = (place for place in placed(facts, asking) if (place.file, place.function) not in told or not place.defined)
    return tuple(dict.fromkeys((*hot, *others)))


def loader_lines(facts: Facts, ranges: InputRanges, function: Frame) -> tuple[Place, ...]:
    """The lines of a function in which the time of its calls inside the input ranges passes, longest first."""
    return lines_of(facts, marked(list(ranges.slices), len(facts.trace.slices)), function)
