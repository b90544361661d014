"""What workers can save of a loader's time on the machine at hand, and what a cheaper function would."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.facts import Facts
from stepscope.analysis.learning import ops_share
from stepscope.analysis.limits import TOLD_SHARE
from stepscope.analysis.loading import LoaderFunction, Loading
from stepscope.diagnosis.finding import Finding, Option, paragraphs
from stepscope.diagnosis.input_places import loader_lines
from stepscope.diagnosis.left_on_host import at_best
from stepscope.diagnosis.limits import HIDDEN_SHARE, OWN_CODE_OPS_SHARE
from stepscope.diagnosis.ranking import least_told
from stepscope.diagnosis.remedies import remedy
from stepscope.diagnosis.remedies.input import CHEAPER_WORKERS, UNSEEN_WORKERS
from stepscope.diagnosis.remedies.overhead import SAVES_AT_MOST
from stepscope.diagnosis.worker_code import heaviest
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.units import format_count, format_mean, format_ns, format_share
from stepscope.whatif.change import Change
from stepscope.whatif.loader import Batches, WithWorkers
from stepscope.whatif.predictor import Predictor
from stepscope.whatif.recording import Overhead, told_step_ns

_NUMBER = regex(r"(num_workers=)[1-9]\d*")
_CHEAPER = "Cheaper code saves all of it at most."
_MOST = 0.8
"""Workers are the first cure where they save this share of what a loader that takes no time would."""


def by_workers(facts: Facts, replayed: Predictor | str, recorded: Overhead | None, finding: Finding) -> Finding:
    """A finding on a loader, of which nothing is promised that its workers cannot do on this machine; others as they
    are. Where they gain nothing nothing is saved, and a cheaper function is the cure where that is much of the step."""
    known, step = finding.loading, told_step_ns(facts)
    if known is None or step is None or finding.saving_ns_per_step is None or not facts.used:
        return finding
    rest = max(step - finding.saving_ns_per_step, 0)
    making, waiting = _making_ns(facts, known, recorded, step)
    batches = Batches(making, min(waiting, making), rest, facts.run.cores_of_rank, known.workers > 0)
    best = batches.best()
    if known.by_loop:
        return _made_in_loop(facts, finding, known, step, batches)
    title = _made_by(best.workers)
    options = {"workers": Option(title, best.step_ns, best.best_ns, best.workers)}
    if known.function is not None:
        name = known.function.frame.function
        options = {"make": Option(f"make `{name}` cheaper: all of it", rest)} | options
    if step - best.step_ns < least_told(step) or best.workers <= known.workers:
        if known.workers and step - rest >= HIDDEN_SHARE * step:
            return _cheaper_workers(facts, finding, step, rest)
        return _without_workers(finding, options.get("make"), step, _cheaper(facts, known, recorded, step))
    mostly = step - best.step_ns >= _MOST * (step - rest)
    fix = _with_number(finding.fix, best)
    cheaper, by = _cheaper(facts, known, recorded, step), _said(facts, best, batches)
    if mostly or not cheaper:
        parts = [fix, by, f"Or m{cheaper[1:]}" if cheaper else ""]
    else:
        parts = [cheaper, f"{by.removesuffix('.')}, the saving told above.", fix]
    ordered = [options[key] for key in ("workers", "make") if key in options]
    return replace(
        finding,
        fix="\n".join(filter(None, parts)),
        saving_ns_per_step=step - best.step_ns,
        predicted_step_ns=best.step_ns,
        best_step_ns=best.best_ns if best.best_ns < best.step_ns else None,
        options=tuple(ordered),
        change=_held_to(finding.change, best.step_ns),
    )


def _made_in_loop(facts: Facts, finding: Finding, known: Loading, step: int, batches: Batches) -> Finding:
    """What workers save, and cheaper code: of Python all of it may go. Of what ops compute nobody knows how much does
    before it is written: that saves at least what workers do."""
    best, rest = batches.best(), round(batches.rest_ns)
    cheaper = Option("make it cheaper: all of it", rest)
    options: tuple[Option, ...] = (cheaper,)
    fix, left = finding.fix, step
    if step - best.step_ns >= least_told(step) and best.step_ns > rest:
        workers = Option(_made_by(best.workers), best.step_ns, best.best_ns, best.workers)
        options, left = (cheaper, workers), best.step_ns
        fix = f"{_said(facts, best, batches)} {_CHEAPER}\n{_with_number(fix, best)}"
    finding = replace(finding, fix=fix, options=options)
    if ops_share(facts.trace, known.time) < OWN_CODE_OPS_SHARE or best.step_ns <= rest:
        return replace(finding, fix=finding.fix.replace(_CHEAPER, f"{_CHEAPER[:-1]}, the saving told above."))
    return replace(
        finding,
        saving_ns_per_step=step - left,
        predicted_step_ns=left,
        best_step_ns=rest if facts.activities else at_best(rest, step),
        options=options[::-1],
        change=_held_to(finding.change, left),
    )


def _cheaper_workers(facts: Facts, finding: Finding, step: int, rest: int) -> Finding:
    """Workers that cannot be more: how much cheaper their code can be is known from a measured run only."""
    return replace(
        finding,
        fix=paragraphs(
            f"Worker processes make the batches, and {_on_cores(facts)} more of them would gain nothing.\n"
            f"{_work(facts)}{remedy(CHEAPER_WORKERS, facts.workload)}\n{remedy(SAVES_AT_MOST, facts.workload)}"
        ),
        saving_ns_per_step=0,
        predicted_step_ns=step,
        best_step_ns=rest if facts.activities else at_best(rest, step),
        options=(Option("make what the workers do cheaper: all of it", rest),),
        change=_held_to(finding.change, step),
    )


def _work(facts: Facts) -> str:
    """The line at which workers are longest, or how to have it told."""
    workers = facts.run.loader_workers
    if workers is None:
        return f"{remedy(UNSEEN_WORKERS, facts.workload)}\n"
    most = heaviest(workers)
    return "" if most is None else f"{format_share(most.share)} of their work is in {most.frame.told}.\n"


def _held_to(change: Change | None, step_ns: int) -> Change | None:
    """A change that leaves no shorter step than that."""
    return None if change is None else replace(change, floor_ns=step_ns)


def _with_number(fix: str, best: WithWorkers) -> str:
    return _NUMBER.sub(rf"\g<1>{best.workers}", fix)


def _without_workers(finding: Finding, make: Option | None, step: int, cheaper: str) -> Finding:
    saving = finding.saving_ns_per_step or 0
    if make is not None and saving >= HIDDEN_SHARE * step:
        more = "More workers would gain nothing on this machine."
        return replace(finding, fix=f"{cheaper}\n{more}", options=(make,))
    return replace(finding, saving_ns_per_step=0, predicted_step_ns=step, change=_held_to(finding.change, step))


def _making_ns(facts: Facts, known: Loading, recorded: Overhead | None, step: int) -> tuple[float, float]:
    """What making a batch takes, unrecorded where that is known, and how much of it is waited in. Workers that nobody
    looked at, and that are waited for in each step, make one in as many steps as there are of them, or as there are
    cores for them."""
    if not known.workers:
        return _unrecorded_ns(facts, known.time, recorded), known.waiting_ns
    seen, recorded_step = facts.run.loader_workers, facts.run.recorded_ns
    making = None if seen is None or recorded_step is None else seen.batch_ns(known.workers, recorded_step)
    if seen is not None and making is not None:
        return making, making * seen.asleep_share
    return step * min(known.workers, facts.run.cores_of_rank or known.workers), known.waiting_ns


def _unrecorded_ns(facts: Facts, time: iv.Intervals, recorded: Overhead | None) -> int:
    steps = list(facts.used)
    windows = iv.union(*(bounds[steps] for bounds in facts.step_bounds))
    whole = facts.per_step(iv.measure(iv.intersect(time, windows)))
    return whole if recorded is None else recorded.left(facts, whole, {facts.host.main: time})


def _cheaper(facts: Facts, known: Loading, recorded: Overhead | None, step: int) -> str:
    """The function that takes most of the loading, with what it takes."""
    function = known.function
    if function is None or not function.calls:
        return ""
    whole = _unrecorded_ns(facts, function.time, recorded)
    each, calls = format_ns(round(whole / function.calls)), format_mean(function.calls)
    times = "once" if calls == "1" else f"each of the {calls} times that it is called"
    return (
        f"Make `{function.frame.function}` ({_place(function)}) cheaper, or do its work ahead of time, which saves up "
        f"to {format_ns(whole)} of {format_ns(step)}: it takes {each} {times} per step.{_line(facts, function)}"
    )


def _line(facts: Facts, function: LoaderFunction) -> str:
    """The line of it in which most of its time passes, where that is known."""
    lines = loader_lines(facts, facts.inputs, function.frame) if facts.inputs else ()
    longest = lines[0] if lines else None
    if longest is None or longest.where.line is None or longest.where.defined or longest.share < TOLD_SHARE:
        return ""
    if longest.where.function != function.frame.function:
        return ""
    return f" Line {longest.where.line} takes {format_share(longest.share)} of that."


def _place(function: LoaderFunction) -> str:
    name, line = function.frame.file.replace("\\", "/").split("/")[-1], function.frame.line
    return name if line is None else f"{name}:{line}"


def _said(facts: Facts, best: WithWorkers, batches: Batches) -> str:
    least, most = format_ns(best.best_ns), format_ns(best.step_ns)
    left = most if least == most else f"{least} to {most}"
    making, who = format_ns(round(batches.making_ns)), _workers(best.workers)
    leave = "leaves" if best.workers == 1 else "leave"
    return f"A batch takes {making} to make: {who} {_on_cores(facts)} {leave} {left} per step."


def _on_cores(facts: Facts) -> str:
    cores = facts.run.cores_of_rank
    if cores is None:
        return "where there are as many cores for them (how many there are was not recorded)"
    return f"on the {format_count(cores)} {'core' if cores == 1 else 'cores'} that this process may use"


def _made_by(workers: int) -> str:
    return f"{_workers(workers)} {'makes' if workers == 1 else 'make'} the batches"


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"
