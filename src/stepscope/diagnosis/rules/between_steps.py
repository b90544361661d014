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
from stepscope.diagnosis.host_work import HostWork, host_finding, host_work, in_words
from stepscope.diagnosis.remedies import CHECKPOINTS, GARBAGE, HOST_WORK, remedy
from stepscope.limits import TOLD_SHARE

_NAMES = {
    Category.PYTHON: "Python code that launches nothing",
    Category.GC: "Python's garbage collector",
    Category.CHECKPOINT_IO: "checkpoints",
}
_CAUSES = {
    Category.PYTHON: ("Python code runs that launches nothing", HOST_WORK),
    Category.GC: ("Python collects garbage", GARBAGE),
    Category.CHECKPOINT_IO: ("a checkpoint is read or written", CHECKPOINTS),
}


def find(facts: Facts) -> list[Finding]:
    """One finding per device and cause."""
    found = []
    for account in facts.working:
        for cause, (doing, remedies) in _CAUSES.items():
            work = host_work(facts, account, cause)
            if work is not None and (cause is not Category.PYTHON or _is_told(work)):
                found.append(
                    host_finding(
                        facts,
                        {cause: work},
                        rule="between_steps",
                        title=f"Steps wait for {_NAMES[cause]}",
                        why=in_words(facts, work, doing),
                        fix=remedy(remedies, facts.trace.info.framework),
                    )
                )
    return found


def _is_told(work: HostWork) -> bool:
    """Whether the profile shows that it was Python code, and that it comes back."""
    return work.told_share >= TOLD_SHARE and work.steps > 1
