"""between_steps: in every step the device waits for host work that is no part of it.

Statement: the accounting books idle time of the usual steps to ``python`` (callbacks, metrics, logging: a millisecond
or more of Python that launches nothing), ``gc`` or ``checkpoint_io``. One finding per cause, with the functions or
annotations in which the time passes, and whether it passes before a step's first launch or between its launches. Of
Python at least ``TOLD_SHARE`` must lie in recorded frames, or in annotations around nothing else, and in more than one
step; time in which the host shows nothing is no finding. Without a device it is the main thread's own time.
"""

from __future__ import annotations

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.host_work import Cause, HostWork, cause_findings
from stepscope.diagnosis.remedies import CHECKPOINTS, GARBAGE, HOST_WORK
from stepscope.limits import TOLD_SHARE


def _is_told(facts: Facts, work: HostWork) -> bool:
    """Whether the profile shows that it was Python code, and that it comes back."""
    return work.told_share >= TOLD_SHARE and work.steps > 1


_CAUSES = {
    Category.PYTHON: Cause(
        title="Steps wait for Python code that launches nothing",
        doing="Python code runs that launches nothing",
        fix=HOST_WORK,
        holds=_is_told,
    ),
    Category.GC: Cause(
        title="Steps wait for Python's garbage collector", doing="Python collects garbage", fix=GARBAGE
    ),
    Category.CHECKPOINT_IO: Cause(
        title="Steps wait for checkpoints", doing="a checkpoint is read or written", fix=CHECKPOINTS
    ),
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and cause."""
    return cause_findings(facts, _CAUSES, rule="between_steps")
