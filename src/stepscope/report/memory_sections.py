"""The tables of memory in the long report."""

from __future__ import annotations

from typing import Any

from stepscope.report import phrases
from stepscope.report.section import ABSENT, Column, Section, cut, number, place, text
from stepscope.units import format_bytes, format_count, format_ns, format_share

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


def space_name(program: dict[str, Any]) -> str:
    """What a memory space is called."""
    key = "host" if program["on_host"] else str(program["space"])
    return SPACES.get(key, f"memory space {key}")


def programs(found: dict[str, Any] | None) -> list[Section]:
    """What compiled programs need of memory, and what it is at the peak of the one that needs most."""
    if found is None:
        return []
    if found["not_recorded"]:
        return [Section("Memory of compiled programs", (Column("not recorded"),), [(found["not_recorded"],)])]
    rows = [
        (
            one["module"],
            space_name(one),
            format_bytes(one["peak_bytes"]),
            format_bytes(one["peak_bytes"] - one["unpadded_bytes"]),
            format_bytes(one["allocated_bytes"]),
            *(format_bytes(one["by_use"].get(use, 0)) for use in ("parameter", "output", "temporary")),
        )
        for one in found["programs"]
    ]
    columns = (Column("program", name=True), Column("in"), number("needs at most"), number("padding"),
               number("takes"), number("parameters"), number("results"), number("temporaries"))  # fmt: skip
    notes = [f"{found['without']} programs do not say it"] if found["without"] else []
    if found["left_out"]:
        notes.append(f"{found['left_out']} that need less are left out")
    return [Section("Memory of compiled programs", columns, rows, "; ".join(notes)), _buffers(found)]


def _buffers(found: dict[str, Any]) -> Section:
    first = found["programs"][0]
    rows = [
        (
            one["name"],
            USES[one["use"]],
            one["shape"],
            format_bytes(one["bytes"]),
            ABSENT if one["bytes"] == one["unpadded_bytes"] else format_bytes(one["bytes"] - one["unpadded_bytes"]),
            format_bytes(one["peak_without_bytes"]),
            text(one["way"]),
            text(one["source"] or one["scope"]),
        )
        for one in first["buffers"]
    ]
    shown, note = cut(rows, len(rows))
    columns = (Column("buffer", name=True), Column("is"), Column("shape"), number("bytes"), number("padding"),
               number("without it"), Column("way"), place("from"))  # fmt: skip
    used = {one["way"] for one in first["buffers"]}
    ways = "; ".join(text for way, text in found["ways"].items() if way in used)
    title = f"In {space_name(first)} when {first['module']} needs most of it"
    return Section(title, columns, shown, "; ".join(filter(None, (note, ways))))


def memory(found: dict[str, Any] | None, steps: dict[int | None, str]) -> list[Section]:
    """Memory per allocator, what it is for at the peak, and where that is allocated."""
    pools = [] if found is None else found["pools"]
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


def _partial(pool: dict[str, Any]) -> bool:
    return bool(pool["basis"] == "at_least")


def _name(pool: dict[str, Any]) -> str:
    place = "the host" if pool["device"] is None else f"device {pool['device']}"
    return place if pool["allocator"] is None else f"{place} ({pool['allocator']})"


def _use(pool: dict[str, Any], steps: dict[int | None, str]) -> tuple[str, ...]:
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


def _parts(pool: dict[str, Any]) -> list[tuple[str, ...]]:
    held: dict[str, int] = pool["peak"]["by_category"] or {}
    total = pool["peak"]["allocated_bytes"]
    ordered = sorted(((kind, size) for kind, size in held.items() if size), key=lambda item: -item[1])
    return [(_name(pool), CATEGORIES[kind], format_bytes(size), format_share(size / total)) for kind, size in ordered]


def _places(pools: list[dict[str, Any]]) -> Section:
    listed = [(pool, found) for pool in pools for found in pool["peak"]["places"]]
    listed.sort(key=lambda pair: -int(pair[1]["bytes"]))
    told = any(found["dtype"] or found["shape"] for _, found in listed)
    rows, note = cut(
        (
            (
                _name(pool),
                CATEGORIES[found["category"]],
                format_bytes(found["bytes"]),
                format_count(found["blocks"]),
                text(found["where"] and found["where"]["op"]),
                *([text(found["dtype"]), text(found["shape"])] if told else []),
                _where(found["where"]),
            )
            for pool, found in listed
        ),
        len(listed),
    )
    columns = (
        Column("memory of"),
        Column("what for"),
        number("bytes"),
        number("blocks"),
        Column("op", name=True),
        *([Column("type"), Column("shape")] if told else []),
        place("allocated in"),
    )
    return Section("What was allocated inside the profile and in use at the peak", columns, rows, note)


def _where(place: dict[str, Any] | None) -> str:
    """The line, else the module or annotation: the op stands beside it."""
    return phrases.locator(None if place is None else place | {"op": None}) or ABSENT
