"""The tables of the input pipeline."""

from __future__ import annotations

from stepscope.document.input import InputIterator, InputPipeline, InputStage, IteratorsEntry
from stepscope.report.section import Section
from stepscope.report.tables import Look, table
from stepscope.units import format_ns, format_share


def _sides(given: InputPipeline) -> dict[str, str]:
    """What the document calls a side, where people read another word: not every program trains, and not in every one
    it is the main thread that takes batches."""
    thread = given.get("taken_on")
    return {"training thread": f"thread {thread}" if thread else "main thread"}


def stages(given: InputPipeline | None) -> Section:
    """Stages, their time, and how much of it the device works through."""
    listed, sides = (given["stages"], _sides(given)) if given else ([], {})
    look = Look(cells={"side": lambda stage: sides.get(stage["side"], stage["side"])})
    return table("Input pipeline", InputStage, listed, note(given) if given else "", look)


def iterators(given: InputPipeline | None) -> Section:
    """tf.data's iterators, each with what it takes of the waiting for a batch and how it runs."""
    pipeline = given.get("iterators") if given else None
    look = Look(cells={"path": lambda one: "::".join(one["path"])})
    return table("tf.data pipeline by iterator", InputIterator, pipeline["each"] if pipeline else [],
                 _pool(pipeline) if pipeline else "", look)  # fmt: skip


def _pool(iterators: IteratorsEntry) -> str:
    told = (
        "own wait: its own part of the time in which a batch is waited for",
        f"cores tf.data may use: {iterators['cpu_budget']}" if iterators["cpu_budget"] is not None else "",
        f"threads that run its functions: {iterators['threadpool_size']}"
        if iterators["threadpool_size"] is not None
        else "",
    )
    return "; ".join(filter(None, told))


def note(given: InputPipeline) -> str:
    """What the training thread waits, and whether those who prepare batches keep up."""
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
