from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.eager import eager_host
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import Cause, cause_findings
from stepscope.diagnosis.lazy_counts import sent
from stepscope.diagnosis.limits import LAUNCH_SHARE
from stepscope.diagnosis.remedies import INFEED, TRANSFERS
from stepscope.diagnosis.rule import Rule

RULE = Rule(
    id="transfer_bound",
    scope="device",
    pages=("input",),
    tells=(Category.INPUT, Category.TRANSFER),
    finds="The device waits while the host sends it data (XLA).",
    statement="""\
The accounting books idle time to `transfer`: the thread that starts the next program was moving arrays to the device
(`device_put`, sharding arguments, `TransferToDevice`); or to `infeed`: the device says that it waits for infeed data,
or the host was feeding it. Where `running_eagerly` tells of a host without a device it must take `LAUNCH_SHARE` of the
steps: each op that runs by itself looks whether its inputs are where it runs.""",
    shared_limits=("LAUNCH_SHARE",),
    needs="The host's ranges of XLA.",
    cure="A step without sending by the thread that starts programs; of infeed none can be replayed.",
    example="`jax.device_put(batch)` right before the step that takes it.",
    makes_late="input",
)

_SENDING = {
    Category.TRANSFER: Cause(
        title="Sending data holds up the device", doing="the host sends it data", fix=TRANSFERS, share=None
    )
}
_FEEDING = {
    Category.INFEED: Cause(title="Infeed data come late", doing="its next batch is fed in", fix=INFEED, share=None)
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and cause."""
    sending, feeding = (cause_findings(facts, causes, rule=RULE.id) for causes in (_SENDING, _FEEDING))
    if eager_host(facts) is not None:
        sending = [one for one in sending if _takes_much(facts, one)]
    # What the device itself waits for is no time of a host thread that a replay could leave out.
    return [one.saying(sent(facts)) for one in sending] + [replace(one, change=None) for one in feeding]


def _takes_much(facts: Facts, sending: Finding) -> bool:
    return (sending.cost_ns_per_step or 0) * len(facts.used) >= LAUNCH_SHARE * facts.used_ns
