"""What a row of ``docs/formats.md`` says of an input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """An input, what becomes of it, and where it was met.

    ``notices`` are the codes beyond those of the undamaged file; ``lost`` counts events that became no row.
    """

    what: str
    data: bytes
    outcome: str
    notices: tuple[str, ...] = ()
    lost: int = 0
    status: int = 3
    met: str = ""


@dataclass(frozen=True)
class Folder:
    """A folder, which files of it are read, and words of what is said of the others."""

    what: str
    files: Mapping[str, bytes]
    outcome: str
    read: tuple[str, ...]
    says: str = ""
    met: str = ""
    together: bool = False
    """They are one report."""
    status: int = 0


@dataclass(frozen=True)
class Refusal:
    """A file (or a folder of files) that is no profile, and words of the sentence that says so."""

    what: str
    data: bytes | Mapping[str, bytes]
    words: str
    met: str = ""


def odd(*args: Any, **more: Any) -> Case:
    """A file that is unusual and read whole."""
    return Case(*args, **{"status": 0, **more})
