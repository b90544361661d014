"""What worker processes did while their batches were waited for, in words, and the lines they were at."""

from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.analysis.loader_workers import LoaderWorkers, WorkerPlace
from stepscope.analysis.where import Where
from stepscope.diagnosis.limits import ASLEEP_SHARE, NO_CORE_SHARE
from stepscope.units import format_share

_LISTED, _MOST = 0.05, 4
"""A place is told from this share of their work on, and so many are."""


def made_in_workers(facts: Facts) -> str:
    """For a title: that workers make the batches, and in which function of the program's mostly."""
    workers = facts.run.loader_workers
    most = None if workers is None else heaviest(workers)
    if most is None or most.frame.function.startswith("<"):
        return ""
    return f", which workers make in `{most.frame.function}`"


def places_in_workers(facts: Facts) -> tuple[Where, ...]:
    """The program's lines at which workers were longest, with the time that each worker passes there per step."""
    workers = facts.run.loader_workers
    if workers is None:
        return ()
    step = facts.used_ns / max(len(facts.used), 1)
    return tuple(
        Where(
            place.frame.file,
            place.frame.line,
            place.frame.function,
            ns_per_step=round(step * workers.busy_share * place.share),
        )
        for place in _told(workers)
        if place.frame.is_users
    )


def what_workers_did(facts: Facts) -> str:
    """How busy they were, with what, and whether that needs a core; that nothing is known where they were not seen."""
    workers = facts.run.loader_workers
    if workers is None:
        return " What the worker processes did was not recorded."
    text = f" The workers were busy {format_share(workers.busy_share)} of the time"
    told = ", ".join(f"{place.frame.told} {format_share(place.share)}" for place in _told(workers))
    text += f", of which in {told}" if told else ""
    if workers.asleep_share >= ASLEEP_SHARE:
        text += f"; {format_share(workers.asleep_share)} of it they waited themselves, for files or other programs"
    core_wait = (workers.core_wait_ns or 0) / workers.passed_ns
    if core_wait >= NO_CORE_SHARE:
        text += f"; {format_share(core_wait)} of the time no core was free for them"
    return text + "."


def heaviest(workers: LoaderWorkers) -> WorkerPlace | None:
    """The line of the program's own at which they were longest, where that is much of their time."""
    return next((place for place in _told(workers) if place.frame.is_users), None)


def _told(workers: LoaderWorkers) -> list[WorkerPlace]:
    return [place for place in workers.places if place.share >= _LISTED][:_MOST]
