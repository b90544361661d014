from __future__ import annotations

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.evidence import SHOWN
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.lazy_counts import per_step, read_back, recurs
from stepscope.diagnosis.remedies import FALLS_BACK, remedy
from stepscope.diagnosis.rule import Rule

RULE = Rule(
    id="ops_fall_back",
    scope="host",
    pages=("ops",),
    finds="Ops that PyTorch/XLA cannot compile run on the CPU, in step after step.",
    statement="""\
The metrics report that was kept with the profile counts ops under the dispatcher's names (`aten::nonzero`) between the
beginning and the end of the recorded window, which the fall-back to the CPU alone does: one of them at least in
`RECURS_SHARE` of the steps, and more than once. Values that are read (`aten::_local_scalar_dense`) are not meant. How
long they take is not counted.""",
    shared_limits=("RECURS_SHARE",),
    needs="The metrics report of PyTorch/XLA beside the profile.",
    cure="None: how long they take is not counted.",
    example="`torch.nonzero` on a device of PyTorch/XLA.",
)


def find(facts: Facts) -> list[Finding]:
    """One finding for all devices: the counters are those of the process."""
    counted = facts.lazy_metrics
    ops = [one for one in counted.fallbacks if recurs(counted, one)] if counted else []
    if not counted or not ops:
        return []
    others = f" and {len(ops) - 1} more" if len(ops) > 1 else ""
    listed = ", ".join(f"`{one.name}` {per_step(counted, one)}" for one in ops[:SHOWN])
    return [
        Finding(
            rule=RULE.id,
            title=f"Ops run on the CPU because PyTorch/XLA cannot compile them: `{ops[0].name}`{others}",
            why=(
                f"PyTorch/XLA counted in the {counted.steps} recorded steps: {listed}. For each of them what was built "
                "so far is run, its inputs are read back, the CPU computes, and the result is sent to the device."
                + read_back(facts)
            ),
            fix=paragraphs(remedy(FALLS_BACK, facts.workload)),
            cost_ns_per_step=None,
            saving_ns_per_step=None,
            not_determined=(
                "What they cost: they are counted, not timed. Compare step times with and without them; -v says how "
                "often they run and what to write instead."
            ),
        )
    ]
