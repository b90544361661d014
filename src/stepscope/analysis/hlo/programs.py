"""The compiled programs of a profile, each read when first asked for."""

from __future__ import annotations

from functools import cached_property

from stepscope.analysis.costs.call import MATRIX_KINDS
from stepscope.analysis.hlo.costs import HloCost, ProgramCosts
from stepscope.hlo.program import Instruction, Program, read_program
from stepscope.record import record
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Trace

_FORMATS = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16", "s8": "int8"}


@record
class ProgramPlace:
    """An instruction of a program of the profile."""

    number: int
    """Row of the table of programs."""
    program: Program
    one: Instruction
    cost: HloCost

    @property
    def operands(self) -> str:
        """Types and shapes of what it takes."""
        return ", ".join(str(other.shape) for other in self.program.taken(self.one))

    @property
    def runs_once(self) -> bool:
        """Whether it stands in the computation that the program begins with: an execution of the program runs it
        once."""
        return self.one.computation == self.program.entry

    @property
    def is_product(self) -> bool:
        """Whether its operations are those of matrix products."""
        return self.cost.kind in MATRIX_KINDS

    @property
    def format(self) -> str | None:
        """Number format it computes in; None for products of 32-bit floats, which matrix units may round."""
        taken = [other.shape for other in self.program.taken(self.one) if other.shape.bits]
        shape = taken[0] if self.is_product and taken else self.one.shape.first
        if self.is_product and shape.element == "f32":
            return None
        known = _FORMATS.get(shape.element)
        return known or ("fp8" if shape.element.startswith("f8") else "fp4" if shape.element.startswith("f4") else None)


class TracePrograms:
    """What the programs in a trace say of its ops."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._read: dict[int, ProgramCosts] = {}

    def __bool__(self) -> bool:
        """Whether the profile holds any."""
        return bool(self._trace.hlo)

    def costs(self, number: int) -> ProgramCosts:
        """A program by its row in the table of programs, and the costs of its instructions."""
        if number not in self._read:
            self._read[number] = ProgramCosts(read_program(self._trace.hlo[number]))
        return self._read[number]

    def number(self, program: int, module: int) -> int | None:
        """The row of a program by its id and its module's name (a code); of what is not recorded the only one fits."""
        if program != NULL:
            rows = self._by_program.get(program, [])
            return rows[0] if len(rows) == 1 else next((row for row in rows if self._modules[row] == module), None)
        rows = self._by_module.get(module, [])
        return rows[0] if len(rows) == 1 else None

    def place(self, program: int, module: int, op: int) -> ProgramPlace | None:
        """The instruction that an op is; the codes are those of the table of XLA's ops."""
        number = self.number(program, module) if op >= 0 and self._trace.hlo else None
        if number is None or not self._trace.hlo[number]:
            return None
        costs = self.costs(number)
        row = costs.program.by_name.get(self._trace.strings[op])
        if row is None:
            return None
        return ProgramPlace(number, costs.program, costs.program.instructions[row], costs.of(row))

    @cached_property
    def _modules(self) -> list[int]:
        modules: list[int] = self._trace.programs.module.tolist()
        return modules

    @cached_property
    def _by_program(self) -> dict[int, list[int]]:
        return _rows_by(self._trace.programs.program.tolist())

    @cached_property
    def _by_module(self) -> dict[int, list[int]]:
        return _rows_by(self._modules)


def _rows_by(values: list[int]) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for row, value in enumerate(values):
        rows.setdefault(value, []).append(row)
    return rows
