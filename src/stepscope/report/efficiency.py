"""The report's figures of kernels: how each was launched, where it stands under the roofline, and utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import LaunchShape
from stepscope.analysis.roofline import Roof, kernel_roofs, op_roofs, utilisation
from stepscope.report.entries import word

if TYPE_CHECKING:
    from stepscope.document import kernels as entry

ROWS = 50
"""Kernels and ops that a report lists."""


def kernels(facts: Facts) -> list[entry.KernelEntry]:
    """``analyses.kernels``: those that take longest."""
    total = facts.kernels.total_ns
    return [
        {
            "name": use.name,
            "device": use.device,
            "op": use.op,
            "family": str(use.traits.family),
            "precision": use.precision,
            "precision_reason": use.precision_reason,
            "tensor_core": word(use.traits.tensor_core),
            "tensor_core_reason": use.traits.tensor_core_reason,
            "tensor_core_eligible": use.traits.eligible,
            "count": use.count,
            "total_ns": use.total_ns,
            "mean_ns": round(use.total_ns / use.count),
            "min_ns": use.min_ns,
            "max_ns": use.max_ns,
            "share": use.total_ns / total if total else 0.0,
            "launch": _launch(use.shape),
        }
        for use in facts.kernels.uses[:ROWS]
    ]


def _launch(shape: LaunchShape) -> entry.KernelLaunch:
    return {
        "grid": None if shape.grid is None else list(shape.grid),
        "block": None if shape.block is None else list(shape.block),
        "registers": shape.registers,
        "shared_memory": shape.shared_memory,
        "occupancy_pct": shape.occupancy_pct,
        "blocks": shape.blocks,
    }


def roofline(facts: Facts) -> entry.Roofline:
    """``analyses.roofline``: ops and kernels whose cost is known, longest first."""
    ops = sorted((roof for work in facts.work for roof in op_roofs(work)), key=lambda one: -one.roof.ns)
    alone = sorted((roof for work in facts.work for roof in kernel_roofs(work)), key=lambda one: -one.roof.ns)
    return {
        "ops": [
            {
                **_roof(op.roof, op.device),
                "op": op.name,
                "dims": "".join(op.dims.split()) if op.dims else None,
                "kind": word(op.kind),
                "kernel": op.kernel,
            }
            for op in ops[:ROWS]
        ],
        "kernels": [{**_roof(kernel.roof, kernel.device), "kernel": kernel.name} for kernel in alone[:ROWS]],
    }


def mfu(facts: Facts) -> list[entry.UtilisationEntry]:
    """``analyses.mfu``: a row per device that ran kernels."""
    used = [utilisation(work) for work in facts.work]
    return [
        {
            "device": one.device,
            "flops_per_step": facts.per_step(one.flops),
            "counted_share": one.counted_share,
            "share": None if facts.sampling.sampled else one.share,
            "reason": "the profile was sampled" if facts.sampling.sampled else one.reason,
        }
        for one in used
        if one is not None
    ]


def _roof(roof: Roof, device: int | None) -> entry.RoofEntry:
    return {
        "device": device,
        "count": roof.count,
        "total_ns": roof.ns,
        "flops": roof.flops,
        "bytes": roof.bytes,
        "precision": roof.precision,
        "units": "matrix" if roof.matrix_units else "vector",
        "flops_per_s": roof.flops_per_s,
        "bytes_per_s": roof.bytes_per_s,
        "peak_flops_per_s": roof.peak_flops,
        "peak_bytes_per_s": roof.bandwidth,
        "flops_share": roof.flops_share,
        "bandwidth_share": roof.bandwidth_share,
        "intensity": roof.intensity,
        "ridge": roof.ridge,
        "bound": roof.bound,
        "doubt": roof.doubt,
    }
