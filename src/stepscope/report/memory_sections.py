"""The tables of memory in the long report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stepscope.document.memory import MemoryEntry, MemoryPlace, MemoryPool, ProgramBuffer, ProgramMemory, ProgramUse
from stepscope.report import phrases
from stepscope.report.section import ABSENT, Column, Section, number, text
from stepscope.report.tables import Look, inserted, table
from stepscope.units import format_bytes, format_ns, format_share

CATEGORIES = {
    "before_profile": "from before the profile",
    "activation": "activations",
    "gradient": "gradients",
    "optimizer_state": "optimizer state",
    "temporary": "temporaries",
    "unknown": "phase not known",
}
"""Words for what memory is for."""


USES = {
    "parameter": "parameter",
    "output": "result",
    "thread_local": "of a thread",
    "constant": "constant",
    "temporary": "temporary",
}
"""Words for what a buffer of a compiled program is."""

SPACES = {"0": "the device's memory", "host": "the host's memory"}
"""Words for memory spaces that have a name."""


def space_name(program: ProgramUse) -> str:
    """What a memory space is called."""
    key = "host" if program["on_host"] else str(program["space"])
    return SPACES.get(key, f"memory space {key}")


def programs(compiled: ProgramMemory | None) -> list[Section]:
    """What compiled programs need of memory, and what it is at the peak of the one that needs most."""
    if compiled is None:
        return []
    if compiled["not_recorded"]:
        return [Section("Memory of compiled programs", (Column("not recorded"),), [(compiled["not_recorded"],)])]
    notes = [f"{compiled['without']} programs do not say it"] if compiled["without"] else []
    if compiled["left_out"]:
        notes.append(f"{compiled['left_out']} that need less are left out")
    look = Look(
        cells={
            "on_host": space_name,
            "unpadded_bytes": lambda one: format_bytes(one["peak_bytes"] - one["unpadded_bytes"]),
        },
        keys={"parameters": "parameter", "results": "output", "temporaries": "temporary"},
    )
    made = table("Memory of compiled programs", ProgramUse, compiled["programs"], "; ".join(notes), look)
    return [made, _buffers(compiled["programs"][0], compiled["ways"])]


def _buffers(first: ProgramUse, told: dict[str, str]) -> Section:
    used = {one["way"] for one in first["buffers"]}
    look = Look(
        cells={
            "use": lambda one: USES[one["use"]],
            "unpadded_bytes": _padding,
            "source": lambda one: text(one["source"] or one["scope"]),
        }
    )
    title = f"In {space_name(first)} when {first['module']} needs most of it"
    ways = "; ".join(meaning for way, meaning in told.items() if way in used)
    return table(title, ProgramBuffer, first["buffers"], ways, look)


def _padding(one: ProgramBuffer) -> str:
    padding = one["bytes"] - one["unpadded_bytes"]
    return format_bytes(padding) if padding else ABSENT


def memory(used: MemoryEntry | None, steps: dict[int | None, str]) -> list[Section]:
    """Memory per allocator, what it is for at the peak, and where that is allocated."""
    pools = [] if used is None else used["pools"]
    # Beside a device what its host holds for a moment tells nothing.
    pools = [pool for pool in pools if not pool["on_host"]] or pools
    notes = ["≥: without what was allocated before the profile"] if any(map(_partial, pools)) else []
    if any(pool["peak"]["fragmentation"] is not None for pool in pools):
        notes.append("free in pieces: share of what the allocator has free outside of its largest free piece")
    columns = (
        Column("memory of"),
        number("most in use"),
        number("at"),
        number("step"),
        number("held"),
        number("unused of it"),
        number("free in pieces"),
        number("free"),
        number("of"),
        number("growth per step"),
    )
    uses = Section("Memory", columns, [_use(pool, steps) for pool in pools], "; ".join(notes))
    parts = [part for pool in pools for part in _parts(pool)]
    kinds = (Column("memory of"), Column("what for"), number("bytes"), number("share"))
    return [uses, Section("Memory in use at the peak", kinds, parts), _places(pools)]


def _partial(pool: MemoryPool) -> bool:
    return bool(pool["basis"] == "at_least")


def _name(pool: MemoryPool) -> str:
    place = "the host" if pool["device"] is None else f"device {pool['device']}"
    return place if pool["allocator"] is None else f"{place} ({pool['allocator']})"


def _use(pool: MemoryPool, steps: dict[int | None, str]) -> tuple[str, ...]:
    peak, unused, growth, room = pool["peak"], pool["fragmentation"], pool["growth"], pool["headroom"]
    least = "≥ " if _partial(pool) else ""
    return (
        _name(pool),
        least + format_bytes(peak["allocated_bytes"]),
        format_ns(peak["time_ns"]),
        steps.get(peak["step"], ABSENT),
        ABSENT if pool["reserved_bytes"] is None else format_bytes(pool["reserved_bytes"]),
        ABSENT if unused is None else format_share(unused["share"]),
        ABSENT if peak["fragmentation"] is None else format_share(peak["fragmentation"]),
        ABSENT if room is None else format_bytes(room["free_bytes"]),
        ABSENT if room is None else format_bytes(room["capacity_bytes"]),
        ABSENT if growth is None else format_bytes(growth["mean_bytes"]),
    )


def _parts(pool: MemoryPool) -> list[tuple[str, ...]]:
    held: Mapping[str, Any] = pool["peak"]["by_category"] or {}
    total = pool["peak"]["allocated_bytes"]
    ordered = sorted(((kind, size) for kind, size in held.items() if size), key=lambda item: -item[1])
    return [(_name(pool), CATEGORIES[kind], format_bytes(size), format_share(size / total)) for kind, size in ordered]


def _places(pools: list[MemoryPool]) -> Section:
    listed = [(pool, place) for pool in pools for place in pool["peak"]["places"]]
    listed.sort(key=lambda pair: -pair[1]["bytes"])
    look = Look(cells={"category": lambda place: CATEGORIES[place["category"]], "where": _where})
    title = "What was allocated inside the profile and in use at the peak"
    made = table(title, MemoryPlace, [place for _, place in listed], look=look)
    ops = [text(place["where"] and place["where"]["op"]) for _, place in listed]
    made = inserted(made, 3, Column("op", name=True), ops)
    return inserted(made, 0, Column("memory of"), [_name(pool) for pool, _ in listed])


def _where(entry: MemoryPlace) -> str:
    """The line, else the module or annotation: the op stands beside it."""
    place = entry["where"]
    return phrases.locator(None if place is None else {**place, "op": None}) or ABSENT
