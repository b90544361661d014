"""Tables of kernels: time, launch, roofline and utilisation."""

from __future__ import annotations

from stepscope.document.kernels import KernelEntry, KernelLaunch, RoofEntry, Roofline, UtilisationEntry
from stepscope.report.section import ABSENT, Section, name
from stepscope.report.tables import Look, inserted, table
from stepscope.units import format_share


def kernels(entries: list[KernelEntry]) -> list[Section]:
    """Kernels by time, and how the same were launched."""
    made = [kernel for kernel in entries if _recorded(kernel.get("launch"))]
    look = Look(cells={"grid": lambda launch: _sizes(launch["grid"]), "block": lambda launch: _sizes(launch["block"])})
    launches = table(
        "Kernels: how their longest launch was made", KernelLaunch, [kernel["launch"] for kernel in made], look=look
    )
    return [
        table("Kernels by time", KernelEntry, entries),
        inserted(launches, 0, name("kernel"), [kernel["name"] for kernel in made]),
    ]


def _recorded(launch: KernelLaunch | None) -> bool:
    return any(value not in (None, []) for value in (launch or {}).values())


def _sizes(sizes: list[int] | None) -> str:
    return ABSENT if not sizes else "×".join(str(size) for size in sizes)


def roofline(roofs: Roofline | None) -> list[Section]:
    """Ops and kernels under the roofline."""
    if roofs is None:
        return []
    return [
        _roofs("Roofline by op and shapes", "ops", roofs["ops"]),
        _roofs("Roofline by kernel", "kernels", roofs["kernels"]),
    ]


def _roofs(title: str, view: str, roofs: list[RoofEntry]) -> Section:
    doubts = dict.fromkeys(row["doubt"] for row in roofs if row["doubt"])
    look = Look(
        view,
        {
            "flops_share": lambda row: _share(row["flops_share"]),
            "bandwidth_share": lambda row: _share(row["bandwidth_share"]),
        },
    )
    return table(title, RoofEntry, roofs, "; ".join(f"* {doubt}" for doubt in doubts), look)


def _share(value: float | None) -> str:
    if not value:
        return ABSENT
    return format_share(value) + ("*" if value > 1 else "")


def mfu(utilisations: list[UtilisationEntry]) -> Section:
    """Model FLOPs utilisation."""
    note = "matrix products that ran, those computed again among them"
    return table(
        "Model FLOPs utilisation (MFU)", UtilisationEntry, utilisations, note, Look(cells={"reason": _of_the_peak})
    )


def _of_the_peak(row: UtilisationEntry) -> str:
    return f"not determined: {row['reason']}" if row["share"] is None else format_share(row["share"])
