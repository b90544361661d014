"""The report's figures of ops and layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.alike import Alike, alike
from stepscope.analysis.facts import Facts
from stepscope.analysis.layers import Layer, Layers
from stepscope.analysis.op_lines import by_line
from stepscope.analysis.ops import OpTable, OpUse
from stepscope.report.entries import plain

if TYPE_CHECKING:
    from stepscope.document import ops as entry

ROWS = 50
"""Ops, places and layers that a report lists."""
EACH = 16
"""Of layers that are alike those that are listed."""


def ops(table: OpTable) -> entry.OpsEntry:
    """``analyses.ops``."""
    places = by_line(table.by_place, table.launch_cost_ns)
    return {
        "launch_cost_ns": table.launch_cost_ns,
        "device_ns": table.device_ns,
        "outside_ns": table.outside_ns,
        "types": len(table.by_type),
        "places": len(places),
        "by_type": [_use(use) for use in table.by_type[:ROWS]],
        "by_place": [_use(use) for use in places[:ROWS]],
    }


def _use(use: OpUse) -> entry.OpUseEntry:
    made: entry.OpUseEntry = plain(use)
    made["mean_ns"] = round(use.mean_ns)
    return made


def layers(facts: Facts) -> list[entry.LayersEntry]:
    """``analyses.layers``."""
    return [_layers(facts, of_device) for of_device in facts.layers if of_device.layers]


def _layers(facts: Facts, layers: Layers) -> entry.LayersEntry:
    made: entry.LayersEntry = {
        "device": layers.device,
        "total_ns_per_step": facts.per_step(layers.total_ns),
        "outside_ns_per_step": facts.per_step(layers.outside_ns),
        "count": len(layers.layers),
        "layers": [_layer(facts, layers, layer) for layer in layers.layers[:ROWS]],
    }
    together = alike(layers.layers)
    if len(together) < len(layers.layers):
        made["alike"] = [_alike(facts, layers, one) for one in together[:ROWS]]
    return made


def _alike(facts: Facts, layers: Layers, one: Alike) -> entry.AlikeLayers:
    each = one.layers[:EACH] if len(one.layers) > 1 else ()
    return {
        "whole": _layer(facts, layers, one.whole),
        "layers": len(one.layers),
        "each": [_layer(facts, layers, layer) for layer in each],
    }


def _layer(facts: Facts, layers: Layers, layer: Layer) -> entry.LayerEntry:
    return {
        "path": layer.path,
        "forward_ns_per_step": facts.per_step(layer.forward_ns),
        "backward_ns_per_step": facts.per_step(layer.backward_ns),
        "whole_ns_per_step": facts.per_step(layer.whole_ns),
        "kernels_per_step": layer.kernels / len(facts.used),
        "share": layer.own_ns / layers.total_ns if layers.total_ns else 0.0,
    }
