"""The tables of a job's report: who was late, what each rank's time went to, clocks, and collectives."""

from __future__ import annotations

from typing import Any

from stepscope.report import labels
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, place, rate, text, yes
from stepscope.units import format_bytes, format_ns, format_share, in_runs

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
_SHOWN = ("compute", "collective_transfer", "collective_wait", "collective", "input")


def sections(ranks: dict[str, Any] | None, collectives: list[dict[str, Any]]) -> list[Section]:
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
        _clocks(ranks["clocks"]),
        *exchanged,
    ]


def _unreadable(failed: list[dict[str, Any]]) -> Section:
    columns = (number("rank"), place("file"), name("why"))
    rows, note = cut(((text(one.get("rank")), one["path"], one["reason"]) for one in failed), len(failed))
    return Section("Ranks that could not be read", columns, rows, note)


def _missing(ranks: list[int]) -> Section:
    """Every one of them, ranks in a row as first-last."""
    runs = in_runs(ranks)
    lines = [", ".join(runs[at : at + _PER_LINE]) for at in range(0, len(runs), _PER_LINE)]
    rows, note = cut(((line,) for line in lines), len(lines))
    return Section("Ranks without a profile here", (Column("ranks"),), rows, note)


def _spread(ranks: list[dict[str, Any]]) -> Section:
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


def _ns(value: int | None) -> str:
    return ABSENT if value is None else format_ns(value)


def _lane(row: dict[str, Any]) -> str:
    return f"{row['rank']}" if row["device"] in (None, 0) else f"{row['rank']}, device {row['device']}"


def _late(steps: list[dict[str, Any]]) -> Section:
    columns = (
        number("step"),
        number("step time"),
        number("late rank"),
        number("others waited"),
        Column("because of"),
        Column("by way of"),
        Column("in the means"),
    )
    all_used = all(step["used"] for step in steps)
    rows, note = cut(
        (
            (
                text(step["number"]),
                _ns(step["dur_ns"]),
                _lane(step),
                _ns(step["waited_ns"]),
                CAUSES[step["cause"]],
                " → ".join(map(str, step["chain"])) if len(step["chain"]) > 1 else ABSENT,
                ABSENT if all_used else yes(step["used"]),
            )
            for step in steps
        ),
        len(steps),
    )
    return Section("Whom each step waited for", columns, rows, note)


def _ranks(ranks: list[dict[str, Any]]) -> Section:
    """The ranks others waited for most come first."""
    ordered = sorted(ranks, key=lambda row: -(row["made_wait_ns_per_step"] or 0))
    columns = (
        number("rank"),
        name("host"),
        number("step time"),
        number("compute"),
        number("transfer"),
        number("waits for ranks"),
        number("undivided"),
        number("input"),
        number("others wait for it"),
        number("late in steps"),
    )
    rows, note = cut(
        (
            (
                _lane(row),
                text(row["host"]),
                _ns(row["step_ns"]),
                *(_ns(row["parts_ns_per_step"].get(part)) for part in _SHOWN),
                _ns(row["made_wait_ns_per_step"]),
                text(row["late_steps"]),
            )
            for row in ordered
        ),
        len(ordered),
    )
    return Section("Ranks", columns, rows, note or "means per step")


def _clocks(clocks: list[dict[str, Any]]) -> Section:
    known = [clock for clock in clocks if clock["offset_ns"] is not None]
    columns = (number("rank"), number("clock is behind by"), number("drift (µs/s)"), number("±"), number("collectives"))
    rows, note = cut(
        (
            (
                text(clock["rank"]),
                f"{clock['offset_ns'] / 1000:,.3f} µs",
                rate(clock["drift"] * 1e6),
                _ns(clock["uncertainty_ns"]),
                text(clock["collectives"]),
            )
            for clock in known
        ),
        len(known),
    )
    return Section("Clocks, against the first rank's", columns, rows, note)


def _traffic(collectives: list[dict[str, Any]]) -> Section:
    columns = (
        Column("collective"),
        name("group"),
        number("ranks"),
        number("size"),
        number("per step"),
        number("takes"),
        number("transfer"),
        number("waits"),
        number("exposed per step"),
        number("most uneven"),
    )
    rows, note = cut(
        (
            (
                one["kind"].replace("_", "-"),
                one["group"],
                text(one["size"]),
                ABSENT if one["bytes"] is None else format_bytes(one["bytes"]),
                rate(one["per_step"]),
                format_ns(one["duration_ns"]),
                f"{'≤ ' if one['bound'] else ''}{format_ns(one['transfer_ns'])}",
                _ns(one["wait_ns"]),
                _ns(one["exposed_ns_per_step"]),
                ABSENT if one["imbalance"] is None else f"{one['imbalance']:.2f} ×",
            )
            for one in collectives
        ),
        len(collectives),
    )
    bound = _BOUND if any(one["bound"] for one in collectives) else ""
    return Section("Collectives", columns, rows, "; ".join(filter(None, (note, bound))))


def _bandwidths(collectives: list[dict[str, Any]]) -> Section:
    told = [one for one in collectives if one["algorithm_bandwidth"] is not None]
    columns = (
        Column("collective"),
        name("group"),
        number("size"),
        number("algorithm GB/s"),
        number("bus GB/s"),
        number("of the link"),
    )
    rows, note = cut(
        (
            (
                one["kind"].replace("_", "-"),
                one["group"],
                format_bytes(one["bytes"]),
                _bandwidth(one["algorithm_bandwidth"], one["bound"]),
                _bandwidth(one["bus_bandwidth"], one["bound"]),
                ABSENT if one["link_share"] is None else format_share(one["link_share"]),
            )
            for one in told
        ),
        len(told),
    )
    return Section("Bandwidth of collectives", columns, rows, note)


def _bandwidth(value: float | None, bound: bool) -> str:
    return ABSENT if value is None else f"{'≥ ' if bound else ''}{value / 1e9:.3g}"
