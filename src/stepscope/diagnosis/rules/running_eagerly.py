from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.places import find_places
from stepscope.diagnosis.eager import EagerHost, eager_device, eager_host
from stepscope.diagnosis.evidence import placed, shares
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.left_on_host import at_best
from stepscope.diagnosis.remedies import COMPILE_ALL, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.trace import intervals as iv
from stepscope.units import format_mean, format_ns, format_share
from stepscope.whatif.change import Change

RULE = Rule(
    id="running_eagerly",
    scope="device",
    pages=("ops",),
    tells=(Category.LAUNCH,),
    tells_beside=True,
    finds="Ops are dispatched one by one although the program has compiled parts, or its framework compiles.",
    statement="""\
What the device waits for ops that are launched outside compiled code, in at least `LAUNCH_SHARE` of the step. Such
ops are: with PyTorch those outside every region of `torch.compile`, where the profile has one; with TensorFlow those
of eager ops; with JAX programs of one or two ops, of which a step starts `EAGER_PROGRAMS` or more. Functions among
the launches that launch nothing (`hot_python`) and ops that compute on the host are not part of it: compiled code
does not take them away. Of TensorFlow's host without a device it is what starts `EAGER_PROGRAMS` ops or more per step
in eager code: at least that goes, at most what they compute and all that passes between them unrecorded, too. Of JAX
programs the waiting goes at least; at most what they compute and all that passes between them, and for that it is
told, too. Products and the like stay, on a host half as long at best. Where `graph_breaks` or `launch_bound` speak
too, they speak of some of the same time.""",
    shared_limits=("LAUNCH_SHARE", "EAGER_PROGRAMS"),
    needs="Launches, and marks of compiled code.",
    cure="A step without dispatching these ops; of a host alone to first order.",
    example="`jax.numpy` ops outside of `jax.jit`.",
    comes_before=("launch_bound",),
    makes_late="host",
    tried_for=("PyTorch", "JAX", "TensorFlow"),
)


def find(facts: Facts) -> list[Finding]:
    """One finding per device; where none was recorded, one of the host."""
    host = eager_host(facts)
    return [_on_the_host(facts, host)] if host else _on_devices(facts)


def _on_the_host(facts: Facts, host: EagerHost) -> Finding:
    """At least what starts the ops goes, at most what lies between them, too: that may be the program's own."""
    slices, mean = facts.trace.slices, facts.mean_step_ns
    parts = (host.around, host.between, host.computing)
    around, between, computing = (facts.per_step(iv.measure(spans)) for spans in parts)
    places = find_places(facts.locator, host.ops, slices.dur_ns[host.ops])
    return Finding(
        rule=RULE.id,
        title="Ops run one by one, outside of compiled code",
        why=(
            f"{format_mean(host.ops.size / len(facts.used))} ops per step are started one by one: that takes "
            f"{format_ns(around)}, and another {format_ns(between)} pass between them in what was not recorded, "
            f"much of it Python. They compute for {format_ns(computing)}: what small ones need goes at best, too."
        ),
        fix=paragraphs(remedy(COMPILE_ALL, facts.workload)),
        cost_ns_per_step=around + between,
        saving_ns_per_step=around,
        change=Change(host={facts.host.main: host.around}),
        best_step_ns=None if mean is None else at_best(max(mean - facts.per_step(host.most_ns), 0), mean),
        prediction_basis="first_order",
        confidence="medium",
        where=placed(facts, places),
        untried=True,
    )


def _on_devices(facts: Facts) -> list[Finding]:
    findings, mean = [], facts.mean_step_ns
    for activity, account in facts.devices:
        told = eager_device(facts, activity, account)
        if told is None:
            continue
        eager, waited, most = told.ops, told.waited, told.most_ns_per_step
        mine = facts.in_used_steps(account, activity.start)
        busy = activity.end - activity.start
        share = busy[mine & eager].sum() / max(int(busy[mine].sum()), 1)
        findings.append(
            Finding(
                rule=RULE.id,
                device=activity.device,
                title="Ops run one by one, outside of compiled code",
                why=(
                    f"{format_mean((mine & eager).sum() / len(facts.used))} of "
                    f"{format_mean(mine.sum() / len(facts.used))} device ops per step, {format_share(share)} of their "
                    "time, are launched outside of compiled code"
                    + (", and the device waits for those launches." if waited.cost_ns_per_step else ".")
                    + (" What small ones compute goes at best, too." if most is not None else "")
                    + shares(facts, waited.places, "The waiting")
                ),
                fix=paragraphs(remedy(COMPILE_ALL, facts.workload)),
                basis="modelled",
                confidence="medium",
                cost_ns_per_step=waited.cost_ns_per_step,
                saving_ns_per_step=waited.cost_ns_per_step,
                best_step_ns=None if most is None or mean is None else max(mean - most, 0),
                change=waited.change(facts),
                where=placed(facts, waited.places),
            )
        )
    return findings
