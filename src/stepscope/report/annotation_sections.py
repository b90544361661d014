"""The table of annotations: whole and own time side by side."""

from __future__ import annotations

from stepscope.document.ops import Annotation, AnnotationsEntry
from stepscope.report.section import ABSENT, Section, cut, name, number, rate
from stepscope.units import format_ns


def table(given: AnnotationsEntry | None) -> Section:
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


def _row(use: Annotation) -> tuple[str, ...]:
    whole, own = use["whole"]["per_step"], use["own"]["per_step"]
    pairs = (
        (whole["host_ns"], own["host_ns"]),
        (whole["device_ns"], own["device_ns"]),
        (whole["idle_ns"], own["idle_ns"]),
    )
    return (use["name"], rate(use["per_step"]), *(_text(ns) for pair in pairs for ns in pair))


def _note(given: AnnotationsEntry) -> str:
    outside = given["outside"]["per_step"]
    told = (
        (outside["host_ns"], "of the main thread"),
        (outside["device_ns"], "of the device's work"),
        (outside["idle_ns"], "of its idle time"),
    )
    known = [f"{format_ns(ns)} {words}" for ns, words in told if ns is not None]
    none = f"in none: {', '.join(known)}"
    own = "own: in no annotation further inside"
    if outside["idle_ns"] is None:
        return f"{own}; {none}"
    mean = f" (mean of {given['devices']} devices)" if given["devices"] > 1 else ""
    return f"device works: on what was launched inside; device idle: while the host was inside{mean}; {own}; {none}"


def _text(ns: int | None) -> str:
    return ABSENT if ns is None else format_ns(ns)
