"""What each instruction of a compiled program computes and the least it moves.

Operations are counted as XLA does (``HloCostAnalysis``, xla/service/hlo_cost_analysis.cc): one per element of the
result of an elementwise op, transcendental ones too, which XLA lists apart; of a reduction what it applies, once per
element that goes; of a fusion, a call and the like those of what they run; of a loop those of its body times the trips
that the compiler knows (``known_trip_count``). Products, convolutions and calls of libraries: ``products`` and
``libraries``. Whatever has no formula is named and its operations are not known, which is never 0.

Bytes are those of operands read once and results written once. A slice is read at its own size and not its operand's,
also inside a fusion, and an update in place (dynamic-update-slice) writes what it updates
(``FusionParameterReadBytes``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from math import prod

from stepscope.analysis.costs.call import MATRIX_KINDS, CostKind
from stepscope.analysis.hlo.libraries import library_call
from stepscope.analysis.hlo.opcodes import ELEMENTWISE, MOVING, NOTHING
from stepscope.analysis.hlo.products import convolution, dot
from stepscope.hlo.program import Instruction, Program, first_number, parts
from stepscope.hlo.shapes import UNKNOWN, Shape
from stepscope.record import record

_MOST = 1 << 53
"""More operations or bytes than this are damage: they would take the fastest device seconds."""
_DEEPEST = 64
"""Computations that call each other to this depth are damage: XLA's call graph has no cycles."""


@record
class HloCost:
    """What one execution of an instruction takes; None where it is not known, and why then."""

    kind: CostKind
    flops: int | None
    bytes: int | None
    unknown: str | None = None
    """What has no formula, as the program names it."""


FREE = HloCost(CostKind.COPY, 0, 0)

_RUNS_ALL = frozenset(("fusion", "call", "async-start", "while"))


class ProgramCosts:
    """The costs of one program's instructions, each worked out when first asked for."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[int, HloCost] = {}
        self._depth = 0

    def of(self, row: int) -> HloCost:
        """What one execution of an instruction costs."""
        if row not in self._known:
            if self._depth >= _DEEPEST:
                return HloCost(CostKind.COMPILED, None, None, "computations that call themselves")
            self._depth += 1
            cost = self._work_out(self.program.instructions[row])
            self._depth -= 1
            wrong = max(cost.flops or 0, cost.bytes or 0) > _MOST
            self._known[row] = replace(cost, flops=None, bytes=None, unknown="a damaged shape") if wrong else cost
        return self._known[row]

    def _work_out(self, one: Instruction) -> HloCost:
        if one.opcode in NOTHING:
            return FREE
        if one.opcode in _RUNS_ALL or one.opcode == "conditional":
            return self._running(one)
        if UNKNOWN in (one.shape, *(other.shape for other in self.program.taken(one))):
            return HloCost(CostKind.COMPILED, None, None, "a shape that is not known")
        kind, flops = self._operations(one)
        unknown = None if flops is not None else one.target if one.opcode == "custom-call" else one.opcode
        known = one.opcode != "custom-call" or flops is not None
        return HloCost(kind, flops, self._moved(one) if known else None, unknown or None)

    def _operations(self, one: Instruction) -> tuple[CostKind, int | None]:
        """The kind of an instruction that runs no other one, and its operations."""
        shapes = [other.shape for other in self.program.taken(one)]
        if one.opcode in ELEMENTWISE:
            return CostKind.ELEMENTWISE, one.shape.elements
        if one.opcode in MOVING:
            return CostKind.COPY, 0
        if one.opcode == "dot":
            return CostKind.GEMM, dot(one, shapes[0], one.shape) if shapes else None
        if one.opcode == "convolution":
            return CostKind.CONVOLUTION, convolution(one, shapes[0], shapes[1], one.shape) if len(shapes) > 1 else None
        if one.opcode == "custom-call":
            kind, call = library_call(one.target) or (CostKind.COMPILED, None)
            return kind, call(one, shapes) if call else None
        times = _APPLIED.get(one.opcode)
        if times is None or not shapes:
            return CostKind.COMPILED, None
        kind, count = times(one, shapes)
        applied = self._applied(one)
        return kind, None if applied is None else count * applied

    def _applied(self, one: Instruction) -> int | None:
        """Operations of the computation that an instruction applies to elements; 1 where it has none of its own."""
        if not one.called:
            return 1
        return _sum(self.of(other.row).flops for other in self.program.body(one.called[-1]))

    def _running(self, one: Instruction) -> HloCost:
        """A fusion, a loop, a call, a choice: what it runs."""
        bodies = [[self.of(other.row) for other in self.program.body(called)] for called in one.called]
        if not bodies:
            return HloCost(CostKind.COMPILED, None, None, one.opcode)
        whole = [_together(body) for body in bodies]
        if one.opcode == "conditional":
            return max(whole, key=lambda cost: cost.flops or 0)
        cost = _together(whole)
        if one.opcode == "fusion":
            return replace(cost, bytes=self._fusion_bytes(one))
        if one.opcode == "while":
            return _repeated(cost, _trips(one))
        return cost

    def _moved(self, one: Instruction) -> int:
        """Bytes read and written by an instruction that runs no other one."""
        shapes = [other.shape for other in self.program.taken(one)]
        out = one.shape.first.bytes if one.opcode in ("custom-call", "copy-start") else one.shape.bytes
        if one.opcode in ("slice", "dynamic-slice", "gather"):
            return 2 * out + sum(shape.bytes for shape in shapes[1:])
        if one.opcode == "dynamic-update-slice":
            return 2 * sum(shape.bytes for shape in shapes[1:2]) + sum(shape.bytes for shape in shapes[2:])
        if one.opcode == "scatter":
            return 3 * sum(shape.bytes for shape in shapes[2:3]) + sum(shape.bytes for shape in shapes[1:2])
        return sum(shape.bytes for shape in shapes) + out

    def _fusion_bytes(self, one: Instruction) -> int:
        """What a fusion reads of its operands and writes of its results."""
        body = self.program.body(one.called[0])
        read = {other.number(9): self._read(other, 0) for other in body if other.opcode == "parameter"}
        taken = self.program.taken(one)
        root = self.program.computations[one.called[0]].root
        written = one.shape.bytes if root < 0 else self._written(self.program.instructions[root])
        return sum(min(read.get(at, one.shape.bytes), one.shape.bytes) for at, one in enumerate(taken)) + written

    def _read(self, parameter: Instruction, depth: int) -> int:
        """What is read of a value inside a fusion: slices of it at their size, what is updated in place not at all."""
        total, whole = 0, False
        for row in self.program.users.get(parameter.row, ()):
            user = self.program.instructions[row]
            first = user.operands[:1] == (parameter.row,)
            if user.opcode == "bitcast" and depth < _DEEPEST:
                total += self._read(user, depth + 1)
            elif user.opcode in ("slice", "dynamic-slice", "gather") and first:
                total += user.shape.bytes
            elif user.opcode != "dynamic-update-slice" or not first:
                whole = True
        return parameter.shape.bytes if whole else total

    def _written(self, root: Instruction) -> int:
        """What a fusion writes: an update in place only what it updates."""
        if root.opcode == "tuple":
            return sum(self._written(part) for part in self.program.taken(root))
        while root.opcode == "bitcast" and root.operands:
            root = self.program.instructions[root.operands[0]]
        if root.opcode == "dynamic-update-slice" and len(root.operands) > 1:
            return self.program.instructions[root.operands[1]].shape.bytes
        return root.shape.bytes


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


_ORDER = (*MATRIX_KINDS, CostKind.REDUCTION, CostKind.ELEMENTWISE, CostKind.COPY)


def _together(costs: list[HloCost]) -> HloCost:
    """The cost of all, of the kind of what weighs most: products before reductions before the rest."""
    kinds = {cost.kind for cost in costs}
    unknown = next((cost.unknown for cost in costs if cost.unknown), None)
    flops, moved = _sum(cost.flops for cost in costs), _sum(cost.bytes for cost in costs)
    kind = next((kind for kind in _ORDER if kind in kinds), CostKind.COMPILED if unknown else CostKind.COPY)
    return HloCost(kind, flops, moved, unknown)


def _repeated(cost: HloCost, trips: int | None) -> HloCost:
    if trips is None:
        return replace(cost, flops=None, bytes=None, unknown=cost.unknown or "a loop of unknown trips")
    flops, moved = (None if value is None else value * trips for value in (cost.flops, cost.bytes))
    return replace(cost, flops=flops, bytes=moved)


def _trips(one: Instruction) -> int | None:
    """How often a loop's body runs (WhileLoopBackendConfig in xla/xla_data.proto)."""
    try:
        count = json.loads(one.config)["known_trip_count"]["n"]
        return max(int(count), 0)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _window(one: Instruction) -> int:
    """Elements of a window (field 15)."""
    return prod(max(first_number(dimension, 1, 1), 1) for dimension in parts(one.part(15), 1))


def _log2_up(count: int) -> int:
    return max(count - 1, 0).bit_length()


def _reduced(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.REDUCTION, max(shapes[0].elements - one.shape.first.elements, 0)


def _windowed(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.REDUCTION, one.shape.first.elements * max(_window(one) - 1, 0)


def _selected(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.REDUCTION, shapes[-2].elements * _window(one) if len(shapes) > 2 else 0


def _scattered(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.REDUCTION, shapes[-1].elements


def _exchanged(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    """Two replicas are assumed, as XLA does."""
    return CostKind.REDUCTION, one.shape.elements


def _sorted(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.REDUCTION, shapes[0].elements * _log2_up(shapes[0].elements)


def _mapped(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.ELEMENTWISE, one.shape.elements


def _solved(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.GEMM, shapes[0].dims[-1] * shapes[-1].elements if shapes[0].dims else 0


def _factored(one: Instruction, shapes: list[Shape]) -> tuple[CostKind, int]:
    return CostKind.GEMM, shapes[0].dims[-1] * shapes[0].elements // 3 if shapes[0].dims else 0


_APPLIED: dict[str, Callable[[Instruction, list[Shape]], tuple[CostKind, int]]] = {
    "reduce": _reduced,
    "reduce-window": _windowed,
    "select-and-scatter": _selected,
    "scatter": _scattered,
    "all-reduce": _exchanged,
    "all-reduce-start": _exchanged,
    "reduce-scatter": _exchanged,
    "sort": _sorted,
    "map": _mapped,
    "triangular-solve": _solved,
    "cholesky": _factored,
}
"""How often an instruction applies its computation, or an operation of its own."""
