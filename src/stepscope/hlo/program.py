"""A compiled program as a graph: its computations, their instructions, and which values each takes.

``instructions`` tells what the ops of a profile are; this is what they compute and how they hang together. Field
numbers are those of xla/service/hlo.proto. Damaged bytes never raise: what stands before the damage
counts, and an operand that is not there is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from stepscope.hlo.shapes import UNKNOWN, Shape, read_shapes
from stepscope.protobuf.columns import Spans, children, decode, number_lists, numbers, texts
from stepscope.record import record
from stepscope.trace.tables import NULL, U8
from stepscope.wire import fields


@record
class Instruction:
    """One instruction. ``operands`` and ``called`` are rows of the program's instructions and computations."""

    row: int
    name: str
    opcode: str
    shape: Shape
    computation: int
    operands: tuple[int, ...]
    called: tuple[int, ...]
    scope: str | None
    message: bytes
    """Its own bytes: what only some formulas ask for is read from them."""

    def numbers(self, field: int) -> tuple[int, ...]:
        """A number field, repeated or not."""
        return tuple(_all_numbers(self.message, field))

    def number(self, field: int, otherwise: int = 0) -> int:
        """A number field; the last counts."""
        numbers = self.numbers(field)
        return numbers[-1] if numbers else otherwise

    def part(self, field: int) -> bytes:
        """A message or text field, empty where it has none."""
        return _last_bytes(self.message, field)

    @cached_property
    def target(self) -> str:
        """Which function of a library a custom call calls."""
        return self.part(28).decode("utf-8", "replace")

    @cached_property
    def config(self) -> str:
        """What the backend decided about it (JSON, or MLIR's attributes of calls to libraries of others)."""
        return self.part(43).decode("utf-8", "replace")


@record
class Computation:
    """One computation: its instructions are ``rows``, its result the one at ``root`` (-1 where not known)."""

    name: str
    rows: range
    root: int


@record
class Program:
    """A compiled program."""

    name: str
    entry: int
    """The computation it begins with, -1 where not known."""
    computations: tuple[Computation, ...]
    instructions: tuple[Instruction, ...]

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Rows of instructions by name."""
        return {one.name: one.row for one in self.instructions}

    @cached_property
    def users(self) -> dict[int, tuple[int, ...]]:
        """Per instruction, those that take its value."""
        users_of: dict[int, list[int]] = {}
        for one in self.instructions:
            for operand in dict.fromkeys(one.operands):
                users_of.setdefault(operand, []).append(one.row)
        return {row: tuple(users) for row, users in users_of.items()}

    def taken(self, one: Instruction) -> list[Instruction]:
        """The instructions whose values one takes."""
        return [self.instructions[row] for row in one.operands]

    def body(self, computation: int) -> tuple[Instruction, ...]:
        """The instructions of a computation."""
        rows = self.computations[computation].rows
        return self.instructions[rows.start : rows.stop]


def read_program(data: bytes) -> Program:
    """The program in a serialized ``xla.HloProto``; with no sense in it, one without instructions."""
    raw = np.frombuffer(data, np.uint8)
    module = children(raw, Spans.whole(raw), 1, cut=True).spans[:1]
    computations = children(raw, module, 3, cut=True).spans
    ids, roots = (column.tolist() for column in numbers(raw, computations, 5, 6))
    names = decode(raw, texts(raw, computations, 1))
    of_module = children(raw, computations, 2, cut=True)
    inside, own = of_module.parent.tolist(), numbers(raw, of_module.spans, 35)[0].tolist()
    place = {(computation, id): row for row, (computation, id) in enumerate(zip(inside, own, strict=True))}
    starts = np.searchsorted(of_module.parent, np.arange(len(computations) + 1)).tolist()
    entry = numbers(raw, module, 6)[0].tolist() or [NULL]
    of_id = {id: row for row, id in enumerate(ids)}
    name = decode(raw, texts(raw, module, 1))
    return Program(
        name=(name[0] if name else None) or "",
        entry=of_id.get(entry[0], -1),
        computations=tuple(
            Computation(names[row] or "", range(starts[row], starts[row + 1]), place.get((row, roots[row]), -1))
            for row in range(len(ids))
        ),
        instructions=tuple(_instructions(raw, of_module.spans, inside, place, of_id)),
    )


def _instructions(
    raw: U8, spans: Spans, inside: list[int], place: dict[tuple[int, int], int], of_id: dict[int, int]
) -> Iterator[Instruction]:
    names, opcodes = (decode(raw, texts(raw, spans, field)) for field in (1, 2))
    scopes = decode(raw, texts(raw, texts(raw, spans, 7), 2))
    where = texts(raw, spans, 3)
    shapes = read_shapes(raw, where)
    operands, called = (number_lists(raw, spans, field) for field in (36, 38))
    bounds = zip(spans.start.tolist(), spans.end.tolist(), strict=True)
    for row, (start, end) in enumerate(bounds):
        of = inside[row]
        yield Instruction(
            row=row,
            name=names[row] or "",
            opcode=opcodes[row] or "",
            shape=shapes[row] if where.start[row] >= 0 else UNKNOWN,
            computation=of,
            operands=tuple(place[of, id] for id in operands.get(row, ()) if (of, id) in place),
            called=tuple(of_id[id] for id in called.get(row, ()) if id in of_id),
            scope=scopes[row] or None,
            message=raw[start:end].tobytes(),
        )


def _all_numbers(message: bytes, field: int) -> Iterator[int]:
    for number, value in fields(message):
        if number == field:
            if isinstance(value, int):
                yield _signed(value)
            else:
                yield from _packed(value)


def _packed(data: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield _signed(value)
            value = shift = 0
        elif shift > 63:
            return


def _signed(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _last_bytes(message: bytes, field: int) -> bytes:
    last = b""
    for number, value in fields(message):
        if number == field and isinstance(value, bytes):
            last = value
    return last


def part_numbers(message: bytes, field: int) -> tuple[int, ...]:
    """A number field of a message inside an instruction, repeated or not."""
    return tuple(_all_numbers(message, field))


def parts(message: bytes, field: int) -> tuple[bytes, ...]:
    """The messages of one field."""
    return tuple(value for number, value in fields(message) if number == field and isinstance(value, bytes))


def first_number(message: bytes, field: int, otherwise: int = 0) -> int:
    """A number of a message inside an instruction."""
    values = part_numbers(message, field)
    return values[-1] if values else otherwise
