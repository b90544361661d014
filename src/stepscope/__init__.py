"""stepscope: why each training or inference step takes as long as it does.

``open(path)`` reads any profile into a ``Profile``, ``open_all(path)`` all that a folder holds. Names load on first
use, so that a training job which only annotates its steps never imports what reading profiles needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepscope._version import __version__

if TYPE_CHECKING:
    from stepscope.capture import annotate, profile, schedule, step
    from stepscope.pipeline import Profile, open, open_all
    from stepscope.remote.collect import capture_from
    from stepscope.remote.server import start_server
    from stepscope.report.frames import in_ms

__all__ = [
    "Profile", "__version__", "annotate", "capture_from", "in_ms", "open", "open_all", "profile", "schedule",
    "start_server", "step",
]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("Profile", "open", "open_all"), "stepscope.pipeline"),
    **dict.fromkeys(("annotate", "profile", "schedule", "step"), "stepscope.capture"),
    "capture_from": "stepscope.remote.collect",
    "in_ms": "stepscope.report.frames",
    "start_server": "stepscope.remote.server",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)  # Asked for once: annotations are to cost nothing.
    return value


def __dir__() -> list[str]:
    return __all__
