"""The sections about what devices and the host wait for: idle time, waits, copies, launches."""

from __future__ import annotations

from stepscope.document.waits import Copy, DeviceIdle, GapEntry, IdleEntry, LaunchDelayEntry, SyncEntry
from stepscope.report import labels, phrases
from stepscope.report.section import ABSENT, Section, text
from stepscope.report.tables import Look, table

_FIRST_OP = "before first op: from the last op of the step before to the first one of the step, on the device"


def idle(entry: IdleEntry | None, steps: dict[int | None, str]) -> list[Section]:
    """Idle time per device, and the longest gaps."""
    if entry is None:
        return []

    def step(gap: GapEntry) -> str:
        return steps.get(gap["step"], ABSENT) + ("+" if gap["crosses_step"] else "")

    crosses = "+ crosses a step boundary" if any(gap["crosses_step"] for gap in entry["gaps"]) else ""
    look = Look(cells={"step": step, "parts": _mostly, "where": _held_in})
    return [
        table("Idle time", DeviceIdle, entry["per_device"], _FIRST_OP),
        table("Longest idle gaps", GapEntry, entry["gaps"], crosses, look),
    ]


def _mostly(gap: GapEntry) -> str:
    cause = max(gap["parts"], key=lambda name: gap["parts"][name], default=None)
    return labels.CATEGORIES[cause].words if cause else ABSENT


def _held_in(gap: GapEntry) -> str:
    return phrases.locator(gap["where"]) or gap["blocking"] or gap["launch"] or ABSENT


def syncs(entries: list[SyncEntry]) -> Section:
    """Where the host waits for the device."""
    look = Look(cells={"op": lambda sync: text(sync["call"] if sync["op"] is None else sync["op"])})
    return table("Waits of the host for the device (synchronisation), per step", SyncEntry, entries, look=look)


def copies(rows: list[Copy]) -> Section:
    """Copies by place."""
    look = Look(
        cells={
            "source_memory": lambda copy: f"{copy['source_memory']} → {copy['target_memory']}",
            "op": lambda copy: text(copy["op"]) + (" (nearest)" if copy["launch_link"] == "heuristic" else ""),
        }
    )
    return table("Copies, per step", Copy, rows, look=look)


def launch_delay(delays: list[LaunchDelayEntry]) -> Section:
    """How long devices take to start what is launched."""
    return table("From launch to start", LaunchDelayEntry, delays)
