"""The ops of each compiled program as a tree of the framework's scopes, with what they take and reach.

An op is rematerialised where the compiler or the framework computes it again in place of keeping it: its name holds
``.remat``, or its scope JAX's ``rematted_computation``. Outside compilation is what a device hands to the host in the
middle of a program (``XlaSendToHost``). Both rules are XProf's (xprof/utils/op_utils.h).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepscope.analysis.hlo.programs import Place
from stepscope.analysis.roofline import OpRoof, Work, op_roofs, per_second
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Total:
    """Some ops together, in the used steps."""

    ns: int
    count: int
    flops: int | None
    """None where those of an op are not known."""
    bytes: int | None

    @property
    def flops_per_s(self) -> float | None:
        """Operations per second."""
        return per_second(self.flops, self.ns)

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second."""
        return per_second(self.bytes, self.ns)


@dataclass(frozen=True, slots=True)
class Node:
    """A scope with what lies in it, or an op (``ops`` then holds it alone)."""

    name: str
    depth: int
    total: Total
    op: OpRoof | None = None


@dataclass(frozen=True, slots=True)
class ProgramTree:
    """One program on one device."""

    device: int
    module: str
    program: int | None
    total: Total
    utilisation: float | None
    """Time its products would take at the peak rate, over the time of its ops; None where not all of it is known."""
    rematerialised_ns: int
    outside_ns: int
    unknown: dict[str, int]
    """Time of ops whose operations are not known, by what has no formula."""
    nodes: tuple[Node, ...]
    """Depth first, by time."""


def program_trees(trace: Trace, works: Iterable[Work]) -> list[ProgramTree]:
    """The programs that ran in the used steps, by device and time."""
    found = []
    for work in works:
        programs: dict[int, list[OpRoof]] = defaultdict(list)
        for op in op_roofs(work):
            if op.place is not None:
                programs[op.place.number].append(op)
        made = [_tree(trace, work.activity.device, number, ops) for number, ops in programs.items()]
        found += sorted(made, key=lambda tree: -tree.total.ns)
    return found


def _tree(trace: Trace, device: int, number: int, ops: list[OpRoof]) -> ProgramTree:
    program = int(trace.programs.program[number])
    total = _total(ops)
    unknown: dict[str, int] = defaultdict(int)
    for op in ops:
        if op.roof.flops is None and op.place is not None:
            unknown[op.place.cost.unknown or op.name] += op.roof.ns
    return ProgramTree(
        device=device,
        module=trace.strings[trace.programs.module[number]],
        program=None if program == NULL else program,
        total=total,
        utilisation=_utilisation(ops, total, unknown=bool(unknown)),
        rematerialised_ns=sum(op.roof.ns for op in ops if op.place and is_rematerialised(op.place)),
        outside_ns=sum(op.roof.ns for op in ops if op.place and is_outside(op.place)),
        unknown=dict(unknown),
        nodes=tuple(_nodes([(_path(op), op) for op in ops], 0)),
    )


def _total(ops: Sequence[OpRoof]) -> Total:
    flops, moved = [op.roof.flops for op in ops], [op.roof.bytes for op in ops]
    return Total(
        ns=sum(op.roof.ns for op in ops),
        count=sum(op.roof.count for op in ops),
        flops=None if None in flops else sum(value or 0 for value in flops),
        bytes=None if None in moved else sum(value or 0 for value in moved),
    )


def _utilisation(ops: Sequence[OpRoof], total: Total, *, unknown: bool) -> float | None:
    products = [op.roof for op in ops if op.place is not None and op.place.is_product]
    if unknown or not total.ns or any(not roof.peak_flops or roof.flops is None for roof in products):
        return None
    return sum((roof.flops or 0) / (roof.peak_flops or 1) for roof in products) * 1e9 / total.ns


def _path(op: OpRoof) -> tuple[str, ...]:
    """The scopes around an op, outermost first; the framework's op ends them."""
    scope = op.place.one.scope if op.place is not None else None
    return tuple(part for part in (scope or "").split("/") if part)[:_DEEPEST]


_DEEPEST = 32
"""Scopes within each other that are told apart; the rest is one."""


def _nodes(ops: list[tuple[tuple[str, ...], OpRoof]], depth: int) -> list[Node]:
    inside: dict[str, list[tuple[tuple[str, ...], OpRoof]]] = defaultdict(list)
    made: list[list[Node]] = []
    for path, op in ops:
        if depth < len(path):
            inside[path[depth]].append((path, op))
        else:
            made.append([Node(op.name, depth, _total([op]), op)])
    for scope, members in inside.items():
        made.append([Node(scope, depth, _total([op for _, op in members])), *_nodes(members, depth + 1)])
    return [node for group in sorted(made, key=lambda group: -group[0].total.ns) for node in group]


def is_rematerialised(place: Place) -> bool:
    """Whether an instruction computes again what was computed before."""
    return ".remat" in place.one.name or "rematted_computation" in (place.one.scope or "")


def is_outside(place: Place) -> bool:
    """Whether an instruction hands work to the host in the middle of a program."""
    to_host = place.one.opcode == "send-done" and place.one.number(47) == 1
    return to_host or (place.one.scope or "").endswith(":XlaSendToHost")
