"""What records in this process, shared by every copy of this package in it.

Under ``stepscope run`` the package is loaded under another name, and the job may import stepscope besides: both look
here. The place is a module of its own in ``sys.modules``, since neither copy may import the other.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

_NAME = "_stepscope_state"
_SLOTS = ("recorder", "session", "on_demand", "sessions", "forks_end")


def _shared() -> Any:
    module = sys.modules.get(_NAME)
    if module is None:
        module = sys.modules[_NAME] = ModuleType(_NAME)
    for slot in _SLOTS:
        if not hasattr(module, slot):
            setattr(module, slot, None)
    return module


shared = _shared()
"""``recorder``: of ``stepscope run``; ``session``: of ``stepscope.profile``; ``on_demand``: of
``stepscope.start_server``; ``sessions``: of PyTorch's profiler, whoever's; ``forks_end``: whether
``forks.end_well`` was called. None where there is none."""
