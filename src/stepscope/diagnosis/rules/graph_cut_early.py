from __future__ import annotations

import numpy as np

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.device import DeviceActivity
from stepscope.analysis.facts import Facts
from stepscope.analysis.xla import executions_of
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.lazy_counts import read_back
from stepscope.diagnosis.remedies import GRAPH_CUT, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.names.xla_hosts import XlaRole
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.codes import among, mapped
from stepscope.trace.forest import outermost
from stepscope.trace.tables import Rows
from stepscope.units import format_times
from stepscope.whatif.change import Change

RULE = Rule(
    id="graph_cut_early",
    scope="device",
    pages=("ops",),
    tells=(Category.SYNC,),
    tells_beside=True,
    finds="A value is read in the middle of a step, so that it runs as several programs with a wait between.",
    statement="""\
In a used step a device runs two compiled programs one after another, and between them ends a read of a value on the
main thread (`.item()`, `print`, `float(x)`, `np.asarray`). The cost is the device's idle time between such programs.
Several programs without a read between them are no cut: they are queued; nor is what writes a checkpoint, which has to
read.""",
    needs="Programs of the device and reads on the main thread (XLA).",
    cure="A step without the wait between its programs.",
    example="`float(loss)` in the middle of a step of PyTorch/XLA.",
)

_READS = regex(r"(?:\w+::)+(?:Await|BlockHostUntil\w+|ToLiteral)$")


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    findings = []
    for activity, account in facts.devices if len(facts.trace.xla_ops) else ():
        cuts, waits = _cuts(facts, activity, account)
        idle = iv.subtract(cuts, activity.busy)
        cost = facts.per_step(iv.measure(idle))
        if not cost:
            continue
        slices = facts.host.waits.slice[waits]
        places = dict.fromkeys(where for s in slices.tolist() if (where := facts.locator.where(s)))
        names = dict.fromkeys(where.op or where.annotation or where.function for where in places)
        read = ", ".join(f"`{name}`" for name in list(names)[:SHOWN] if name)
        findings.append(
            Finding(
                rule=RULE.id,
                device=activity.device,
                title="Values read in the middle of the step cut it into several programs",
                why=(
                    f"{format_times(len(cuts[0]) / len(facts.used))} per step the next program starts only after a "
                    f"value of the one before was read{f' ({read})' if read else ''}: the device is idle until the "
                    "host has it, and has built and started the rest." + read_back(facts)
                ),
                fix=paragraphs(remedy(GRAPH_CUT, facts.workload)),
                cost_ns_per_step=cost,
                saving_ns_per_step=cost,
                change=Change(host=dict.fromkeys(facts.launching_tracks, idle), waits=frozenset(slices.tolist())),
                where=tuple(places)[:SHOWN],
                evidence=slices_as_evidence(facts, slices.tolist(), device=activity.device),
            )
        )
    return findings


def _cuts(facts: Facts, activity: DeviceActivity, account: Account) -> tuple[iv.Intervals, Rows]:
    """From the end of one program to the start of the next of the same step, where a read ends between; and the reads
    (positions of host waits)."""
    runs = executions_of(facts.trace, activity, facts.host)
    host, slices = facts.host, facts.trace.slices
    fetching = host.in_role(XlaRole.FETCH) | mapped(slices.name, facts.trace.strings, _reads, np.bool_)
    saving = outermost(host.causes == Category.CHECKPOINT_IO.code, slices.parent) >= 0
    reads = np.flatnonzero((fetching & ~saving)[host.waits.slice] & (host.waits.track == host.main))
    if len(runs) < 2 or not reads.size:
        return iv.EMPTY, reads[:0]
    row = account.rows.at(runs.start)
    reach = np.maximum.accumulate(runs.end)
    begin, end = reach[:-1], runs.start[1:]
    same = (row[1:] == row[:-1]) & among(row[1:], facts.used_rows(account)) & (end > begin)
    begin, end = begin[same], end[same]
    done = host.waits.end[reads]
    at = np.searchsorted(begin, done, "right") - 1
    inside = (at >= 0) & (done <= end[at]) if begin.size else np.zeros(reads.size, np.bool_)
    cut = np.unique(at[inside])
    return (begin[cut], end[cut]), reads[inside]


def _reads(name: str) -> bool:
    return _READS.match(name) is not None
