from __future__ import annotations

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.copies import Copies
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import RECURS_SHARE
from stepscope.analysis.workload import Workload
from stepscope.diagnosis.evidence import SHOWN, booked, slices_as_evidence, timed
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.many_copies import TO_DEVICE, TO_HOST, many_of_one_size
from stepscope.diagnosis.remedies import (
    COPY_D2H,
    COPY_PAGEABLE,
    COPY_PINNED,
    PYTORCH,
    TENSORFLOW,
    Remedies,
    remedy,
)
from stepscope.diagnosis.rule import Rule
from stepscope.trace.codes import among
from stepscope.units import format_bytes, format_mean, format_ns
from stepscope.whatif.changes import waits_of_copies, without_copies

RULE = Rule(
    id="exposed_copy",
    scope="device",
    pages=("input", "kernels"),
    tells=(Category.COPY_STAGING,),
    tells_beside=True,
    finds="Copies between host and device during which the device does nothing else.",
    statement="""\
Time of a direction's copies that no kernel hides, plus the time the host stages pageable memory while the device idles.
The kind of host memory and the time the host is blocked in the copies are named; for copies to the device the saving is
that of pinned memory and copies that nothing waits for. What copies to the device cost is weighed against the wait for
input: which says where a batch is best worked on. Where one place makes `REPEATED_COPIES` or more of one size per step,
or the ops of one graph do, that they could be one is said first. Copies within the device are work and not reported
here.""",
    shared_limits=("REPEATED_COPIES",),
    needs="Copies of the device; whether memory is pinned.",
    cure="A step whose copies run beside other work.",
    example='`batch.to("cuda")` of pageable memory in the step.',
    makes_late="input",
    tried_for=("PyTorch", "JAX"),
)

_WORDS = {
    Category.COPY_H2D: "from host to device",
    Category.COPY_D2H: "from device to host",
    Category.COPY_P2P: "between devices",
}

_P2P: Remedies = {
    TENSORFLOW: """\
Look at where variables lie: towers that read variables of the first GPU fetch them in every step. Give each device its
own (`tf.distribute.MirroredStrategy`), or place them on the CPU:
    tf.config.set_soft_device_placement(True)
    with tf.device("/CPU:0"):   # or tf.compat.v1.train.replica_device_setter
        weights = tf.Variable(...)
Split a batch before it reaches a device, and keep the ops of one layer on one device.""",
    PYTORCH: """\
Keep the tensors of one layer on one device: `.to(device)` in `forward` of what was made elsewhere (masks, positions,
running totals) copies in every step; register it as a buffer of the module, or make it there (`device=x.device`). Start
what must be sent before the compute that does not need it (`non_blocking=True`).""",
    None: """\
Keep the tensors of one layer on one device, and start the transfer before the compute that does not need it.""",
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and direction."""
    findings = []
    for account, copies in zip(facts.accounts, facts.copies, strict=False):
        for category in _WORDS:
            mine = [c for c in copies if c.category is category and c.exposed_ns > 0 and _recurs(facts, c)]
            if mine:
                findings.append(_finding(facts, account, category, mine))
    return findings


def _recurs(facts: Facts, copies: Copies) -> bool:
    return len(copies.steps) >= RECURS_SHARE * len(facts.used)


def _finding(facts: Facts, account: Account, category: Category, copies: list[Copies]) -> Finding:
    exposed = facts.per_step(sum(c.exposed_ns for c in copies))
    staging = booked(facts, account, Category.COPY_STAGING) if category is Category.COPY_H2D else 0
    pageable = [c for c in copies if "pageable" in (c.source_memory, c.target_memory)]
    guessed = any(not c.launch_recorded for c in copies)
    many = many_of_one_size(facts, copies)
    joined = [remedy(TO_HOST if category is Category.COPY_D2H else TO_DEVICE, facts.workload)] if many else []
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title=f"Copies {_WORDS[category]} that nothing hides",
        cost_ns_per_step=exposed + staging,
        saving_ns_per_step=exposed + staging,
        change=without_copies(facts, category),
        why=_why(facts, copies, exposed, staging) + _placement(facts, account, category, exposed + staging),
        fix=paragraphs("\n".join([*joined, _fix(category, bool(pageable), facts.workload)])),
        basis="heuristic" if guessed else "measured",
        confidence="medium" if guessed else "high",
        where=tuple(dict.fromkeys(timed(facts, c.where, c.exposed_ns) for c in copies if c.where))[:SHOWN],
        evidence=slices_as_evidence(facts, [s for c in copies for s in c.slices], device=account.rows.device),
    )


def _why(facts: Facts, copies: list[Copies], exposed: int, staging: int) -> str:
    count = sum(c.count for c in copies) / len(facts.used)
    sizes = [c.bytes for c in copies]
    known = [size for size in sizes if size is not None]
    size = f", {format_bytes(sum(known) // len(facts.used))}" if len(known) == len(sizes) else ""
    noun = "copy" if count == 1 else "copies"
    text = f"{format_mean(count)} {noun} per step{size}: "
    text += f"for {format_ns(exposed)} per step the device does nothing but copy."
    for many in many_of_one_size(facts, copies):
        times = format_mean(many.copies / len(facts.used))
        text += f" {times} of {format_bytes(many.size)} each come from {many.place}."
    if staging:
        text += f" Another {format_ns(staging)} it waits for the host to stage the data."
    text += _memory(facts, copies)
    if any(not c.launch_recorded for c in copies):
        text += " The launches were not recorded: the op is the one nearest in time."
    return text


def _placement(facts: Facts, account: Account, category: Category, cost: int) -> str:
    """Where to work on a batch: what sending it costs against what the loader takes to prepare it."""
    waited = booked(facts, account, Category.INPUT)
    if category is not Category.COPY_H2D or not waited:
        return ""
    if cost > waited:
        return (
            f" Sending batches costs more than waiting for them ({format_ns(waited)} per step): make them smaller on "
            "the CPU first (resize, crop), and send `uint8`, cast on the device."
        )
    return (
        f" Waiting for batches costs more than sending them ({format_ns(waited)} per step): casting and "
        "normalising on the device takes work from the host, and `uint8` makes the copy smaller too."
    )


def _memory(facts: Facts, copies: list[Copies]) -> str:
    """Which memory the host's side is in, and how long the host waits in the copies."""
    if copies[0].category is Category.COPY_P2P:
        return ""
    to_device = copies[0].category is Category.COPY_H2D
    kinds = {c.source_memory if to_device else c.target_memory for c in copies}
    blocked = facts.per_step(_blocked(facts, copies))
    waits = f" It waits {format_ns(blocked)} per step in them." if blocked else ""
    if "pageable" in kinds:
        text = f" The host memory is pageable, which makes the copy slower and blocks the host.{waits}"
    elif kinds == {"pinned"}:
        text = f" The host memory is pinned{', yet the host waits for the copies' if blocked else ''}.{waits}"
    else:
        text = waits.replace("It waits", "The host waits")
    return text + (" The saving is that of pinned memory and copies that nothing waits for." if to_device else "")


def _blocked(facts: Facts, copies: list[Copies]) -> int:
    ops = facts.trace.device_ops
    calls = ops.launch[among(ops.slice, [s for c in copies for s in c.slices])]
    waits = waits_of_copies(facts, calls[calls >= 0])
    return int((facts.host.waits.end[waits] - facts.host.waits.start[waits]).sum())


def _fix(category: Category, pageable: bool, workload: Workload) -> str:
    if category is Category.COPY_D2H:
        return remedy(COPY_D2H, workload)
    if category is Category.COPY_P2P:
        return remedy(_P2P, workload)
    return remedy(COPY_PAGEABLE if pageable else COPY_PINNED, workload)
