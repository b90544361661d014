from __future__ import annotations

from stepscope.analysis.accounting import Account
from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.host_callbacks import JAXS_OWN, HostCallback, host_callbacks
from stepscope.analysis.where import Where
from stepscope.diagnosis.evidence import SHOWN, slices_as_evidence
from stepscope.diagnosis.finding import Finding, paragraphs
from stepscope.diagnosis.remedies import CALLED_FOR_VALUES, CALLED_TO_TELL, remedy
from stepscope.diagnosis.rule import Rule
from stepscope.units import format_mean, format_ns, format_share
from stepscope.whatif.changes import without_callbacks

RULE = Rule(
    id="host_callback",
    scope="device",
    pages=("ops",),
    tells=(Category.PYTHON,),
    finds="The device waits for Python functions that its compiled program calls.",
    statement="""\
The accounting books idle time of the used steps to `python` while the device is in an op of its program that calls
Python on the host, or the thread that runs the program is: JAX's `pure_callback`, `io_callback`, `debug.print` and
`debug.callback`, told by the target of the custom call, the op's name or JAX's own wrapper around the function. The
functions are named where Python was recorded, else the lines of the program that call them.""",
    needs="The device's ops with their targets (XLA).",
    cure="A program that does not wait for the function.",
    example="`jax.debug.print` inside a function that `jax.jit` compiled.",
    host_bound=True,
)

_TELLS = ("debug_print", "debug_callback")


def find(facts: Facts) -> list[Finding]:
    """One finding per device."""
    return [finding for account in facts.working if (finding := _finding(facts, account)) is not None]


def _finding(facts: Facts, account: Account) -> Finding | None:
    called = host_callbacks(facts.trace, facts.host, account, facts.used_rows(account))
    cost = facts.per_step(sum(each.ns for each in called))
    if not cost:
        return None
    share = format_share(cost * len(facts.used) / facts.used_ns)
    told = "; ".join(_told(facts, each) for each in called[:SHOWN])
    known = any(each.functions for each in called) or all(each.op in JAXS_OWN for each in called)
    unknown = "" if known else " Which functions these are was not recorded."
    telling = [each for each in called if each.op in _TELLS]
    fixes = [CALLED_FOR_VALUES] * (len(telling) < len(called)) + [CALLED_TO_TELL] * bool(telling)
    return Finding(
        rule=RULE.id,
        device=account.rows.device,
        title="The device waits for Python functions that its program calls",
        why=f"For {format_ns(cost)} per step ({share}) the compiled program waits for Python: {told}.{unknown}",
        fix=paragraphs("\n".join(remedy(texts, facts.workload) for texts in fixes)),
        cost_ns_per_step=cost,
        saving_ns_per_step=cost,
        change=without_callbacks(facts, account.rows.device),
        where=_places(facts, called),
        evidence=slices_as_evidence(
            facts, [slice for each in called for slice in each.slices[:SHOWN].tolist()], device=account.rows.device
        ),
    )


def _told(facts: Facts, called: HostCallback) -> str:
    often = format_mean(called.slices.size / len(facts.used))
    named = ", ".join(f"`{where.function}`" for where in called.functions[:2])
    time = format_ns(facts.per_step(called.ns))
    calls = f"{often} {'call' if often == '1' else 'calls'} per step"
    return f"`{called.op}` {time} ({calls}{f', of {named}' if named else ''})"


def _places(facts: Facts, called: tuple[HostCallback, ...]) -> tuple[Where, ...]:
    """The functions, and the lines of the program that call them."""
    functions = [where for each in called for where in each.functions]
    lines = [facts.locator.where(int(each.slices[0])) for each in called]
    return tuple(dict.fromkeys(where for where in (*functions, *lines) if where))[:SHOWN]
