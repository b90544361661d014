"""Why capturing or reading a profile would fail here, and the cure: ``stepscope doctor``.

A check (``checks.CHECKS``) is a function of what is asked of the machine (``host.Host``), so that each is tested on
machines that are made up. Nothing here needs more than the standard library until a profile is read.
"""

from __future__ import annotations

from stepscope.doctor import profiles
from stepscope.doctor.case import Case
from stepscope.doctor.checks import CHECKS, examine
from stepscope.doctor.host import Host, ProgramEnd
from stepscope.doctor.outcome import CheckOutcome, State

__all__ = ["CHECKS", "Case", "CheckOutcome", "Host", "ProgramEnd", "State", "examine", "profiles"]
