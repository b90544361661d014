"""Tables of kernels: time, launch, roofline and utilisation."""

from __future__ import annotations

from typing import Any

from stepscope.report.section import ABSENT, Column, Section, cut, name, number, text, yes
from stepscope.units import format_bytes, format_count, format_ns, format_rate, format_share


def kernels(found: list[dict[str, Any]]) -> list[Section]:
    """Kernels by time, and how the same were launched."""
    rows, note = cut((_kernel(kernel) for kernel in found), len(found))
    columns = (
        name("kernel"),
        number("device"),
        name("from op"),
        number("time"),
        number("share"),
        number("count"),
        number("mean"),
        number("longest"),
        Column("precision"),
        Column("tensor cores"),
        Column("could use them"),
    )
    shapes, _ = cut((_launch(kernel["name"], kernel["launch"]) for kernel in found if "launch" in kernel), len(found))
    shape_columns = (
        name("kernel"),
        Column("grid"),
        Column("block"),
        number("registers"),
        number("shared memory"),
        number("occupancy"),
    )
    recorded = [row for row in shapes if any(cell != ABSENT for cell in row[1:])]
    return [
        Section("Kernels by time", columns, rows, note),
        Section("Kernels: how their longest launch was made", shape_columns, recorded),
    ]


def _kernel(kernel: dict[str, Any]) -> tuple[str, ...]:
    mean, longest = kernel.get("mean_ns"), kernel.get("max_ns")
    return (
        kernel["name"],
        text(kernel.get("device")),
        text(kernel.get("op")),
        format_ns(kernel["total_ns"]),
        format_share(kernel["share"]),
        format_count(kernel["count"]),
        ABSENT if mean is None else format_ns(mean),
        ABSENT if longest is None else format_ns(longest),
        text(kernel["precision"]),
        kernel["tensor_core"],
        yes(kernel.get("tensor_core_eligible")),
    )


def _launch(kernel: str, launch: dict[str, Any]) -> tuple[str, ...]:
    occupancy = launch["occupancy_pct"]
    return (
        kernel,
        _sizes(launch["grid"]),
        _sizes(launch["block"]),
        text(launch["registers"]),
        ABSENT if launch["shared_memory"] is None else format_bytes(launch["shared_memory"]),
        ABSENT if occupancy is None else f"{occupancy:.0f} %",
    )


def _sizes(sizes: list[int] | None) -> str:
    return ABSENT if not sizes else "×".join(str(size) for size in sizes)


def roofline(found: dict[str, Any] | None) -> list[Section]:
    """Ops and kernels under the roofline."""
    if found is None:
        return []
    made = []
    for key, title in (("ops", "Roofline by op and shapes"), ("kernels", "Roofline by kernel")):
        own = found[key]
        rows, cut_off = cut((_roof(row, key[:-1]) for row in own), len(own))
        doubts = dict.fromkeys(row["doubt"] for row in own if row["doubt"])
        note = "; ".join([f"* {doubt}" for doubt in doubts] + ([cut_off] if cut_off else []))
        shapes = (name("shapes"),) if key == "ops" else ()
        columns = (
            name(key[:-1]),
            *shapes,
            number("time"),
            number("count"),
            Column("precision"),
            number("rate"),
            number("of peak"),
            number("bytes"),
            number("of bandwidth"),
            Column("bound by"),
        )
        made.append(Section(title, columns, rows, note))
    return made


def _roof(row: dict[str, Any], key: str) -> tuple[str, ...]:
    return (
        row[key],
        *((text(row["dims"]),) if key == "op" else ()),
        format_ns(row["total_ns"]),
        format_count(row["count"]),
        text(row["precision"]),
        _rate(row["flops_per_s"], "FLOP/s"),
        _share(row["flops_share"]),
        _rate(row["bytes_per_s"], "B/s"),
        _share(row["bandwidth_share"]),
        text(row["bound"]),
    )


def _rate(value: float | None, unit: str) -> str:
    return ABSENT if not value else format_rate(value, unit)


def _share(value: float | None) -> str:
    if not value:
        return ABSENT
    return format_share(value) + ("*" if value > 1 else "")


def mfu(found: list[dict[str, Any]]) -> Section:
    """Model FLOPs utilisation."""
    rows = [
        (
            text(row["device"]),
            format_count(row["flops_per_step"]),
            format_share(row["counted_share"]),
            format_share(row["share"]) if row["share"] is not None else f"not determined: {row['reason']}",
        )
        for row in found
    ]
    columns = (number("device"), number("FLOPs per step"), number("kernel time counted"), Column("of the peak"))
    return Section(
        "Model FLOPs utilisation (MFU)", columns, rows, "matrix products that ran, those computed again among them"
    )
