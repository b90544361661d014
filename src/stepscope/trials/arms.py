"""What is tried: each cure, and each number of one that takes a number, is an arm beside the unchanged job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepscope.capture.cures import fitting, parsed
from stepscope.capture.cures.cure import Cure
from stepscope.capture.cures.workers import WORKERS
from stepscope.errors import UsageError
from stepscope.trials.arguments import ChangedArgument
from stepscope.trials.interval import Measured, measured
from stepscope.trials.process import TrialRun

if TYPE_CHECKING:
    from stepscope.document.findings import FindingEntry
    from stepscope.document.report import Report


@dataclass(slots=True)
class Arm:
    """The job with some cures, none for the unchanged one, and its runs by the block in which they ran."""

    specs: tuple[str, ...]
    answers: tuple[FindingEntry, ...] = ()
    """The findings of the baseline that call for it."""
    runs: list[tuple[int, TrialRun]] = field(default_factory=list)
    out: str | None = None
    """Why it is no longer tried."""
    failed: bool = False
    argument: ChangedArgument | None = None
    """What the command says otherwise, of a trial of the batch size: its times are for as many samples as were given.
    """

    @property
    def cures(self) -> tuple[tuple[Cure, int | None], ...]:
        """Its cures with their numbers."""
        return tuple(map(parsed, self.specs))

    @property
    def group(self) -> str:
        """What it is another number of."""
        return self.argument.name if self.argument else "+".join(cure.name for cure, _ in self.cures)

    @property
    def name(self) -> str:
        """For people, and for files."""
        return self.argument.spec if self.argument else "+".join(self.specs) or "as-it-is"

    def step_ns(self, blocks: Iterable[int]) -> list[float]:
        """Mean steps of its runs in some blocks."""
        wanted = set(blocks)
        scale = self.argument.given / self.argument.value if self.argument else 1.0
        return [scale * ran.step_ns for block, ran in self.runs if block in wanted and ran.step_ns is not None]

    def against(self, baseline: Arm) -> Measured | None:
        """It beside the unchanged job, over the blocks in which both ran; None where there is no such."""
        blocks = {block for block, _ in self.runs}
        before, after = baseline.step_ns(blocks), self.step_ns(blocks)
        return measured(before, after) if before and after else None


def chosen(document: Report, cores: int, *, of_keras: bool = False) -> list[Arm]:
    """The arms that a diagnosis calls for, cures in their order; on a CPU also those that no profile of one tells."""
    findings, has_device = document["findings"], bool(document["profile"]["devices"])
    arms = []
    for cure in fitting(document["profile"]["framework"], has_device=has_device, of_keras=of_keras):
        answers = tuple(finding for finding in findings if finding["rule"] in cure.answers)
        if answers or (cure.on_cpu and not has_device):
            arms += _arms(cure, cores, answers)
    return arms


def named(names: Sequence[str], findings: Sequence[FindingEntry], cores: int) -> list[Arm]:
    """The arms that ``--cure`` names: ``workers``, with all its numbers, or ``workers=2``. Raises UsageError."""
    arms = []
    for name in names:
        try:
            cure, value = parsed(name)
        except ValueError as error:
            raise UsageError(f"--cure: {error}; stepscope try --list shows what there is") from error
        answers = tuple(finding for finding in findings if finding["rule"] in cure.answers)
        arms += _arms(cure, cores, answers) if value is None else [Arm((cure.spec(value),), answers)]
    return arms


def refined(best: Sequence[Arm], tried: Sequence[Arm]) -> list[tuple[Arm, list[Arm]]]:
    """The next line of a search over two numbers: cures whose numbers go along with another's, at that one's best."""
    along = [arm for arm in tried if len(arm.cures) == 1 and arm.cures[0][0].along is not None]
    made = []
    for base in best:
        names = {cure.name for cure, value in base.cures if value}
        further = [
            Arm((*base.specs, *arm.specs), (*base.answers, *arm.answers))
            for arm in along
            if arm.cures[0][0].along in names
        ]
        if further:
            made.append((base, further))
    return made


def _arms(cure: Cure, cores: int, answers: tuple[FindingEntry, ...]) -> list[Arm]:
    values: Sequence[int | None] = (None,)
    if cure.values is not None:
        named = {each.get("workers") for finding in answers for each in finding["options"]} - {None}
        values = sorted({*cure.values(cores), *(named if cure.name == WORKERS.name else ())})
    return [Arm((cure.spec(value),), answers) for value in values]
