"""How another interpreter of this one's kind is started."""

from __future__ import annotations

import os
import sys


def own_environment() -> dict[str, str]:
    """The environment of an interpreter that finds what this one does.

    Neither it nor those that it starts find modules in the folder they are started in: whoever reads a folder of
    profiles stands in it, and what lies there is not to be run.
    """
    path = os.pathsep.join(filter(os.path.isabs, sys.path))
    return os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
