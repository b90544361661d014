"""Which remedy fits a program: a text per framework, in parts that hold under conditions."""

from __future__ import annotations

from collections.abc import Mapping

from stepscope.analysis.workload import Feature, Purpose, Version, Workload
from stepscope.record import record

PYTORCH, JAX, TENSORFLOW, TORCH_XLA = "PyTorch", "JAX", "TensorFlow", "PyTorch/XLA"
TRAINS = (Purpose.TRAINING,)
SERVES = (Purpose.SERVING,)
INFERS = (Purpose.INFERENCE, Purpose.SERVING, Purpose.CAPTURE)
"""All that trains nothing; graphs are captured by engines before they serve."""
RUNS = (Purpose.TRAINING, Purpose.INFERENCE, Purpose.SERVING)
"""All in which launched work runs at once."""
NVIDIA, AMD, INTEL = ("NVIDIA",), ("AMD",), ("Intel",)


@record
class RemedyPart:
    """Lines of a remedy that do not hold everywhere; an empty condition always holds."""

    text: str
    purposes: tuple[Purpose, ...] = ()
    """What the program is for."""
    since: Version | None = None
    """The first version of the framework that has it."""
    vendors: tuple[str, ...] = ()
    """Who made the device."""
    before: Version | None = None
    """The framework is known to be older: the equivalent of something that came with this version."""
    given: tuple[Feature, ...] = ()
    """What the profile shows in use, all of it."""
    unless: tuple[Feature, ...] = ()
    """What the profile does not show in use: it is what the text suggests."""
    certain: bool = False
    """Purpose and make must be known to be these: for what another part says of all others."""

    def fits(self, workload: Workload) -> bool:
        """Whether nothing that is known of a program speaks against it."""
        if self.certain and self.purposes and workload.purpose not in self.purposes:
            return False
        if self.certain and self.vendors and not workload.vendors:
            return False
        return (
            workload.uses.issuperset(self.given)
            and workload.uses.isdisjoint(self.unless)
            and (not self.purposes or workload.is_for(self.purposes))
            and (self.since is None or workload.may_be_since(self.since))
            and (self.before is None or workload.is_before(self.before))
            and (not self.vendors or workload.may_run_on(self.vendors))
        )


Text = str | tuple[str | RemedyPart, ...]
Remedies = Mapping[str | None, Text]
"""Text per ``Info.framework``, whole or in parts that apply under conditions; that of None for all others."""


def remedy(texts: Remedies, workload: Workload) -> str:
    """The text for a program's framework, less the parts that do not fit it; the neutral one where nothing is left."""
    return _fitting(texts.get(workload.framework, ()), workload) or _fitting(texts[None], workload)


def sentence(texts: Remedies, workload: Workload) -> str:
    """The same on one line."""
    return " ".join(remedy(texts, workload).split("\n"))


def _fitting(text: Text, workload: Workload) -> str:
    if isinstance(text, str):
        return text
    given = [part if isinstance(part, RemedyPart) else RemedyPart(part) for part in text]
    return "\n".join(part.text.strip("\n") for part in given if part.fits(workload))
