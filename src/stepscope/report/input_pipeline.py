"""The input pipeline in the report: ``analyses.input`` and its table."""

from __future__ import annotations

import dataclasses
from typing import Any

from stepscope.analysis.facts import Facts
from stepscope.analysis.input_stages import InputStages
from stepscope.analysis.iterators import Iterators
from stepscope.analysis.summary import feeds_devices
from stepscope.report.section import ABSENT, Column, Section, cut, name, number, rate, text, yes
from stepscope.units import format_ns, format_share


def entry(facts: Facts, found: InputStages) -> dict[str, Any]:
    """The pipeline per used step."""
    producers = found.producers
    return {
        "wait_ns_per_step": facts.per_step(found.wait_ns),
        "taken_on": found.taken_on,
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
        "iterators": None if found.iterators is None else _iterators(facts, found.iterators),
    }


def _iterators(facts: Facts, found: Iterators) -> dict[str, Any]:
    return {
        "wait_ns_per_step": facts.per_step(found.wait_ns),
        "cpu_budget": found.cpu_budget,
        "threadpool_size": found.threadpool_size,
        "each": [
            {
                "path": list(one.path),
                "dataset": one.dataset,
                "calls_per_step": one.calls / len(facts.used) if facts.used else 0.0,
                "ns_per_step": facts.per_step(one.total_ns),
                "own_wait_ns_per_step": facts.per_step(one.own_ns),
                "parallelism": one.parallelism,
                "buffer_limit": one.buffer_limit,
                "autotuned": one.autotuned,
            }
            for one in found.each
        ],
    }


def _sides(given: dict[str, Any]) -> dict[str, str]:
    """What the document calls a side, where people read another word: not every program trains, and not in every one
    it is the main thread that takes batches."""
    thread = given.get("taken_on")
    return {"training thread": f"thread {thread}" if thread else "main thread"}


def table(given: dict[str, Any] | None) -> Section:
    """Stages, their time, and how much of it the device works through."""
    stages, sides = (given["stages"], _sides(given)) if given else ([], {})
    rows = [
        (
            stage["name"],
            sides.get(stage["side"], stage["side"]),
            format_ns(stage["ns_per_step"]),
            ABSENT if stage["overlap_share"] is None else format_share(stage["overlap_share"]),
        )
        for stage in stages
    ]
    columns = (name("stage"), Column("by"), number("per step"), number("device works"))
    return Section("Input pipeline", columns, rows, _note(given) if given else "")


def iterators(given: dict[str, Any] | None) -> Section:
    """tf.data's iterators, each with what it takes of the waiting for a batch and how it runs."""
    found = given.get("iterators") if given else None
    rows, note = cut(
        (
            (
                "::".join(one["path"]),
                text(one["dataset"]),
                rate(one["calls_per_step"]),
                format_ns(one["ns_per_step"]),
                format_ns(one["own_wait_ns_per_step"]),
                text(one["parallelism"]),
                text(one["buffer_limit"]),
                ABSENT if one["autotuned"] is None else yes(one["autotuned"]),
            )
            for one in (found["each"] if found else ())
        ),
        len(found["each"]) if found else 0,
    )
    columns = (
        name("iterator"), name("dataset"), number("calls per step"), number("per step"), number("own wait"),
        number("calls at once"), number("buffer"), Column("autotuned"),
    )  # fmt: skip
    return Section("tf.data pipeline by iterator", columns, rows, _pool(found, note) if found else "")


def _pool(found: dict[str, Any], cut_note: str) -> str:
    told = (
        cut_note,
        "own wait: its own part of the time in which a batch is waited for",
        f"cores tf.data may use: {found['cpu_budget']}" if found["cpu_budget"] is not None else "",
        f"threads that run its functions: {found['threadpool_size']}" if found["threadpool_size"] is not None else "",
    )
    return "; ".join(filter(None, told))


def _note(given: dict[str, Any]) -> str:
    waits = f"{format_ns(given['wait_ns_per_step'])} per step in the loader on the {_sides(given)['training thread']}"
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
