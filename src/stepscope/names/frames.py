"""Names of Python frames as profiles write them: ``path/file.py(12): function``."""

from __future__ import annotations

import posixpath

from stepscope.regex import regex

_FRAME = regex(r"^(?P<file>.+?)\((?P<line>\d{1,18})\): (?P<function>.+)$")
_C_CODE = regex(r"<built-in function (\w+)>|<unknown> (\w+)")
"""Functions of C code, and methods, as the tracer of TSL names them."""
_HANDS_ON = regex(r"(?:^|[/\\\\])torch[/\\\\](?:_tensor|functional|nn[/\\\\]functional)\.py\(\d+\): ")
_PROFILER = regex(r"(?:^|/)torch/(?:autograd/profiler(?:_util)?|profiler/profiler)\.py\(\d+\): ")


def frame_parts(name: str) -> tuple[str, int, str] | None:
    """File, line and function; None for built-ins and modules."""
    match = _FRAME.match(name)
    return (_plain(match["file"]), int(match["line"]), match["function"]) if match else None


def _plain(path: str) -> str:
    """A path without steps back: of ``run/../train.py``, as a script in another folder is started, ``train.py``."""
    plain = posixpath.normpath(path) if "/../" in path else path
    return path if plain.startswith("..") else plain


def names_function(name: str, path: str, function: str) -> bool:
    """Whether a frame's name is that of a function of a file; profiles shorten paths at their beginning."""
    parts = frame_parts(name)
    if parts is None or parts[2] != function:
        return False
    file, whole = parts[0].replace("\\", "/"), _plain(path.replace("\\", "/"))
    return whole == file or whole.endswith(f"/{file}")


def called_name(name: str) -> str:
    """What code calls the function by that a frame names: ``asarray`` of ``<built-in function asarray>``; empty where
    nothing tells."""
    parts = frame_parts(name)
    if parts:
        return parts[2]
    match = _C_CODE.fullmatch(name)
    return match[1] or match[2] if match else ""


def hands_on(frame: str) -> bool:
    """Whether a function does for its caller what a tensor or op does: C code, ``torch/_tensor.py(9): __format__``."""
    return frame.startswith("<built-in") or _HANDS_ON.search(frame) is not None


def of_the_profiler(name: str) -> bool:
    """Whether a frame is of PyTorch's profiler itself."""
    return _PROFILER.search(name) is not None
