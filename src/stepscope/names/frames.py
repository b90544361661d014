"""Names of Python frames as profiles write them: ``path/file.py(12): function``."""

from __future__ import annotations

import re

_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d{1,18})\): (?P<function>.+)$")
_PROFILER = re.compile(r"(?:^|/)torch/(?:autograd/profiler(?:_util)?|profiler/profiler)\.py\(\d+\): ")


def frame_parts(name: str) -> tuple[str, int, str] | None:
    """File, line and function; None for built-ins and modules."""
    found = _FRAME.match(name)
    return (found["file"], int(found["line"]), found["function"]) if found else None


def names_function(name: str, path: str, function: str) -> bool:
    """Whether a frame's name is that of a function of a file; profiles shorten paths at their beginning."""
    parts = frame_parts(name)
    if parts is None or parts[2] != function:
        return False
    file, whole = parts[0].replace("\\", "/"), path.replace("\\", "/")
    return whole == file or whole.endswith(f"/{file}")


def of_the_profiler(name: str) -> bool:
    """Whether a frame is of PyTorch's profiler itself."""
    return _PROFILER.search(name) is not None
