from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import SHOWN, booked, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import CORES, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_ns
from stepscope.whatif.change import Change

RULE = Rule(
    id="host_contention",
    scope="device",
    pages=("input",),
    tells=(Category.LAUNCH,),
    finds="Loader threads take the cores that the launching thread needs.",
    statement="""\
The same ops of a launching thread take `CONTENTION_FACTOR` times as long while `CONTENTION_THREADS` or more loader
threads work as they do by themselves, each at least `CONTENTION_OPS` times in the used steps. The cost is what they
take longer, but no more than the device waits for launches. Without that contrast inside the profile nothing is said;
with it, it is a guess still: a profile shows neither cores nor the scheduler.""",
    shared_limits=("CONTENTION_FACTOR", "CONTENTION_THREADS", "CONTENTION_OPS"),
    needs="Ops of the launching thread; loader threads in its process.",
    cure="A step in which these ops take what they take by themselves.",
    example="Sixteen loader threads on a machine of eight cores.",
    makes_late="host",
    tried_for=("PyTorch", "TensorFlow"),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device that waits for launches."""
    seen = facts.contention
    if seen is None:
        return []
    findings = []
    for account in facts.working:
        cost = min(facts.per_step(seen.lost_ns), booked(facts, account, Category.LAUNCH, Category.PYTHON))
        if not cost:
            continue
        findings.append(
            Finding(
                rule=RULE.id,
                device=account.rows.device,
                title="Loader threads take cores from the launching thread",
                why=(
                    f"Beside {seen.threads} loader threads `{seen.name}` takes {format_ns(seen.slow_ns)} on the "
                    f"launching thread, by itself {format_ns(seen.usual_ns)}; in all its ops lose "
                    f"{format_ns(facts.per_step(seen.lost_ns))} per step. That they compete for cores (or for "
                    "Python's lock) is inferred from this contrast."
                ),
                fix=paragraphs(remedy(CORES, facts.workload)),
                basis="heuristic",
                confidence="low",
                cost_ns_per_step=cost,
                saving_ns_per_step=cost,
                change=Change(host=dict(seen.lost)),
                where=tuple(dict.fromkeys(w for s in seen.slices[:SHOWN] if (w := facts.locator.where(s)))),
                evidence=slices_as_evidence(facts, list(seen.slices[:SHOWN]), device=account.rows.device),
            )
        )
    return findings
