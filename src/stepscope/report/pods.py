"""Devices beside each other in the report, what they counted, and exchanges over the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepscope.document.serving import CounterUseEntry, NetworkUseEntry
from stepscope.document.steps import BreakdownEntry
from stepscope.report import labels
from stepscope.report.section import ABSENT, Section, cut, name, number, text
from stepscope.report.tables import table
from stepscope.units import format_ns, format_share

_PARTS_SHOWN = 4


def beside(entries: Sequence[BreakdownEntry], names: Mapping[int | None, str | None]) -> Section:
    """Where the time of the devices goes, in the parts that take most of it."""
    devices = [entry for entry in entries if entry["device"] is not None]
    of = [{part["category"]: part["ns_per_step"] for part in entry["parts"]} for entry in devices]
    in_all = {part: sum(parts.get(part, 0) for parts in of) for parts in of for part in parts}
    shown = sorted(in_all, key=lambda part: -in_all[part])[:_PARTS_SHOWN]
    rows, note = cut(
        (
            (
                text(entry["device"]),
                text(names.get(entry["device"])),
                format_ns(entry["step_ns"]),
                ABSENT if entry.get("ended_last") is None else f"{entry['ended_last']} of {entry['steps']}",
                _busy(entry),
                *(format_ns(parts.get(part, 0)) for part in shown),
            )
            for entry, parts in zip(devices, of, strict=True)
        ),
        len(devices),
    )
    columns = (
        number("device"),
        name("name"),
        number("per step"),
        number("ended last in"),
        number("busy"),
        *(number(labels.CATEGORIES[part].words) for part in shown),
    )
    return Section("Devices beside each other", columns, rows if len(devices) > 1 else [], note)


def _busy(entry: BreakdownEntry) -> str:
    busy = sum(part["ns_per_step"] for part in entry["parts"] if part["busy"])
    return format_share(busy / entry["step_ns"]) if entry["step_ns"] else ABSENT


def counters(given: Sequence[CounterUseEntry]) -> Section:
    """What devices counted."""
    return table("Counters of the devices", CounterUseEntry, given, "in the steps used, in the profile's own units")


def network(given: Sequence[NetworkUseEntry]) -> Section:
    """What Megascale did."""
    note = "in the whole profile; several run at a time"
    return table("Exchanges between slices over the network (Megascale)", NetworkUseEntry, given, note)
