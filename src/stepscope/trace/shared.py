"""What many ask for and one answer serves: a function of one object is worked out once for it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Of = TypeVar("Of")
Others = ParamSpec("Others")
Found = TypeVar("Found")


def shared(function: Callable[Concatenate[Of, Others], Found]) -> Callable[Concatenate[Of, Others], Found]:
    """Keep what a function finds of an object beside it, as long as that lives.

    For what rules ask of the facts for each device: profiles have thousands of devices, streams and threads. Other
    things that it is asked with are told apart by which objects they are, and kept with the answer: none of them may
    hold the object itself, which nothing but the collector of garbage would then free.
    """
    name = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def keeping(of: Of, /, *others: Others.args, **named: Others.kwargs) -> Found:
        assert not named  # They would have to tell answers apart, too.
        kept: dict[Any, Any] = vars(of)
        asked = (name, *map(id, others)) if others else name
        if asked not in kept:
            kept[asked] = function(of, *others, **named), others
        answer: Found = kept[asked][0]
        return answer

    return keeping
