"""profile_host_unrecorded, profile_no_lines: which option would have recorded what the host did, and where."""

from __future__ import annotations

from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from stepscope.analysis.workload import Workload
from stepscope.diagnosis.evidence import has_python, of_what, recorder, to_record_host
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import BOTTLENECK_SHARE, HOST_SHARE
from stepscope.diagnosis.remedies import PYTHON_ADVICE, remedy
from stepscope.trace.tables import NULL, Kind
from stepscope.units import format_ns, format_share

NO_LINES = "profile_no_lines"
KINETO = "Kineto JSON"


def host_unrecorded(facts: Facts) -> Notice | None:
    """Part of the step is lost to a host of which nothing was recorded."""
    parts = mean_parts(facts)
    unknown, total = parts.get(Category.UNKNOWN_HOST, 0), sum(parts.values())
    if not total or unknown < HOST_SHARE * total or len(facts.trace.nodes):
        return None  # sessions of TensorFlow 1 have no option for it
    advice = to_record_host(facts)
    share = format_share(unknown / total)
    return Notice(
        "profile_host_unrecorded",
        f"What the host does in {format_ns(unknown)} {of_what(facts)} ({share}) was not recorded. {advice}",
    )


def no_calls(facts: Facts) -> Notice | None:
    """``stepscope run`` looked at the thread, and left out the lines of calls, as it does where there are very many."""
    looked, frames = len(facts.trace.looks), facts.trace.slices.kind == Kind.PYTHON_FRAME
    if not looked or facts.trace.info.format != KINETO or not frames.any():
        return None
    if (facts.trace.frames.call_line != NULL).any():
        return None
    return Notice(
        "profile_no_calls",
        "The profile is too large to hold the line of each call, so lines are those of the looks at the thread alone, "
        "and some functions are told by where they begin. Fewer steps (--active) make it smaller.",
    )


def no_lines(facts: Facts) -> Notice | None:
    """The host costs time, and the places of findings end at ops: nothing says which lines call them."""
    parts = mean_parts(facts)
    total = sum(parts.values())
    held = sum(parts.get(cause, 0) for cause in (*HOST_CAUSES, Category.SYNC))
    framework = None if len(facts.trace.nodes) else recorder(facts)
    if framework is None or not total or held < BOTTLENECK_SHARE * total:
        return None
    if has_python(facts) or host_unrecorded(facts) is not None:
        return None
    advice = remedy(PYTHON_ADVICE, Workload(framework))
    return Notice(NO_LINES, f"No Python code was recorded, so findings name ops but not lines. {advice}")
