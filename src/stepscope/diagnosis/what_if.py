"""What a step would take without some of its findings, parts of their fix sets, or causes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import total_parts
from stepscope.diagnosis.finding import Diagnosis
from stepscope.diagnosis.remedies import LARGER_BATCH, sentence
from stepscope.errors import UsageError
from stepscope.record import record
from stepscope.whatif import changes
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor
from stepscope.whatif.recording import told_step_ns

MOST_TIMES_THE_BATCH = 1_000
_COPIES = (Category.COPY_H2D, Category.COPY_D2H, Category.COPY_P2P)


@record
class Target:
    """Something that can be taken out of a profile."""

    name: str
    """Id of a finding (``sync_bound.1``), of a part of its fix set (``sync_bound.1/2``), or a category (``gc``)."""
    title: str
    change: Change


@record
class Prediction:
    """The mean step, measured and without what was taken out; times in ns."""

    removed: tuple[str, ...]
    title: str
    step_ns: int
    predicted_step_ns: int

    @property
    def saving_ns(self) -> int:
        """What a step gets shorter."""
        return self.step_ns - self.predicted_step_ns


def targets(facts: Facts, diagnosis: Diagnosis) -> list[Target]:
    """Everything that can be taken out: findings first, the parts of each behind it, then the causes booked."""
    listed: list[Target] = []
    for finding in (*diagnosis.findings, *diagnosis.minor):
        if finding.change is not None:
            listed.append(Target(finding.id, finding.title, finding.change))
            listed += [
                Target(f"{finding.id}/{k}", f"only {part.title}", part.change)
                for k, part in enumerate(finding.fix_set, 1)
            ]
    booked = [category for category, ns in total_parts(facts).items() if ns]
    for category in booked:
        change = _change(facts, category)
        if change is not None:
            listed.append(Target(str(category), f"all time that counts as {category}", change))
    return listed


def _change(facts: Facts, category: Category) -> Change | None:
    if category is Category.LAUNCH:
        return changes.without_dispatch(facts)
    if category is Category.SYNC:
        return changes.without_all_waits(facts)
    if category in _COPIES:
        return changes.without_copies(facts, category)
    return changes.without_host_time(facts, category) if category in HOST_CAUSES else None


@record
class LargerBatch:
    """The mean step of a batch ``factor`` times as large; times in ns."""

    factor: float
    step_ns: int
    predicted_step_ns: int
    has_room: bool | None
    """Whether the device's memory holds it, None where memory was not recorded."""
    changes: str
    """What a larger batch changes besides."""

    @property
    def per_present_batch_ns(self) -> int:
        """What as many samples as today's batch has would take."""
        return round(self.predicted_step_ns / self.factor)


def larger_batch(facts: Facts, diagnosis: Diagnosis, factor: float) -> LargerBatch:
    """What a larger batch would take by ``changes.larger_batch``. Raises UsageError where nothing can be replayed."""
    if not 1 < factor <= MOST_TIMES_THE_BATCH:
        raise UsageError(f"a batch can be made 1 to {MOST_TIMES_THE_BATCH} times as large, not {factor:g} times")
    predicted = replay_of(diagnosis).step_ns(changes.larger_batch(facts, factor))
    factors = [use.headroom.batch_factor for use in facts.memory if use.headroom and use.headroom.batch_factor]
    room = factor <= min(factors) if factors else None
    return LargerBatch(factor, told_step_ns(facts) or 0, predicted, room, sentence(LARGER_BATCH, facts.workload))


def what_if(facts: Facts, diagnosis: Diagnosis, names: Sequence[str], every: int = 1) -> Prediction:
    """The step without what is named, all of it at once; with ``every``, each so many steps one is as it was.

    Raises UsageError where nothing can be replayed, or a name is none of ``targets``.
    """
    if every < 1:
        raise UsageError(f"it can come every 1, 2, 3 … steps, not every {every}")
    if isinstance(diagnosis.replayed, str):
        _known(facts, diagnosis, names)
    replayed, step = replay_of(diagnosis), told_step_ns(facts) or 0
    known = {target.name: target for target in targets(facts, diagnosis)}
    unknown = [name for name in names if name not in known]
    if unknown:
        listed = ", ".join(known) or "nothing"
        raise UsageError(f"{unknown[0]}: cannot be taken out of this profile, which has {listed}")
    chosen = [known[name] for name in names]
    saving = replayed.saving_ns(reduce(or_, (target.change for target in chosen)))
    saving = round(saving * (every - 1) / every) if every > 1 else saving
    title = chosen[0].title if len(chosen) == 1 else "all of them"
    return Prediction(tuple(names), title, step, max(step - saving, 0))


def _known(facts: Facts, diagnosis: Diagnosis, names: Sequence[str]) -> None:
    """Raises UsageError for a name that is no finding, nor a category booked, whether or not it can be taken out."""
    ids = [finding.id for finding in (*diagnosis.findings, *diagnosis.minor)]
    booked = [str(category) for category, ns in total_parts(facts).items() if ns]
    for name in names:
        if name.partition("/")[0] not in (*ids, *booked):
            listed = ", ".join(ids) or "none"
            raise UsageError(f"{name}: there is no such finding; this profile has {listed}")


def replay_of(diagnosis: Diagnosis) -> Predictor:
    """The replay behind a diagnosis. Raises UsageError where there is none, saying why."""
    if isinstance(diagnosis.replayed, str):
        raise UsageError(f"nothing can be predicted from this profile: {diagnosis.replayed}")
    return diagnosis.replayed
