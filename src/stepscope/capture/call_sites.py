"""At which line a function calls what, as its bytecode tells: profilers of JAX and PyTorch/XLA record which functions
were called and not where, and looks seldom meet C code that keeps the interpreter."""

from __future__ import annotations

import dis
import sys
from types import CodeType

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
"""They run where they are made (as functions, before Python 3.12)."""
_NULL_BEHIND = sys.version_info >= (3, 13)
"""What marks a name as something to be called stands behind it, before that in front of what it is an attribute of."""


def called_at(code: CodeType) -> dict[str, int]:
    """The names that a function calls, each with its line; none that it mentions in another line too, as nothing would
    tell which of them it was."""
    lines: dict[str, set[int]] = {}
    called: set[str] = set()
    line, known = 0, list(dis.get_instructions(code))
    for at, step in enumerate(known):
        line = (step.positions and step.positions.lineno) or line
        name = getattr(step.argval, "co_name", None) if step.opname == "LOAD_CONST" else step.argval
        if not step.opname.startswith("LOAD_") or not isinstance(name, str):
            continue
        if step.opname == "LOAD_CONST" and name not in _COMPREHENSIONS:
            continue
        lines.setdefault(name, set()).add(line)
        beside = at + 1 if _NULL_BEHIND else at - 1
        marked = 0 <= beside < len(known) and known[beside].opname == "PUSH_NULL"
        if step.opname in ("LOAD_CONST", "LOAD_METHOD"):
            called.add(name)
        elif marked or "NULL" in (step.argrepr or ""):
            called.add(_last_attribute(known, at))
    return {name: min(where) for name, where in lines.items() if name in called and len(where) == 1}


def _last_attribute(steps: list[dis.Instruction], at: int) -> str:
    """``sleep`` of ``time.sleep``, from where ``time`` is loaded on."""
    while at + 1 < len(steps) and steps[at + 1].opname == "LOAD_ATTR":
        at += 1
    return str(steps[at].argval)
