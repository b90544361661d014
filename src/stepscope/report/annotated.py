"""Time per annotation in the report: ``analyses.annotations`` and its table."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.analysis.annotations import Annotations, AnnotationUse, Times
from stepscope.analysis.facts import Facts
from stepscope.limits import ANNOTATIONS_LISTED
from stepscope.report.section import ABSENT, Section, cut, name, number, rate
from stepscope.units import format_ns


def entry(facts: Facts, found: Annotations) -> dict[str, Any]:
    """The annotations of the used steps: sums, and what one step and device has of them on average."""

    def times(of: Times) -> dict[str, Any]:
        return dataclasses.asdict(of) | {"per_step": _per_step(facts, of, found.devices)}

    def use(one: AnnotationUse) -> dict[str, Any]:
        counts = {"name": one.name, "count": one.count, "per_step": one.count / len(facts.used)}
        return counts | {"whole": times(one.whole), "own": times(one.own)}

    return {
        "steps": len(facts.used),
        "devices": found.devices,
        "count": len(found.uses),
        "outside": times(found.outside),
        "annotations": [use(one) for one in found.uses[:ANNOTATIONS_LISTED]],
    }


def _per_step(facts: Facts, of: Times, devices: int) -> dict[str, int | None]:
    def mean(ns: int | None) -> int | None:
        return None if ns is None else facts.per_step(ns // max(devices, 1))

    return {"host_ns": facts.per_step(of.host_ns), "device_ns": mean(of.device_ns), "idle_ns": mean(of.idle_ns)}


def table(given: dict[str, Any] | None) -> Section:
    """What each annotation takes of a step."""
    uses = given["annotations"] if given else []
    rows, left_out = cut((_row(use) for use in uses), given["count"] if given else 0)
    columns = (
        name("annotation"),
        number("count"),
        number("host"),
        number("own"),
        number("device works"),
        number("own"),
        number("device idle"),
        number("own"),
    )
    note = "; ".join(filter(None, (_note(given), left_out))) if given else ""
    return Section("Annotations of the program, per step", columns, rows, note)


def _row(use: dict[str, Any]) -> tuple[str, ...]:
    whole, own = use["whole"]["per_step"], use["own"]["per_step"]
    times = (_text(of[key]) for key in ("host_ns", "device_ns", "idle_ns") for of in (whole, own))
    return (use["name"], rate(use["per_step"]), *times)


def _note(given: dict[str, Any]) -> str:
    outside = given["outside"]["per_step"]
    told = (("host_ns", "of the main thread"), ("device_ns", "of the device's work"), ("idle_ns", "of its idle time"))
    known = [f"{format_ns(outside[key])} {words}" for key, words in told if outside[key] is not None]
    none = f"in none: {', '.join(known)}"
    own = "own: in no annotation further inside"
    if outside["idle_ns"] is None:
        return f"{own}; {none}"
    mean = f" (mean of {given['devices']} devices)" if given["devices"] > 1 else ""
    return f"device works: on what was launched inside; device idle: while the host was inside{mean}; {own}; {none}"


def _text(ns: int | None) -> str:
    return ABSENT if ns is None else format_ns(ns)
