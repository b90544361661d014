"""What the machine had to run beside the job."""

from __future__ import annotations

from stepscope.analysis.core_waits import core_waits
from stepscope.analysis.facts import Facts
from stepscope.analysis.recording import ThreadBeside
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import BESIDE_SHARE, BESIDE_SHOWN, NO_CORE_SHARE
from stepscope.diagnosis.starved import without_core
from stepscope.units import format_ns, format_share


def threads_beside(facts: Facts) -> Notice | None:
    """That threads of the program compute beside the steps, which wait for the interpreter then."""
    told = [one for one in facts.run.beside if one.share >= BESIDE_SHARE]
    if not told or not facts.timed:
        return None
    names = ", ".join(f"{_thread(one)} {format_share(one.share)} of the time" for one in told[:BESIDE_SHOWN])
    more = f" (and {len(told) - BESIDE_SHOWN} more)" if len(told) > BESIDE_SHOWN else ""
    who, it = ("another thread", "it") if len(told) == 1 else ("other threads", "them")
    return Notice(
        "threads_beside",
        f"Beside the steps {who} of the program computed: {names}{more}. Python runs one thread at a time: where that "
        f"was Python code, the main thread had to wait for {it}. How long was not recorded; time the job "
        f"without {it} to see. Give {it} less to do, or make {it} a process.",
    )


def _thread(one: ThreadBeside) -> str:
    if one.function is None:
        return f"`{one.name}`"
    file = (one.file or "").replace("\\", "/").split("/")[-1]
    return f"`{one.function}` ({file}:{one.line})" if file and one.line is not None else f"`{one.function}`"


def no_core(facts: Facts) -> Notice | None:
    """That the thread of the steps was ready to run, and no core was free."""
    waits = core_waits(facts.trace, facts.host.main)
    if waits is None or not facts.timed:
        return None
    steps = list(facts.timed)
    start, end = (bounds[steps] for bounds in facts.step_bounds)
    waited, total = int(waits.between(start, end).sum()), int((end - start).sum())
    slow = sum(step.no_core for step in facts.slow)
    if not slow and waited < NO_CORE_SHARE * total:
        return None
    told = f"{format_share(waited / total)} of its time ({format_ns(waited // len(steps))} per step)"
    ranges = (
        " Savings are told as ranges for that: at least what they are in time with a core, all of it where the machine "
        "stays as busy."
        if without_core(facts)
        else ""
    )
    apart = f" {slow} of {len(steps)} steps took much longer for that." if slow else ""
    return Notice(
        "no_core",
        f"The main thread was ready to run and had no core for {told}: more ran on this machine than it has cores, "
        f"other programs or this job's own threads and workers.{apart} On a machine of its own the job is faster, and "
        f"its steps vary less.{ranges}",
    )
