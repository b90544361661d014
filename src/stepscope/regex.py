"""Regular expressions, each compiled when it is first asked for.

stepscope declares some 700 of them, of which a run asks less than half: compiled as their modules are imported, all of
them take a fifth of the time until a small profile is diagnosed.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer", "groupindex")


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As ``re.compile``, for a constant: what is no regular expression is told by its first use."""
    return cast("re.Pattern[AnyStr]", _Uncompiled(pattern, flags))


class _Uncompiled:
    """Stands for a compiled expression: once one of its methods was asked for, it has all of them."""

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        for each in _METHODS:
            setattr(self, each, getattr(compiled, each))
        return self.__dict__[name]
