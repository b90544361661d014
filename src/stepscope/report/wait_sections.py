"""The sections about what devices and the host wait for: idle time, waits, copies, launches."""

from __future__ import annotations

from typing import Any

from stepscope.report import labels, phrases
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, place, rate, text, yes
from stepscope.units import format_bytes, format_count, format_ns, format_share


def idle(found: dict[str, Any] | None, steps: dict[int | None, str]) -> list[Section]:
    """Idle time per device, and the longest gaps."""
    if found is None:
        return []
    totals = [
        (
            text(entry["device"]),
            format_ns(entry["total_ns"]),
            format_ns(entry["between_steps_ns"]),
            format_ns(entry["within_steps_ns"]),
        )
        for entry in found["per_device"]
    ]
    columns = (number("device"), number("idle in all"), number("before first op"), number("behind first op"))
    rows, left_out = cut((_gap(gap, steps) for gap in found["gaps"]), len(found["gaps"]))
    crosses = "+ crosses a step boundary" if any(gap["crosses_step"] for gap in found["gaps"]) else ""
    gap_columns = (
        number("device"),
        number("step"),
        number("at"),
        number("idle"),
        Column("mostly"),
        name("first op after it"),
        place("place, or what the host is in"),
    )
    note = "; ".join(filter(None, (crosses, left_out)))
    meaning = "before first op: from the last op of the step before to the first one of the step, on the device"
    return [Section("Idle time", columns, totals, meaning), Section("Longest idle gaps", gap_columns, rows, note)]


def _gap(gap: dict[str, Any], steps: dict[int | None, str]) -> tuple[str, ...]:
    cause = max(gap["parts"], key=lambda name: gap["parts"][name], default=None)
    mostly = labels.CATEGORIES[cause].words if cause else ABSENT
    step = steps.get(gap["step"], ABSENT) + ("+" if gap["crosses_step"] else "")
    where = phrases.locator(gap["where"]) or gap["blocking"] or gap["launch"] or ABSENT
    return (
        text(gap["device"]),
        step,
        format_ns(gap["start_ns"]),
        format_ns(gap["dur_ns"]),
        mostly,
        text(gap["op"]),
        where,
    )


def syncs(found: list[dict[str, Any]]) -> Section:
    """Where the host waits for the device."""
    rows, note = cut(
        (
            (
                text(sync["op"] if sync["op"] is not None else sync["call"]),
                text(sync.get("device")),
                rate(sync["per_step"]),
                format_ns(sync["blocked_ns_per_step"]),
                format_ns(sync["cost_ns_per_step"]),
                phrases.locator(sync["where"]) or ABSENT,
            )
            for sync in found
        ),
        len(found),
    )
    columns = (
        name("host waits in"),
        number("device"),
        number("per step"),
        number("host blocked"),
        number("device idle for it"),
        place("where"),
    )
    return Section("Waits of the host for the device (synchronisation), per step", columns, rows, note)


def copies(found: list[dict[str, Any]]) -> Section:
    """Copies by place."""
    rows, note = cut(
        (
            (
                copy["direction"],
                f"{copy['source_memory']} → {copy['target_memory']}",
                text(copy["op"]) + (" (nearest)" if copy["launch_link"] == "heuristic" else ""),
                text(copy.get("device")),
                rate(copy["per_step"]),
                format_bytes(copy["bytes_per_step"]),
                format_ns(copy["exposed_ns_per_step"]),
                yes(copy["every_step"]),
            )
            for copy in found
        ),
        len(found),
    )
    columns = (
        Column("copy"),
        Column("memory"),
        name("from op"),
        number("device"),
        number("per step"),
        number("bytes"),
        number("exposed"),
        Column("every step"),
    )
    return Section("Copies, per step", columns, rows, note)


def launch_delay(delays: list[dict[str, Any]]) -> Section:
    """How long devices take to start what is launched."""
    rows = [
        (
            text(delay["device"]),
            format_count(delay["count"]),
            format_ns(delay["median_ns"]),
            format_ns(delay["p95_ns"]),
            format_share(delay["waiting_share"]),
        )
        for delay in delays
    ]
    columns = (
        number("device"),
        number("launches"),
        number("median"),
        number("p95"),
        number("step time spent waiting"),
    )
    return Section("From launch to start", columns, rows)
