"""Time per annotation in the report: ``analyses.annotations``."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.analysis.annotations import Annotations, AnnotationUse, UsedStepTimes
from stepscope.analysis.facts import Facts
from stepscope.report.limits import ANNOTATIONS_LISTED


def entry(facts: Facts, found: Annotations) -> dict[str, Any]:
    """The annotations of the used steps: sums, and what one step and device has of them on average."""

    def times(of: UsedStepTimes) -> dict[str, Any]:
        return dataclasses.asdict(of) | {"per_step": _per_step(facts, of, found.devices)}

    def use(one: AnnotationUse) -> dict[str, Any]:
        counts = {"name": one.name, "count": one.count, "per_step": one.count / len(facts.used)}
        return counts | {"whole": times(one.whole), "own": times(one.own)}

    return {
        "steps": len(facts.used),
        "devices": found.devices,
        "count": len(found.uses),
        "outside": times(found.outside),
        "annotations": [use(one) for one in found.uses[:ANNOTATIONS_LISTED]],
    }


def _per_step(facts: Facts, of: UsedStepTimes, devices: int) -> dict[str, int | None]:
    def mean(ns: int | None) -> int | None:
        return None if ns is None else facts.per_step(ns // max(devices, 1))

    return {"host_ns": facts.per_step(of.host_ns), "device_ns": mean(of.device_ns), "idle_ns": mean(of.idle_ns)}
