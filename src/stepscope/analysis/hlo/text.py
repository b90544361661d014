"""One instruction as HLO text, and the instructions around it."""

from __future__ import annotations

from stepscope.hlo.program import Instruction, Program
from stepscope.record import record

LONGEST = 2_000
"""Characters of an instruction's text that are kept."""
EDGES = 2
"""Steps from an instruction that its neighbourhood reaches, along operands one way and users the other."""
MOST = 24
"""Instructions of a neighbourhood: more cannot be told apart in a small drawing."""


@record
class Neighbourhood:
    """Instructions around one, nearest first, by how far before (negative) or behind it they stand."""

    rows: tuple[int, ...]
    distance: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]
    """Places in ``rows``: whose value is taken, and by whom."""
    cut: bool
    """Whether there are more than are listed."""


def text_of(program: Program, one: Instruction) -> str:
    """``%add.1 = f32[8] add(f32[8] %x, f32[8] %y)``, with what it calls and the library's function."""
    taken = ", ".join(f"{other.shape} %{other.name}" for other in program.taken(one))
    calls = ", ".join(f"%{program.computations[row].name}" for row in one.called)
    more = [f"calls={calls}"] if calls else []
    more += [f'custom_call_target="{one.target}"'] if one.target else []
    more += [f"backend_config={one.config}"] if one.config else []
    text = ", ".join((f"%{one.name} = {one.shape} {one.opcode}({taken})", *more))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def neighbourhood(program: Program, row: int) -> Neighbourhood:
    """What an instruction's operands come from and where its value goes, within a few edges."""
    distances = {row: 0}
    cut = False
    for sign in (-1, 1):
        reached = [row]
        for distance in range(1, EDGES + 1):
            near = [other for one in reached for other in _next(program, one, sign)]
            reached = [other for other in dict.fromkeys(near) if other not in distances]
            cut |= len(distances) + len(reached) > MOST
            reached = reached[: MOST - len(distances)]
            distances |= dict.fromkeys(reached, sign * distance)
    rows = tuple(sorted(distances, key=lambda one: (abs(distances[one]), one)))
    place = {one: at for at, one in enumerate(rows)}
    edges = tuple(
        (place[operand], place[one])
        for one in rows
        for operand in dict.fromkeys(program.instructions[one].operands)
        if operand in place
    )
    return Neighbourhood(rows, tuple(distances[one] for one in rows), edges, cut)


def _next(program: Program, row: int, sign: int) -> tuple[int, ...]:
    return program.instructions[row].operands if sign < 0 else program.users.get(row, ())
