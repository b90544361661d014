"""Which code is the user's: no package's, not Python's, not ours."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import lru_cache

MOST_FILES = 5_000
"""Names of files that are kept."""
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = tuple({os.path.join(path, "") for path in (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"),
                                                        sysconfig.get_path("platlib")) if path})  # fmt: skip
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


@lru_cache(MOST_FILES)
def is_own(filename: str) -> bool:
    """Whether a file is the user's: no library's, not Python's, not ours."""
    if filename.startswith(("<", OURS, *_LIBRARIES)):
        return False
    return not any(part in filename for part in _INSTALLED)


def own_files() -> set[str]:
    """The names of the user's files that this process has loaded as modules, without their folders."""
    return {os.path.basename(path) for path in _paths() if is_own(path)}


def package_files(own: set[str]) -> str:
    """The names of the other modules' files, but for those that are a user's, too: one text, with slashes between."""
    others = {os.path.basename(path) for path in _paths() if not is_own(path)}
    return "/".join(sorted(others - own)[:MOST_FILES])


def _paths() -> list[str]:
    paths = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    return [path for path in paths if isinstance(path, str)]
