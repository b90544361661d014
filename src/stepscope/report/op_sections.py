"""The tables of ops and layers in the long report."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.document.ops import LayerEntry, LayersEntry, OpsEntry, OpUseEntry
from stepscope.report.section import ABSENT, Section, number, text
from stepscope.report.tables import Look, Text, inserted, table
from stepscope.units import format_ns


def ops(costs: OpsEntry | None) -> list[Section]:
    """Ops by type and by place."""
    if costs is None:
        return []
    cost, note = costs["launch_cost_ns"], ""
    if cost is not None:
        note = f"tiny: what ran on the device takes, on average, no longer than a launch costs here ({format_ns(cost)})"
    of_device: Mapping[str, Text] = {
        "device_self_ns": lambda use: format_ns(use["device_self_ns"]) if use["device_ops"] else ABSENT
    }
    by_type = Look("types", of_device)
    by_place = Look("places", {**of_device, "op": lambda use: use["name"] or use["op"]})
    return [
        table("Ops by type, in the steps used", OpUseEntry, costs["by_type"], note, by_type, costs["types"]),
        table("Ops by place, in the steps used", OpUseEntry, costs["by_place"], "", by_place, costs["places"]),
    ]


def layers(entries: list[LayersEntry]) -> list[Section]:
    """The layers of each device, dearest first."""
    return [_layers(one) for one in entries]


def _layers(layers: LayersEntry) -> Section:
    of_device = layers["device"] is not None
    titles: dict[str, str | None] = {} if of_device else {"kernels_per_step": "ops"}
    if not any(layer["backward_ns_per_step"] for layer in layers["layers"]):
        titles["backward_ns_per_step"] = None
    outside = f"{format_ns(layers['outside_ns_per_step'])} of {format_ns(layers['total_ns_per_step'])} in no layer"
    title = f"Layers by the time of their {'kernels' if of_device else 'ops'}, per step"
    made = table(title, LayerEntry, layers["layers"], outside, Look(titles=titles), layers["count"])
    return inserted(made, 1, number("device"), [text(layers["device"])] * len(made.rows))
