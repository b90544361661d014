"""The tables of a job's report: who was late, what each rank's time went to, clocks, and collectives."""

from __future__ import annotations

from stepscope.document.ranks import (
    JobPathEntry,
    LateStepEntry,
    RankClock,
    RankOnPath,
    RankRow,
    RanksEntry,
    TrafficEntry,
    UnreadableRank,
)
from stepscope.report import labels
from stepscope.report.section import ABSENT, Column, Section, cut, number, rate
from stepscope.report.tables import Look, table
from stepscope.units import NS_PER_US, format_ns, in_runs

CAUSES = {
    "input": "input",
    "slow_device": "slower device",
    "uneven_work": "more work",
    "host": "host",
    "link": "transfers",
    "unknown": "not determined",
}
_BOUND = "≤, ≥: waiting is in it, as not all members of the group are here on clocks that are known"
BREAKDOWNS_SHOWN = 8
"""Ranks (or devices of them) that have a table each of where their time goes."""
_PER_LINE = 12
_PARTS = 4
"""Kinds of time told of a rank on the critical path."""
_SHOWN = {
    "compute": "compute",
    "transfer": "collective_transfer",
    "waits for ranks": "collective_wait",
    "undivided": "collective",
    "input": "input",
}
"""Parts of a step that ranks are compared by, by title."""


def sections(ranks: RanksEntry | None, collectives: list[TrafficEntry]) -> list[Section]:
    """What of a job's analyses has rows."""
    exchanged = [_traffic(collectives), _bandwidths(collectives)]
    if ranks is None:
        return exchanged
    return [
        _unreadable(ranks["unreadable"]),
        _missing(ranks["missing"]),
        _late(ranks["steps"]),
        _ranks(ranks["per_rank"]),
        _spread(ranks["per_rank"]),
        _path(ranks.get("critical_path")),
        _clocks(ranks["clocks"]),
        *exchanged,
    ]


def _unreadable(failed: list[UnreadableRank]) -> Section:
    return table("Ranks that could not be read", UnreadableRank, failed)


def _missing(ranks: list[int]) -> Section:
    """Every one of them, ranks in a row as first-last."""
    runs = in_runs(ranks)
    lines = [", ".join(runs[at : at + _PER_LINE]) for at in range(0, len(runs), _PER_LINE)]
    rows, note = cut(((line,) for line in lines), len(lines))
    return Section("Ranks without a profile here", (Column("ranks"),), rows, note)


def _spread(ranks: list[RankRow]) -> Section:
    """Of many ranks the means, and for each part of a step who has least and who most of it."""
    parts = {part for row in ranks for part in row["parts_ns_per_step"]} if len(ranks) > BREAKDOWNS_SHOWN else set()
    of = {part: [row["parts_ns_per_step"].get(part, 0) for row in ranks] for part in parts}
    rows = []
    for part in sorted(of, key=lambda part: -sum(of[part])):
        least, most = (ranks[of[part].index(pick(of[part]))] for pick in (min, max))
        rows.append(
            (
                labels.CATEGORIES[part].words,
                "works" if labels.works(part) else "waits",
                format_ns(round(sum(of[part]) / len(ranks))),
                format_ns(min(of[part])),
                _lane(least),
                format_ns(max(of[part])),
                _lane(most),
            )
        )
    columns = (Column("part"), Column(""), number("mean"), number("least"), number("rank"), number("most"),
               number("rank"))  # fmt: skip
    note = f"means per step; --rank N has the whole of one; --format json has all {len(ranks)}"
    return Section("Where each step's time goes, over the ranks", columns, rows, note)


def _lane(row: RankRow | LateStepEntry) -> str:
    return f"{row['rank']}" if row["device"] in (None, 0) else f"{row['rank']}, device {row['device']}"


def _late(steps: list[LateStepEntry]) -> Section:
    look = Look(
        cells={
            "rank": _lane,
            "cause": lambda step: CAUSES[step["cause"]],
            "chain": lambda step: " → ".join(map(str, step["chain"])) if len(step["chain"]) > 1 else ABSENT,
        },
        titles={"used": None} if all(step["used"] for step in steps) else {},
    )
    return table("Whom each step waited for", LateStepEntry, steps, look=look)


def _ranks(ranks: list[RankRow]) -> Section:
    """The ranks others waited for most come first."""
    ordered = sorted(ranks, key=lambda row: -(row["made_wait_ns_per_step"] or 0))
    return table("Ranks", RankRow, ordered, "means per step", Look(cells={"rank": _lane}, keys=_SHOWN))


def _path(path: JobPathEntry | None) -> Section:
    """The critical path by rank; how long it is, and what is not told of it."""
    if path is None or path["ns_per_step"] is None:
        return table("What sets the step time, by rank", RankOnPath, [])
    told = [
        f"the critical path, {format_ns(path['ns_per_step'])} per step over {path['steps']} steps",
        f"it goes to another rank {rate(path['hops_per_step'])} times per step",
    ]
    if path["undivided_per_step"]:
        told.append(f"of {rate(path['undivided_per_step'])} collectives on it the last rank is not known")
    look = Look(cells={"parts_ns_per_step": lambda row: _largest(row["parts_ns_per_step"])})
    return table("What sets the step time, by rank", RankOnPath, path["ranks"], "; ".join(told), look)


def _largest(parts: dict[str, int]) -> str:
    return ", ".join(f"{labels.CATEGORIES[part].words} {format_ns(ns)}" for part, ns in list(parts.items())[:_PARTS])


def _clocks(clocks: list[RankClock]) -> Section:
    known = [clock for clock in clocks if clock["offset_ns"] is not None]
    look = Look(
        cells={
            "offset_ns": lambda clock: f"{clock['offset_ns'] / NS_PER_US:,.3f} µs",
            "drift": lambda clock: rate(clock["drift"] * 1e6),
        }
    )
    return table("Clocks, against the first rank's", RankClock, known, look=look)


def _traffic(collectives: list[TrafficEntry]) -> Section:
    look = Look(
        "traffic",
        {
            "kind": _kind,
            "transfer_ns": lambda one: f"{'≤ ' if one['bound'] else ''}{format_ns(one['transfer_ns'])}",
            "imbalance": lambda one: ABSENT if one["imbalance"] is None else f"{one['imbalance']:.2f} ×",
        },
    )
    bound = _BOUND if any(one["bound"] for one in collectives) else ""
    return table("Collectives", TrafficEntry, collectives, bound, look)


def _kind(one: TrafficEntry) -> str:
    return one["kind"].replace("_", "-")


def _bandwidths(collectives: list[TrafficEntry]) -> Section:
    told = [one for one in collectives if one["algorithm_bandwidth"] is not None]
    look = Look(
        "bandwidth",
        {
            "kind": _kind,
            "algorithm_bandwidth": lambda one: _bandwidth(one["algorithm_bandwidth"], one["bound"]),
            "bus_bandwidth": lambda one: _bandwidth(one["bus_bandwidth"], one["bound"]),
        },
    )
    return table("Bandwidth of collectives", TrafficEntry, told, look=look)


def _bandwidth(value: float | None, bound: bool) -> str:
    return ABSENT if value is None else f"{'≥ ' if bound else ''}{value / 1e9:.3g}"
