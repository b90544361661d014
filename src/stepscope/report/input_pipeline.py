"""The input pipeline in the report: ``analyses.input`` and its table."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.analysis.facts import Facts
from stepscope.analysis.input_stages import InputStages
from stepscope.analysis.summary import feeds_devices
from stepscope.report.section import ABSENT, Column, Section, name, number
from stepscope.units import format_ns, format_share


def entry(facts: Facts, found: InputStages) -> dict[str, Any]:
    """The pipeline per used step."""
    producers = found.producers
    return {
        "wait_ns_per_step": facts.per_step(found.wait_ns),
        "stages": [
            {
                "name": stage.name,
                "side": stage.side,
                "ns_per_step": facts.per_step(stage.ns),
                "overlap_share": None if stage.overlapped_ns is None else stage.overlapped_ns / stage.ns,
            }
            for stage in found.stages
        ],
        "producers": None
        if producers is None
        else {
            "threads": producers.threads,
            "busy_share": producers.busy_share,
            "heaviest_stage": producers.heaviest,
            "feeds_devices": feeds_devices(facts),
            "devices": len(facts.working),
        },
        "queues": [dataclasses.asdict(queue) for queue in found.queues],
    }


_SIDES = {"training thread": "main thread"}
"""What the document calls a side, where people read another word: not every program trains."""


def table(given: dict[str, Any] | None) -> Section:
    """Stages, their time, and how much of it the device works through."""
    stages = given["stages"] if given else []
    rows = [
        (
            stage["name"],
            _SIDES.get(stage["side"], stage["side"]),
            format_ns(stage["ns_per_step"]),
            ABSENT if stage["overlap_share"] is None else format_share(stage["overlap_share"]),
        )
        for stage in stages
    ]
    columns = (name("stage"), Column("by"), number("per step"), number("device works"))
    return Section("Input pipeline", columns, rows, _note(given) if given else "")


def _note(given: dict[str, Any]) -> str:
    waits = f"{format_ns(given['wait_ns_per_step'])} per step in the loader on the main thread"
    for queue in given.get("queues", []):
        fill = f"{format_share(queue['mean'])} full on average, {format_share(queue['least'])} at the least"
        waits += f"; {queue['name']} was {fill}"
    producers = given["producers"]
    if producers is None:
        return f"{waits}; threads that prepare batches were not recorded"
    count = "1 thread" if producers["threads"] == 1 else f"{producers['threads']} threads"
    feeds = producers["feeds_devices"]
    enough = f"; at that rate they feed {feeds:.1f} devices like this" if feeds is not None else ""
    if feeds is not None and feeds < producers["devices"] > 1:
        enough += f"; there are {producers['devices']}"
    return f"{waits}; meanwhile {count} that prepare batches: busy {format_share(producers['busy_share'])}{enough}"
