"""The report's figures of kernels: how each was launched, where it stands under the roofline, and utilisation."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.analysis.facts import Facts
from stepscope.analysis.roofline import Roof, kernel_roofs, op_roofs, utilisation

ROWS = 50
"""Kernels and ops that a report lists."""


def _listed(values: dict[str, Any]) -> dict[str, Any]:
    """With tuples as the lists they are in JSON."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def kernels(facts: Facts) -> list[dict[str, Any]]:
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
            "tensor_core": str(use.traits.tensor_core),
            "tensor_core_reason": use.traits.tensor_core_reason,
            "tensor_core_eligible": use.traits.eligible,
            "count": use.count,
            "total_ns": use.total_ns,
            "mean_ns": round(use.total_ns / use.count),
            "min_ns": use.min_ns,
            "max_ns": use.max_ns,
            "share": use.total_ns / total if total else 0.0,
            "launch": _listed(dataclasses.asdict(use.shape)) | {"blocks": use.shape.blocks},
        }
        for use in facts.kernels.uses[:ROWS]
    ]


def roofline(facts: Facts) -> dict[str, Any]:
    """``analyses.roofline``: ops and kernels whose cost is known, longest first."""
    ops = sorted((roof for work in facts.work for roof in op_roofs(work)), key=lambda one: -one.roof.ns)
    alone = sorted((roof for work in facts.work for roof in kernel_roofs(work)), key=lambda one: -one.roof.ns)
    return {
        "ops": [
            {
                "device": op.device,
                "op": op.name,
                "dims": "".join(op.dims.split()) if op.dims else None,
                "kind": str(op.kind),
                "kernel": op.kernel,
                **_roof(op.roof),
            }
            for op in ops[:ROWS]
        ],
        "kernels": [{"device": kernel.device, "kernel": kernel.name, **_roof(kernel.roof)} for kernel in alone[:ROWS]],
    }


def mfu(facts: Facts) -> list[dict[str, Any]]:
    """``analyses.mfu``: a row per device that ran kernels."""
    found = [utilisation(work) for work in facts.work]
    return [
        {
            "device": one.device,
            "flops_per_step": facts.per_step(one.flops),
            "counted_share": one.counted_share,
            "share": None if facts.sampling.sampled else one.share,
            "reason": "the profile was sampled" if facts.sampling.sampled else one.reason,
        }
        for one in found
        if one is not None
    ]


def _roof(roof: Roof) -> dict[str, Any]:
    return {
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
