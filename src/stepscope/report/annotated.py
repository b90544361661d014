"""Time per annotation in the report: ``analyses.annotations``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.annotations import Annotations, AnnotationUse, UsedStepTimes
from stepscope.analysis.facts import Facts
from stepscope.report.limits import ANNOTATIONS_LISTED

if TYPE_CHECKING:
    from stepscope.document import ops as told


def entry(facts: Facts, annotations: Annotations) -> told.AnnotationsEntry:
    """The annotations of the used steps: sums, and what one step and device has of them on average."""

    def times(of: UsedStepTimes) -> told.AnnotationTimes:
        per_step = _per_step(facts, of, annotations.devices)
        return {"host_ns": of.host_ns, "device_ns": of.device_ns, "idle_ns": of.idle_ns, "per_step": per_step}

    def use(one: AnnotationUse) -> told.Annotation:
        per_step, whole, own = one.count / len(facts.used), times(one.whole), times(one.own)
        return {"name": one.name, "count": one.count, "per_step": per_step, "whole": whole, "own": own}

    return {
        "steps": len(facts.used),
        "devices": annotations.devices,
        "count": len(annotations.uses),
        "outside": times(annotations.outside),
        "annotations": [use(one) for one in annotations.uses[:ANNOTATIONS_LISTED]],
    }


def _per_step(facts: Facts, of: UsedStepTimes, devices: int) -> told.AnnotationMeans:
    def mean(ns: int | None) -> int | None:
        return None if ns is None else facts.per_step(ns // max(devices, 1))

    return {"host_ns": facts.per_step(of.host_ns), "device_ns": mean(of.device_ns), "idle_ns": mean(of.idle_ns)}
