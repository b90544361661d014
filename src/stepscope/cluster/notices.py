"""What must be known of a job to read its report: what is missing, and what therefore is not told."""

from __future__ import annotations

from collections import defaultdict

from stepscope.analysis.categories import Category
from stepscope.cluster.job import JobFacts
from stepscope.cluster.waits import Arrivals
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import UNDIVIDED_SHARE
from stepscope.diagnosis.notices.recorded import NO_LINES
from stepscope.trace.tables import NULL, Bools
from stepscope.units import format_ns, in_runs

_LISTED = 8


def notices(facts: JobFacts) -> list[Notice]:
    """Everything."""
    return [*_missing(facts), *_clocks(facts), *_collectives(facts), *_few_steps(facts), *_of_each(facts)]


def _missing(facts: JobFacts) -> list[Notice]:
    notices = []
    if facts.missing:
        notices.append(
            Notice(
                "ranks_missing",
                f"{len(facts.missing)} of the job's {facts.world_size} ranks "
                f"{'has' if len(facts.missing) == 1 else 'have'} no profile here: "
                f"{_listed(facts.missing)}. Whoever waited for one of them is not told, and the rest of their "
                "collectives stays undivided.",
                len(facts.missing),
                says_count=True,
            )
        )
    if facts.failed:
        told = "; ".join(f"rank {one.rank}, {one.path}: {one.reason}" for one in facts.failed[:_LISTED])
        more = "; …" if len(facts.failed) > _LISTED else ""
        notices.append(
            Notice("rank_unreadable", f"Could not be read, and is left out: {told}{more}", len(facts.failed))
        )
    if facts.again:
        who = f"Rank {facts.again[0]}" if len(facts.again) == 1 else f"Ranks {_listed(list(facts.again))}"
        it = "it" if len(facts.again) == 1 else "them"
        text = f"{who} had to be read again, as a worker that had {it} was lost or failed."
        notices.append(Notice("rank_read_again", text, len(facts.again)))
    if facts.duplicates:
        ranks = [rank for rank, _ in facts.duplicates]
        others = [path for _, paths in facts.duplicates for path in paths]
        who = f"Rank {ranks[0]} has" if len(ranks) == 1 else f"Ranks {_listed(ranks)} have"
        told = ", ".join(others[:_LISTED]) + (", …" if len(others) > _LISTED else "")
        text = f"{who} more than one profile: the last by name is read, not {told}."
        notices.append(Notice("rank_duplicate", text, len(others)))
    return notices


def _listed(ranks: list[int]) -> str:
    told = in_runs(ranks)
    return ", ".join(told[:_LISTED]) + (", …" if len(told) > _LISTED else "")


def _clocks(facts: JobFacts) -> list[Notice]:
    if len(facts.partials) < 2 or not any(len(group.matched.lanes) > 1 for group in facts.groups):
        return []
    lost = [rank for rank, clock in zip(facts.ranks, facts.clocks, strict=True) if clock is None]
    notices = []
    if lost:
        notices.append(
            Notice(
                "clocks_unknown",
                f"The clock{'s' * (len(lost) > 1)} of rank{'s' * (len(lost) > 1)} {_listed(lost)} cannot be compared "
                "with the others': they share no collective that waits for all, directly or through others, and no "
                "host. Who waited for whom is told of those alone that share such a collective.",
                len(lost),
            )
        )
    parts = facts.mean_parts
    if parts.get(Category.COLLECTIVE, 0.0) > UNDIVIDED_SHARE * sum(parts.values()):
        notices += _untold(facts)
    return notices


def _untold(facts: JobFacts) -> list[Notice]:
    """Why nothing is told of who waited in groups that wait for all."""
    waiting = [group for group in facts.groups if group.matched.synchronises.any() and len(group.matched.lanes) > 1]
    untold = [group for group in waiting if not group.told.any()]
    sampled = [g for g in untold if any(facts.partials[lane.partial].sampled for lane in g.matched.lanes)]
    unsure = [g for g in untold if not any(g is one for one in sampled) and (g.start != NULL).sum(axis=0).max() > 1]
    notices = []
    if sampled:
        notices.append(
            Notice(
                "collectives_sampled",
                f"Who waited for whom in {_which(sampled, waiting)} collectives is not determined: their profiles were "
                "sampled, and may lack the very one that another rank's is taken for. Record whole steps.",
            )
        )
    if unsure:
        worst = max(float(group.uncertainty_ns.max()) for group in unsure)
        notices.append(
            Notice(
                "clocks_uncertain",
                f"The ranks' clocks are known to ± {format_ns(round(worst))} only, too little for the length of "
                f"{_which(unsure, waiting)} collectives: who waited for whom in them is not determined. More steps in "
                "each profile would bound the clocks better.",
            )
        )
    return notices


def _which(some: list[Arrivals], of: list[Arrivals]) -> str:
    return "their" if len(some) == len(of) else "some of their"


def _collectives(facts: JobFacts) -> list[Notice]:
    world = max(facts.world_size or 0, len(facts.partials))
    if world > 1 and not any(len(partial.collectives) for partial in facts.partials):
        return [
            Notice(
                "job_no_collectives",
                f"The job has {world} ranks but no collective was recognised in any of them: what they wait for each "
                "other cannot be told.",
            )
        ]
    notices = []
    left_out = sum(partial.collectives.left_out for partial in facts.partials)
    if left_out:
        notices.append(
            Notice(
                "collectives_left_out",
                "Of ranks with very many collectives those of the first steps alone are matched; later ones stay "
                "undivided.",
                left_out,
            )
        )
    total = sum(int((partial.collectives.step >= 0).sum()) for partial in facts.partials)
    unmatched = total - sum(_shared(group.matched.present) for group in facts.groups)
    if len(facts.partials) > 1 and unmatched > total // 20:
        notices.append(
            Notice(
                "collectives_unmatched",
                f"{unmatched} of {total} collectives have no counterpart on another rank that was read (their groups' "
                "other members are missing, or what these recorded in the same steps differs in number or size): they "
                "stay undivided.",
                unmatched,
                says_count=True,
            )
        )
    return notices


def _shared(present: Bools) -> int:
    """Entries of collectives that more than one lane takes part in."""
    return int(present[:, present.sum(axis=0) > 1].sum())


def _few_steps(facts: JobFacts) -> list[Notice]:
    if facts.blame is None or facts.blame.determined or facts.sampled:
        return []
    return [
        Notice(
            "stragglers_not_determined",
            f"With {len(facts.used_steps)} steps, a rank that is always late cannot be told from chance: record five "
            "or more.",
        )
    ]


def _of_each(facts: JobFacts) -> list[Notice]:
    """What must be known of single ranks; what several have in common, once."""
    groups: dict[str, list[tuple[int, Notice]]] = defaultdict(list)
    for rank, partial in zip(facts.ranks, facts.partials, strict=True):
        for notice in partial.notices:
            groups[notice.code].append((rank, notice))
    made = []
    for code, group in groups.items():
        ranks = list(dict.fromkeys(rank for rank, _ in group))
        if code == NO_LINES:  # said where they are missed; nothing sets one rank apart that others are like
            ranks = [rank for rank, partial in zip(facts.ranks, facts.partials, strict=True) if not partial.python]
        who = "All ranks" if len(ranks) == len(facts.partials) else f"Rank{'s' * (len(ranks) > 1)} {_listed(ranks)}"
        counts, first = [notice.count for _, notice in group if notice.count is not None], group[0][1]
        count = sum(counts) if counts else None
        made.append(Notice(code, f"{who}: {first.text}", count, first.says_count and count == first.count))
    return made
