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
from stepscope.diagnosis.host_work import Cause, cause_findings
from stepscope.diagnosis.remedies import INFEED, TRANSFERS

_HOST = {Category.TRANSFER: Cause("Sending data holds up the device", "the host sends it data", TRANSFERS)}
_DEVICE = {Category.INFEED: Cause("Infeed data come late", "its next batch is fed in", INFEED)}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and cause."""
    # What the device itself waits for is no time of a host thread that a replay could leave out.
    fed = (replace(found, change=None) for found in cause_findings(facts, "transfer_bound", _DEVICE))
    return [*cause_findings(facts, "transfer_bound", _HOST), *fed]
