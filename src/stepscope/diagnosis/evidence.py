"""How rules show what they found: slices as evidence, and sums of cost over the used steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import PLACES_SHARE
from stepscope.analysis.places import Place
from stepscope.analysis.steps import WHOLE
from stepscope.analysis.where import Where
from stepscope.analysis.workload import Workload
from stepscope.diagnosis.finding import Evidence
from stepscope.diagnosis.remedies import NAMED_RANGES, PYTHON_ADVICE, remedy
from stepscope.trace.shared import shared
from stepscope.trace.tables import Kind
from stepscope.trace.trace import Trace
from stepscope.units import format_ns, format_share

SHOWN = 5
"""Pieces of evidence and places shown per finding: the longest ones."""


def booked(facts: Facts, account: Account, *causes: Category) -> int:
    """Time the account books to some causes, as a mean per used step in ns."""
    parts = _parts(account, facts)
    return facts.per_step(sum(parts[cause.code] for cause in causes))


@shared
def _parts(account: Account, facts: Facts) -> list[int]:
    """What an account books to each cause in the used steps: every rule asks."""
    parts: list[int] = account.parts[facts.used_rows(account)].sum(0).tolist()
    return parts


def of_what(facts: Facts) -> str:
    """Of what means per step are, for a sentence."""
    whole = facts.is_capture or facts.markers.source == WHOLE
    return "of the profile" if whole else "of a usual step" if facts.slow else "of each step"


def track_name(trace: Trace, track: int) -> str | None:
    """The name people know a track by, None where nothing is recorded."""
    tracks = trace.tracks
    codes = (int(tracks.label[track]), int(tracks.thread[track]))
    return next((trace.strings[code] for code in codes if code >= 0), None)


def slices_as_evidence(facts: Facts, slices: list[int], *, device: int | None = None) -> tuple[Evidence, ...]:
    """The longest of some slices, in order of time."""
    trace = facts.trace
    longest = sorted(slices, key=lambda s: -int(trace.slices.dur_ns[s]))[:SHOWN]
    return tuple(
        Evidence(
            trace.name_of(s),
            int(trace.slices.start_ns[s]),
            int(trace.slices.dur_ns[s]),
            track_name(trace, int(trace.slices.track[s])),
            device,
            step_at(facts, trace.slices.start_ns[s]),
        )
        for s in sorted(longest, key=lambda s: int(trace.slices.start_ns[s]))
    )


def placed(facts: Facts, places: Iterable[Place]) -> tuple[Where, ...]:
    """The places that are more than a name, longest first, with the time that passes there; a function as a whole, of
    which lines are known too, behind these."""
    code_places = dict.fromkeys(timed(facts, place.where, place.ns) for place in places if place.where)
    lines = {(where.file, where.function) for where in code_places if not where.defined}
    return tuple(sorted(code_places, key=lambda where: where.defined and (where.file, where.function) in lines))


def timed(facts: Facts, where: Where, ns: int) -> Where:
    """A place with the time that passes there."""
    return replace(where, ns_per_step=facts.per_step(ns))


def shares(facts: Facts, places: Sequence[Place], what: str) -> str:
    """A sentence that says how ``what`` divides among places; empty where one place is all that is known."""
    if not places or (len(places) == 1 and places[0].share >= PLACES_SHARE):
        return ""
    listed = (f"{place.name} {format_share(place.share)} ({format_ns(facts.per_step(place.ns))})" for place in places)
    rest = 1 - sum(place.share for place in places)
    unknown = f"; where the other {format_share(rest)} pass is not recorded" if 1 - rest < PLACES_SHARE else ""
    return f" {what} by place: {', '.join(listed)}{unknown}."


def step_at(facts: Facts, time_ns: int) -> int | None:
    """The step on the host at an instant, None outside the steps."""
    step = int(facts.markers.start.searchsorted(time_ns, "right")) - 1
    return step if step >= 0 and time_ns < facts.markers.end[step] else None


def host_share(facts: Facts) -> float:
    """Share of the used steps in which devices waited for the host (all of them where there is no device)."""
    if not facts.activities:
        return 1.0
    waiting = sum(booked(facts, account, *HOST_CAUSES, Category.SYNC) for account in facts.working)
    return waiting * len(facts.used) / facts.used_ns if facts.used_ns else 0.0


def capture_slows_host(facts: Facts) -> str | None:
    """What was recorded that slows the host itself, in words; None where nothing was."""
    recorded = [name for name in ("stacks", "shapes", "memory") if facts.trace.info.options.get(name)]
    if not recorded and len(facts.trace.slices) and _has_frames(facts):
        recorded = ["stacks"]
    return ", ".join([*recorded[:-2], " and ".join(recorded[-2:])]) or None


def has_python(facts: Facts) -> bool:
    """Whether Python code was recorded: as frames, or as the call stacks of ops."""
    return _has_frames(facts) or bool((facts.trace.host_ops.call_stack >= 0).any())


def recorder(facts: Facts) -> str | None:
    """The framework whose own profiler wrote the profile; Nsight Systems has no option for Python code of its own."""
    return None if facts.trace.info.format.startswith("Nsight") else facts.trace.info.framework


def to_record_host(facts: Facts) -> str:
    """What would have recorded more of what the host did."""
    return remedy(NAMED_RANGES if has_python(facts) else PYTHON_ADVICE, Workload(recorder(facts)))


def _has_frames(facts: Facts) -> bool:
    return bool((facts.trace.slices.kind == Kind.PYTHON_FRAME).any())
