"""What many ask for and one answer serves: a function of one object is worked out once for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Of = TypeVar("Of")
Found = TypeVar("Found")


def shared(function: Callable[[Of], Found]) -> Callable[[Of], Found]:
    """Keep what a function finds of an object beside it, as long as that lives.

    For what rules ask of the facts for each device: profiles have thousands of devices, streams and threads.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def found(of: Of) -> Found:
        kept = vars(of)
        if name not in kept:
            kept[name] = function(of)
        answer: Found = kept[name]
        return answer

    return found
