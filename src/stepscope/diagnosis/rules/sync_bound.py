from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Final

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import WAIT_COST_NS
from stepscope.analysis.peaks import device_peaks, takes
from stepscope.analysis.syncs import Owner, Sync
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence, timed
from stepscope.diagnosis.finding import Finding, FixPart, paragraphs
from stepscope.diagnosis.limits import WAIT_SHARE
from stepscope.diagnosis.remedies import (
    CHECKPOINTS,
    PYTORCH,
    SYNC_CALL,
    SYNC_DEBUG,
    TENSORFLOW,
    Remedies,
    RemedyPart,
    remedy,
)
from stepscope.diagnosis.rule import Limit, Rule
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.sync_hints import Advice, Replacement
from stepscope.trace.shared import shared
from stepscope.trace.tables import I64
from stepscope.units import format_ns
from stepscope.whatif.change import Change
from stepscope.whatif.changes import wait_sites, with_replacement, without_waits

NEXT_WAITS: Final = 16

RULE = Rule(
    id="sync_bound",
    scope="device",
    pages=("ops", "kernels"),
    tells=(Category.SYNC,),
    finds="The host waits for the device, and the device then waits for the host.",
    statement="""\
The accounting books idle time to `sync`: the host was blocked in a wait while the device worked, and the lead it lost
was missing when the device ran dry; Python code that it would have been ahead with counts to the cost, though it is
booked to Python. All such waits of a device form one finding, because removing one of a chain only moves the wait to
the next. Waits of the loop around the steps (`loop_sync`) and of the profiler are not among them: to take those out is
no cure of the program. Evidence, not names, makes a sync: the blocking call inside the op. What replaces an op that
waits is charged where shapes were recorded and `torch.where` over the whole condition can stand in for it: its bytes at
the device's peak memory bandwidth, in place of what the op launched. Elsewhere what the op launched stays. That what
follows then works on the whole tensor too, the prediction does not know.""",
    limits=(
        Limit(
            "NEXT_WAITS",
            NEXT_WAITS,
            """\
So many places that wait for nothing yet are tried as the next ones of a chain: each is a replay.""",
        ),
    ),
    needs="Launches and the host's waits; shapes, for the saving.",
    cure="A step without these waits, all of them together.",
    example="`loss.item()` in every step, or `if mask.any():`.",
    host_bound=True,
    is_one=True,
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device: its costly waits as one set."""
    findings = []
    for account, syncs in zip(facts.accounts, facts.syncs, strict=False):
        own = [sync for sync in syncs if sync.owner is Owner.PROGRAM]
        total = sum(sync.cost_ns for sync in own)
        cost, least = facts.per_step(total), WAIT_SHARE * total
        guilty = [sync for sync in own if sync.cost_ns > 0 and sync.cost_ns >= least]
        if cost and guilty:
            findings.append(_finding(facts, account.rows.device, cost, guilty))
    return findings


def _finding(facts: Facts, device: int | None, cost: int, syncs: list[Sync]) -> Finding:
    first = syncs[0]
    sites = wait_sites(facts)
    parts = tuple(_part(facts, sync, sites, device) for sync in syncs)
    rest = [sync for sync in facts.syncs[facts.at[device]] if sync not in syncs] + facts.returning_syncs
    rest = [sync for sync in rest if sync.owner is Owner.PROGRAM]
    checks = [sync for sync in rest if not _lasts(facts, sync)]
    rest = [sync for sync in rest if sync not in checks]
    name = first.op or first.call
    others = f" and {len(syncs) - 1} more" if len(syncs) > 1 else ""
    verb = "make" if others else "makes"
    shown = [s for sync in syncs[:SHOWN] for s in sync.slices[:SHOWN]]
    return Finding(
        rule=RULE.id,
        device=device,
        title=f"`{name}`{others} {verb} the host wait for the device",
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=reduce(or_, (without_waits(facts, sync.slices, sites) for sync in checks), _all(parts)),
        fix_set=parts,
        next_waits=tuple(_part(facts, sync, sites, device) for sync in rest[:NEXT_WAITS]),
        why=_why(facts, syncs, device),
        fix=paragraphs(_fix(facts, syncs)),
        where=tuple(timed(facts, sync.where, sync.cost_ns) for sync in syncs[:SHOWN] if sync.where),
        evidence=slices_as_evidence(facts, shown, device=device),
    )


def _all(parts: tuple[FixPart, ...]) -> Change:
    return reduce(or_, (part.change for part in parts))


def _lasts(facts: Facts, sync: Sync) -> bool:
    """Whether the calls take as long as a call of a driver at all. XLA's own checks of holds on a buffer return in a
    few ns and wait for no device: they are nobody's to fix, and wait no more once other waits are gone."""
    return float(facts.trace.slices.dur_ns[list(sync.slices)].mean()) >= WAIT_COST_NS


def _part(facts: Facts, sync: Sync, sites: I64, device: int | None) -> FixPart:
    name = f"`{sync.op}` waits in `{sync.call}`" if sync.op else f"`{sync.call}`"
    return FixPart(
        title=name,
        where=sync.where,
        fix="\n".join(_alternatives(facts, sync)) or remedy(SYNC_CALL, facts.workload),
        cost_ns_per_step=facts.per_step(sync.cost_ns),
        change=_change(facts, sync, sites, device),
    )


def _change(facts: Facts, sync: Sync, sites: I64, device: int | None) -> Change:
    charge = _charge_ns(facts, sync, device)
    if charge is None or sync.replaced is None:
        return without_waits(facts, sync.slices, sites)
    return with_replacement(facts, sync.slices, sites, sync.replaced, charge)


WHERE_BYTES = 1 + 3 * 4
"""Per element ``torch.where`` reads a condition of one byte and two operands of four, and writes one of four."""


def _charge_ns(facts: Facts, sync: Sync, device: int | None) -> int | None:
    """Device time of what replaces the op, per call; None where nothing does or its shapes or device are not known."""
    if sync.hint is None or sync.hint.replacement is not Replacement.WHERE or sync.elements is None or device is None:
        return None
    peaks = device_peaks(facts.trace, device)
    if peaks is None or peaks.memory_bandwidth is None:
        return None
    return round(sync.elements * WHERE_BYTES * 1_000_000_000 / peaks.memory_bandwidth.value)


def _why(facts: Facts, syncs: list[Sync], device: int | None) -> str:
    lines = []
    for sync in syncs[:3]:
        waits = f"`{sync.op}` waits in `{sync.call}`" if sync.op else f"A call of `{sync.call}` outside of any op waits"
        lines.append(
            f"{waits} {_often(facts, sync)}: the host is blocked "
            f"{format_ns(facts.per_step(sync.blocked_ns))} per step, and the device then idles "
            f"{format_ns(facts.per_step(sync.cost_ns))} because nothing was queued behind it."
        )
    causes = dict.fromkeys(sync.hint.cause for sync in syncs if sync.hint is not None)
    text = " ".join([*lines, *(f"{cause[:1].upper()}{cause[1:]}." for cause in causes)])
    return " ".join([text, *filter(None, (_replaced(facts, sync, device) for sync in syncs))])


def _replaced(facts: Facts, sync: Sync, device: int | None) -> str:
    """What the replacement costs the device, and whether that is more than the wait costs."""
    charge = _charge_ns(facts, sync, device)
    if charge is None:
        return ""
    charged = facts.per_step(charge * sync.count)
    text = f"The prediction charges {format_ns(charged)} per step for `torch.where` in place of `{sync.op}`."
    if charged >= facts.per_step(sync.cost_ns):
        text += " That is more than the wait costs: the wait may pay for itself."
    return text


def _often(facts: Facts, sync: Sync) -> str:
    steps, used = len(sync.steps), len(facts.used)
    if steps == sync.count == used > 1:
        return "once in every step"
    times = "once" if sync.count == 1 else f"{sync.count} times"
    return f"{times} in the step" if used == 1 else f"{times} in {steps} of {used} steps"


_DROPS = (
    "where only a small part of a large tensor is kept, what follows has less to do: the wait may then pay for itself, "
    "so measure both"
)
_UNKNOWN = (
    "no equivalent that needs no wait is known here. Move it out of the step (before it, to the host, or "
    "behind its last launch), run it every N steps, or redesign what needs its result on the host"
)


def _alternatives(facts: Facts, sync: Sync) -> tuple[str, ...]:
    """Lines of a list; none where what holds for every call that waits is all there is to say."""
    if sync.hint is not None:
        lines = (_advice(facts, one) for one in sync.hint.alternatives)
        return (*filter(None, lines), *((_DROPS,) if sync.hint.drops else ()))
    return (_UNKNOWN,) if sync.op and facts.trace.info.framework in (PYTORCH, TENSORFLOW) else ()


@shared
def _without_bf16(facts: Facts) -> bool:
    """Whether the matrix units of a device certainly do not take bf16."""
    described = [facts.trace.info.device(activity.device) for activity in facts.activities]
    return any(takes(one, "bf16") is False for one in described)


def _advice(facts: Facts, given: str | Advice) -> str:
    """An alternative; empty where it does not fit the program."""
    if isinstance(given, str):
        return given
    if given.needs_bf16 and _without_bf16(facts):
        return ""
    return given.text if RemedyPart("", given.purposes, given.since).fits(facts.workload) else ""


def _fix(facts: Facts, syncs: list[Sync]) -> str:
    """A line per alternative; of several kinds of op a line per kind, with what each stands for."""
    kinds: dict[tuple[str, ...], list[str]] = {}
    for sync in syncs:
        names = kinds.setdefault(_alternatives(facts, sync), [])
        names += [sync.op] if sync.op and sync.op not in names else []
    others = kinds.pop((), None)
    if len(kinds) == 1 and (_UNKNOWN,) not in kinds:
        fixes = [f"- {line}" for lines in kinds for line in lines]
    else:
        fixes = [_of_kind(names, [line for line in lines if line != _DROPS]) for lines, names in kinds.items()]
        fixes += [f"- {_DROPS}"] if any(_DROPS in lines for lines in kinds) else []
    if others is not None:
        # Beside alternatives it is one of them, and begins as they do.
        fixes.append(("- " if fixes else "") + remedy(_plain_fix(facts, syncs), facts.workload))
    if facts.workload.framework == PYTORCH and SYNC_DEBUG.fits(facts.workload):
        fixes.append(SYNC_DEBUG.text)
    return "\n".join(fixes)


def _plain_fix(facts: Facts, syncs: list[Sync]) -> Remedies:
    """What to do about waits that no alternative stands for."""
    plain = [sync for sync in syncs if not _alternatives(facts, sync)]
    if all(_saves(sync.where) for sync in plain):
        return CHECKPOINTS
    return _START_FIX if all(_STARTS in sync.call for sync in plain) else SYNC_CALL


def _saves(where: Where) -> bool:
    """Whether it is in what reads or writes a checkpoint: that has to read values, whatever waits for them."""
    frame = f"({where.line or 0}): {where.function}"
    told = [classify_host_name(name, is_python=False) for name in (where.annotation, where.op) if name]
    told += [classify_host_name(f"{where.file}{frame}", is_python=True)] if where.file and where.function else []
    return HostRole.CHECKPOINT_IO in told


_NAMED = 3


def _of_kind(names: list[str], lines: list[str]) -> str:
    named = ", ".join(f"`{name}`" for name in names[:_NAMED])
    named += f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    text = "; or ".join(lines)
    return f"- {named}: {text}" if named and not text.startswith(named) else f"- {text}"


_STARTS = "LaunchOnDevice"
_START_FIX: Remedies = {
    None: """\
The call waits until its program was started on every device, and CPU devices run it meanwhile. It reads no value, so no
value can be kept back: start fewer programs (`jax.lax.scan` over several steps), or measure on the accelerator."""
}
