"""The command of a job, as ``stepscope run`` and ``stepscope try`` take it."""

from __future__ import annotations

import shlex

from stepscope.errors import UsageError

_OF_PYTHON = ("-", "-c")
"""What Python takes in place of a script; ``-m`` is understood without it."""
_TIMES = "a number of steps is recorded, --active 20, for --max-seconds 60 at most; "


def check_command(command: tuple[str, ...], name: str) -> None:
    """Raise UsageError where a command begins with an option that ``stepscope <name>`` does not have."""
    first = command[0]
    if first in _OF_PYTHON:
        right = shlex.join(("stepscope", name, "python", *command))
        raise UsageError(f"{first} is Python's: write {right}")
    if first.startswith("-") and first != "-m":
        see = _TIMES if first.partition("=")[0] in ("--duration", "--seconds", "--steps") and name == "run" else ""
        raise UsageError(f"there is no option {first}; {see}see stepscope {name} --help")
