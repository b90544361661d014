"""What a planted case is: a simulated profile beside what its accounting must be."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.kit.events import Event
from tests.kit.loop import run
from tests.kit.plan import Plan
from tests.kit.truth import Truth, account


@dataclass(frozen=True, slots=True)
class Planted:
    """A profile, what its accounting must be, and what removing the cause would give."""

    plan: Plan
    events: tuple[Event, ...]
    truth: Truth
    rule: str | None = None
    """The rule that must find the cause, where its id is settled."""
    quiet: bool = False
    """No finding is allowed."""
    where: str = ""
    """Python frame of the user's own code around the cause."""
    category: str = ""
    """The accounting category the cause must show up in."""
    without_ns: dict[str, float] = field(default_factory=dict)
    """Mean step time simulated without the cause; ``all`` of it, or the part that is named."""

    @property
    def saving_ns(self) -> float:
        """What a step would be shorter without the cause."""
        return self.truth.mean_step_ns() - self.without_ns["all"]


def plant(
    plan: Plan,
    cured: Plan | None = None,
    *,
    parts: dict[str, Plan] | None = None,
    rule: str | None = None,
    quiet: bool = False,
    where: str = "",
    category: str = "",
) -> Planted:
    """Simulate a plan and the same without its cause, or without a part of it."""
    without = ({} if cured is None else {"all": cured}) | (parts or {})
    done = run(plan)
    covered = plan.stacks or plan.annotated
    return Planted(
        plan,
        tuple(done.machine.events()),
        account(done.machine, done.marks, covered),
        rule,
        quiet,
        where,
        category,
        {key: step_ns(other) for key, other in without.items()},
    )


def step_ns(plan: Plan) -> float:
    """Mean step time of a plan."""
    done = run(plan)
    return account(done.machine, done.marks).mean_step_ns()
