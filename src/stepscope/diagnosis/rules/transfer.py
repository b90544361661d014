"""transfer_bound: the device waits while the host sends it data (XLA).

Statement: the accounting books idle time to ``transfer``: the thread that starts the next program was moving arrays to
the device (``device_put``, sharding arguments, ``TransferToDevice``); or to ``infeed``: the device says that it waits
for infeed data, or the host was feeding it.
"""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import host_finding, host_work, in_words
from stepscope.diagnosis.remedies import INFEED, TRANSFERS, remedy

_TITLES = {
    Category.TRANSFER: "Sending data holds up the device",
    Category.INFEED: "Infeed data come late",
}
_CAUSES = {
    Category.TRANSFER: ("the host sends it data", TRANSFERS),
    Category.INFEED: ("its next batch is fed in", INFEED),
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and cause."""
    found = []
    for account in facts.working:
        for cause, (doing, remedies) in _CAUSES.items():
            work = host_work(facts, account, cause)
            if work is not None:
                made = host_finding(
                    facts,
                    {cause: work},
                    rule="transfer_bound",
                    title=f"{_TITLES[cause]}",
                    why=in_words(facts, work, doing),
                    fix=remedy(remedies, facts.trace.info.framework),
                )
                # What the device itself waits for is no time of a host thread that a replay could leave out.
                found.append(replace(made, change=None) if cause is Category.INFEED else made)
    return found
