"""Compiled programs (``xla.HloProto``) from plain lines: what tests of costs, text and graphs are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.kit.wire import Value, message, packed

_TYPES = {"pred": 1, "s8": 2, "s32": 4, "u8": 6, "u32": 8, "f16": 10, "f32": 11, "f64": 12, "bf16": 16, "s4": 21}
_TUPLE = 13
_ARRAY = re.compile(r"(\w+)\[([\d,]*)\](?:S\((\d+)\))?")


def shape(text: str) -> bytes:
    """``bf16[8,16]``, ``f32[4]S(5)`` (memory space 5), or a tuple of them: ``(f32[2], u8[64])``."""
    parts = _ARRAY.findall(text)
    if text.startswith("("):
        return message((2, _TUPLE), *((4, _array(*part)) for part in parts))
    return _array(*parts[0])


def _array(kind: str, dims: str, space: str) -> bytes:
    layout = ((5, message((8, int(space)))),) if space else ()
    return message((2, _TYPES[kind]), (3, packed(*map(int, filter(None, dims.split(","))))), *layout)


@dataclass(frozen=True)
class Op:
    """An instruction; operands are names of its computation's, ``calls`` names of computations."""

    name: str
    opcode: str
    shape: str
    operands: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    more: tuple[tuple[int, Value], ...] = ()
    scope: str = ""


def op(name: str, opcode: str, result: str, *operands: str, calls: tuple[str, ...] = (),
       more: tuple[tuple[int, Value], ...] = (), scope: str = "") -> Op:  # fmt: skip
    """An instruction."""
    return Op(name, opcode, result, operands, calls, more, scope)


@dataclass(frozen=True)
class Module:
    """A program: its computations by name, the first of which it begins with; the last instruction is the result."""

    computations: dict[str, list[Op]]
    name: str = "jit_f"
    more: tuple[tuple[int, Value], ...] = field(default=())

    def proto(self) -> bytes:
        """Its bytes."""
        ids = {name: at for at, name in enumerate(self.computations, 10)}
        made = [(3, _computation(name, ops, ids)) for name, ops in self.computations.items()]
        return message((1, message((1, self.name), *made, (5, 1), (6, 10), *self.more)))


def program(*ops: Op, **computations: list[Op]) -> bytes:
    """A program of one computation and those it calls."""
    return Module({"main": list(ops), **computations}).proto()


def _computation(name: str, ops: list[Op], ids: dict[str, int]) -> bytes:
    rows = {one.name: at for at, one in enumerate(ops, 1)}
    made = [(2, _instruction(one, rows, ids)) for one in ops]
    return message((1, name), *made, (5, ids[name]), (6, len(ops)))


def _instruction(one: Op, rows: dict[str, int], ids: dict[str, int]) -> bytes:
    called = ((38, packed(*(ids[name] for name in one.calls))),) if one.calls else ()
    operands = ((36, packed(*(rows[name] for name in one.operands))),) if one.operands else ()
    about = ((7, message((2, one.scope))),) if one.scope else ()
    return message((1, one.name), (2, one.opcode), (3, shape(one.shape)), *about, *one.more, (35, rows[one.name]),
                   *operands, *called)  # fmt: skip


def dot_numbers(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, bytes]:
    """What a dot sums over."""
    return 30, message((1, packed(*left)), (2, packed(*right)))


def window(*dimensions: tuple[int, int, int, int]) -> tuple[int, bytes]:
    """Size, stride, padding below and above of each dimension."""
    fields = [message((1, size), (2, stride), (3, low), (4, high), (5, 1), (6, 1))
              for size, stride, low, high in dimensions]  # fmt: skip
    return 15, message(*((1, dimension) for dimension in fields))


def channels_first(spatial: int) -> tuple[int, bytes]:
    """Dimension numbers of a convolution: image [N, C, ...], kernel [K, C, ...], result [N, K, ...]."""
    places = packed(*range(2, 2 + spatial))
    return 16, message((3, 1), (6, places), (8, 1), (10, 1), (11, places), (12, places))
