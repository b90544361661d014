"""What other tools' figures would make one believe of this profile, where that is wrong. Notices, never findings."""

from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import shares, total_parts
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import METER_APART, METER_BUSY
from stepscope.diagnosis.remedies import AMD, INTEL, NVIDIA, Remedies, RemedyPart, sentence
from stepscope.units import format_share

_KERNELS = (Category.COMPUTE, Category.COLLECTIVE)


_METER: Remedies = {
    None: (
        RemedyPart("A meter such as nvidia-smi", vendors=NVIDIA),
        RemedyPart("A meter such as amd-smi", vendors=AMD, certain=True),
        RemedyPart("A coarse meter", vendors=(*INTEL, "Google", "AWS", "Huawei"), certain=True),
    )
}


def meter(facts: Facts) -> Notice | None:
    """A coarse meter counts the time in which any kernel runs, and kernels that wait for other ranks are kernels."""
    if not any(device.kind == "gpu" for device in facts.trace.info.devices):
        return None
    of = shares(total_parts(facts))
    shown, computing = sum(of.get(category, 0.0) for category in _KERNELS), of.get(Category.COMPUTE, 0.0)
    if shown < METER_BUSY or shown - computing < METER_APART:
        return None
    return Notice(
        "meter_misleads",
        f"{sentence(_METER, facts.workload)} calls this GPU {format_share(shown)} utilised: it counts the time in "
        f"which any kernel runs. It computes {format_share(computing)}; the rest of that are collectives with nothing "
        "beside them, which also spin while they wait for other ranks.",
    )
