"""Compiled XLA modules (``xla.HloProto`` bytes, as XPlane files carry them): what their instructions are.

Field numbers are those of xla/service/hlo.proto and xla/xla_data.proto as shipped in jaxlib 0.10.2; files of older
versions have the same ones. Damaged bytes never raise: what stands before the damage counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod
from typing import TypeVar

from stepscope.protobuf.columns import Children, Spans, by_row, children, decode, number_lists, numbers, texts
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.tables import I64, NULL, U8

T = TypeVar("T")

COLLECTIVE_OPCODES = frozenset(
    {
        "all-reduce",
        "all-gather",
        "reduce-scatter",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "ragged-all-to-all",
    }
)
"""Opcodes in which devices exchange data (xla/hlo/ir/hlo_opcode.h); the forms that end in -start and -done too."""

_FRAMEWORK_COLLECTIVES = {"cross_replica_sum": "all-reduce"}
"""Names PyTorch/XLA gives its ops, by the opcode they become."""

STACK_DEPTH = 64
"""Frames kept per op: more is recursion, or a file that wants to fill the memory."""

_LIBRARY = regex(r"(^|/)((site|dist)-packages|lib/python3\.\d+|jax/_src|jaxlib|flax/(core|linen|nnx))/|^<")
"""Files whose lines say nothing about the user's program."""


@record
class HloOp:
    """One instruction of a module."""

    name: str
    opcode: str
    scope: str | None
    """Name scope of the framework's op, ending in its name (``metadata.op_name``)."""
    source: str | None
    """``file:line`` of the user's program: as the compiler says, else the innermost frame outside of libraries."""
    stack: tuple[str, ...]
    """``file:line function`` of every frame, innermost first."""
    replica_groups: str | None
    """Devices of a collective that exchange data with each other, as HLO text writes them."""
    called: tuple[str, ...]
    """Names of the computations it calls."""
    takes: tuple[tuple[str, int], ...] = ()
    """Element type and number of elements of each array that a collective takes in."""
    target: str | None = None
    """What a custom call calls."""


@record
class HloModule:
    """One compiled module: its instructions by name, those of every computation together."""

    name: str
    program: int | None
    """``HloModuleProto.id``."""
    ops: dict[str, HloOp]
    parameters: tuple[str, ...] | None = None
    """Types and shapes of the program's parameters (``f32[512,256]``); None where not recorded."""


def is_collective(opcode: str) -> bool:
    """Whether an opcode, or what a framework calls it, is an exchange between devices.

    >>> is_collective("all-gather-start"), is_collective("cross_replica_sum"), is_collective("fusion")
    (True, True, False)
    """
    opcode = _FRAMEWORK_COLLECTIVES.get(opcode, opcode)
    return opcode.removesuffix("-start").removesuffix("-done") in COLLECTIVE_OPCODES


def is_control_flow(name: str) -> bool:
    """Whether an opcode, or the name XLA makes of it, is that of an op that only runs other ops.

    >>> is_control_flow("while.26"), is_control_flow("conditional"), is_control_flow("custom-call")
    (True, True, False)
    """
    return _CONTROL_FLOW.match(name) is not None


_CONTROL_FLOW = regex(r"(?:while|conditional|call)(?:\.\d+)?$")


def read_hlo(data: U8, start: int, end: int) -> HloModule:
    """The module in ``data[start:end]``, a serialized ``xla.HloProto``; with no sense in it, one without ops."""
    data = data[start:end]
    module = children(data, Spans.whole(data), 1, cut=True).spans[:1]
    if not len(module):
        return HloModule("", None, {})
    of_module = children(data, module, 3, cut=True)
    computations = of_module.spans
    ids = _optional(numbers(data, computations, 5)[0])
    names = dict(zip(ids, decode(data, texts(data, computations, 1)), strict=True))
    ops = _ops(data, children(data, computations, 2, cut=True), names, _Stacks(data, module))
    name, program = decode(data, texts(data, module, 1))[0], _optional(numbers(data, module, 5)[0])[0]
    if program is None and of_module.broken[0] < 0:
        program = 0  # what proto3 leaves out
    return HloModule(name or "", program, {op.name: op for op in ops}, _parameters(data, module))


_ELEMENT_TYPES = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2",
    20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz",
}  # fmt: skip
_MOST_ELEMENTS = 1 << 50
"""No machine holds more; larger sizes are damage."""
_NO_ARRAYS = (13, 14, 17)
"""Tuples, what is opaque, tokens."""


def _parameters(data: U8, module: Spans) -> tuple[str, ...] | None:
    """The shapes in the module's program shape (HloModuleProto field 4), as HLO text writes them."""
    program = texts(data, module, 4)
    if program.start[0] < 0:
        return None
    shapes = children(data, program, 1).spans
    types, dims = numbers(data, shapes, 2)[0].tolist(), number_lists(data, shapes, 3)
    return tuple(f"{_ELEMENT_TYPES.get(kind, 'type?')}[{_joined(dims.get(row, []))}]" for row, kind in enumerate(types))


def _ops(data: U8, rows: Children, computations: dict[int | None, str | None], stacks: _Stacks) -> Iterator[HloOp]:
    instructions = rows.spans
    metadata = texts(data, instructions, 7)
    names, opcodes, targets = (decode(data, texts(data, instructions, number)) for number in (1, 2, 28))
    scopes, files = (decode(data, texts(data, metadata, number)) for number in (2, 3))
    lines, frames = (_optional(column) for column in numbers(data, metadata, 4, 15))
    called = number_lists(data, instructions, 38)
    groups = _replica_groups(data, instructions)
    takes = _taken(data, rows, [row for row, opcode in enumerate(opcodes) if opcode and is_collective(opcode)])
    for row, name in enumerate(names):
        if not name:
            continue
        stack, frame_source = stacks.at(frames[row])
        yield HloOp(
            name,
            opcodes[row] or "",
            scopes[row] or None,
            _file_line(files[row], lines[row]) or frame_source,
            stack,
            groups.get(row),
            tuple(callee for id in called.get(row, ()) if (callee := computations.get(id))),
            takes.get(row, ()),
            targets[row] or None,
        )


def _taken(data: U8, instructions: Children, rows: list[int]) -> dict[int, tuple[tuple[str, int], ...]]:
    """What some instructions take in, from the shapes of their operands (ids hold within a computation); only arrays
    whose type and size are known."""
    if not rows:
        return {}
    ids, inside = numbers(data, instructions.spans, 35)[0].tolist(), instructions.parent.tolist()
    place = {(inside[row], id): row for row, id in enumerate(ids)}
    operands = number_lists(data, instructions.spans[rows], 36)
    of = {row: [place.get((inside[row], id), -1) for id in operands.get(at, ())] for at, row in enumerate(rows)}
    wanted = sorted({operand for listed in of.values() for operand in listed if operand >= 0})
    shapes = texts(data, instructions.spans[wanted], 3)
    types, dims = numbers(data, shapes, 2)[0].tolist(), number_lists(data, shapes, 3)
    known = {
        row: (_ELEMENT_TYPES[kind], prod(dims.get(at, ())))
        for at, (row, kind) in enumerate(zip(wanted, types, strict=True))
        if kind in _ELEMENT_TYPES and kind not in _NO_ARRAYS
    }
    whole = {row: listed for row, listed in of.items() if listed and known.keys() >= {*listed}}
    takes = {row: tuple(known[one] for one in listed) for row, listed in whole.items()}
    counts = {row: [count for _, count in given] for row, given in takes.items()}
    return {row: takes[row] for row, of in counts.items() if min(of) >= 0 and sum(of) < _MOST_ELEMENTS}


class _Stacks:
    """The stack frames of a module (StackFrameIndexProto); ids in it count from 1, and 0 is none."""

    def __init__(self, data: U8, module: Spans) -> None:
        index = texts(data, module, 17)
        files, functions = (decode(data, children(data, index, number).spans) for number in (1, 2))
        locations, frames = (children(data, index, number).spans for number in (3, 4))
        self._lines = [
            (_file_line(_at(files, file), line), _at(functions, function))
            for file, function, line in zip(*map(_optional, numbers(data, locations, 1, 2, 3)), strict=True)
        ]
        self._texts = [f"{line} {function}" if function else line for line, function in self._lines]
        self._frames = list(zip(*map(_optional, numbers(data, frames, 1, 2)), strict=True))
        self._known: dict[int, tuple[tuple[str, ...], str | None]] = {}

    def at(self, frame: int | None) -> tuple[tuple[str, ...], str | None]:
        """The stack of a frame, innermost first, and the source line in it that is the user's."""
        if not frame:
            return (), None
        if frame not in self._known:
            self._known[frame] = self._walk(frame)
        return self._known[frame]

    def _walk(self, frame: int | None) -> tuple[tuple[str, ...], str | None]:
        stack: list[str] = []
        lines: list[str] = []
        for _ in range(STACK_DEPTH):
            if (here := _at(self._frames, frame)) is None:
                break
            location, frame = here
            if (text := _at(self._texts, location)) and (line := _at(self._lines, location)) and line[0]:
                stack.append(text)
                lines.append(line[0])
        user = next((line for line in lines if not _LIBRARY.search(line)), lines[0] if lines else None)
        return tuple(stack), user


def _replica_groups(data: U8, instructions: Spans) -> dict[int, str]:
    """Replica groups by instruction, in any of the forms they have had (fields 49, 87, 92 and 93)."""
    groups = _listed_groups(data, instructions)
    for number, form in ((87, partial(_listed_groups, number=1)), (92, _iota_groups), (93, _mesh_groups)):
        lists = children(data, instructions, number)
        groups |= {int(lists.parent[row]): text for row, text in form(data, lists.spans).items()}
    return groups


def _listed_groups(data: U8, messages: Spans, number: int = 49) -> dict[int, str]:
    """Groups written out device by device."""
    groups = children(data, messages, number)
    members = number_lists(data, groups.spans, 1)
    by_message = by_row(groups.parent, [f"{{{_joined(members.get(row, []))}}}" for row in range(len(groups))])
    return {message: f"{{{','.join(texts)}}}" for message, texts in by_message.items()}


def _iota_groups(data: U8, messages: Spans) -> dict[int, str]:
    """Groups cut from the numbers 0, 1, 2 … laid out as an array."""
    counts, sizes = (_optional(column) for column in numbers(data, messages, 1, 2))
    order = _iota_order(data, messages, 3)
    return {row: f"[{counts[row] or 0},{sizes[row] or 0}]<={order[row]}" for row in range(len(messages))}


def _mesh_groups(data: U8, messages: Spans) -> dict[int, str]:
    """Groups along some axes of a mesh of devices."""
    mesh, used = texts(data, messages, 1), children(data, messages, 2)
    axes, iotas = children(data, mesh, 1), texts(data, mesh, 3)
    sizes = [size or 0 for size in _optional(numbers(data, axes.spans, 2)[0])]
    names = [f"'{name or ''}'" for name in decode(data, texts(data, axes.spans, 1))]
    named = by_row(axes.parent, names)
    meshes = by_row(axes.parent, [f"{name}={size}" for name, size in zip(names, sizes, strict=True)])
    parts = (_optional(column) for column in numbers(data, texts(data, used.spans, 2), 1, 2))
    along = by_row(
        used.parent,
        [
            (_at(named.get(row, []), (axis or 0) + 1) or "?") + (f":({before}){size}" if size else "")
            for row, axis, before, size in zip(
                used.parent.tolist(), _optional(numbers(data, used.spans, 1)[0]), *parts, strict=True
            )
        ],
    )
    ids, order = number_lists(data, mesh, 2), _iota_order(data, iotas, 1)
    groups = {}
    for row in range(len(messages)):
        devices = _joined(ids[row]) if row in ids else order[row] if iotas.start[row] >= 0 else ""
        where = f", device_ids=({devices})" if devices else ""
        groups[row] = f"mesh[{','.join(meshes.get(row, []))}]{where} {{{','.join(along.get(row, []))}}}"
    return groups


def _iota_order(data: U8, messages: Spans, number: int) -> list[str]:
    """The dimensions of an array of numbers, and the order they are read in (the field after)."""
    dims, order = number_lists(data, messages, number), number_lists(data, messages, number + 1)
    return [
        f"[{_joined(dims.get(row, []))}]" + (f"T({_joined(order[row])})" if row in order else "")
        for row in range(len(messages))
    ]


def _optional(column: I64) -> list[int | None]:
    return [None if value == NULL else value for value in column.tolist()]


def _at(values: Sequence[T], id: int | None) -> T | None:
    """What an id that counts from 1 stands for."""
    return values[id - 1] if id is not None and 0 < id <= len(values) else None


def _file_line(file: str | None, line: int | None) -> str | None:
    return f"{file}:{line}" if file and line else file or None


def _joined(values: Sequence[int]) -> str:
    return ",".join(map(str, values))
