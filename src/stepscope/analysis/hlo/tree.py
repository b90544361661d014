"""The ops of each compiled program as a tree of the framework's scopes, with what they take and reach.

An op is rematerialised where the compiler or the framework computes it again in place of keeping it: its name holds
``.remat``, or its scope JAX's ``rematted_computation``. Outside compilation is what a device hands to the host in the
middle of a program (``XlaSendToHost``). Both rules are XProf's (xprof/utils/op_utils.h).

Ops that compute nothing (exchanges, copies, and the ends of what runs on its own, in which the device waits) stand in
the tree with their time alone: what they move is no traffic of kernels.

Layers that a model repeats are one row, as are the ops in them: scopes whose names differ in their last number alone.
What stands beside each other with nothing but ops inside does different work (two ``Dense`` of an MLP): the first in
each scope is like the first in another, where they have as many.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from stepscope.analysis.alike import NUMBER
from stepscope.analysis.categories import BUSY, CATEGORIES, Category
from stepscope.analysis.costs.call import CostKind
from stepscope.analysis.hlo.programs import ProgramPlace
from stepscope.analysis.roofline import OpRoof, Roof, Work, op_roofs, per_second
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Trace

_Path = tuple[str, ...]


@record
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


@record
class Node:
    """A scope with what lies in it, or an op; or all that are alike."""

    name: str
    """With ``*`` for the number in which they differ."""
    depth: int
    total: Total
    op: OpRoof | None = None
    """Of several the one that takes longest."""
    category: Category = Category.COMPUTE
    """What an op's time is booked as."""
    times: int = 1
    """How many scopes or ops it stands for."""


@record
class ProgramTree:
    """One program on one device."""

    device: int
    module: str
    program: int | None
    total: Total
    utilisation: float | None
    """Time its products would take at the peak rate, over the time it computes or waits; None where not all of it is
    known."""
    rematerialised_ns: int
    outside_ns: int
    waiting_ns: int
    """Time of ops in which the device only waits."""
    unknown: dict[str, int]
    """Time of ops whose operations are not known, by what has no formula."""
    nodes: tuple[Node, ...]
    """Depth first, by time."""


@record
class _Ran:
    """An instruction of a program and what its time is booked as."""

    op: OpRoof
    place: ProgramPlace
    category: Category

    @property
    def waits(self) -> bool:
        """Whether the device only waits in it."""
        return self.category not in BUSY


def program_trees(trace: Trace, works: Iterable[Work]) -> list[ProgramTree]:
    """The programs that ran in the used steps, by device and time."""
    trees = []
    for work in works:
        programs: dict[int, list[_Ran]] = defaultdict(list)
        for op in op_roofs(work):
            if op.place is not None:
                programs[op.place.number].append(_Ran(op, op.place, Category.COMPUTE))
        for ran in _without_work(work):
            programs[ran.place.number].append(ran)
        made = [_tree(trace, work.activity.device, number, ops) for number, ops in programs.items()]
        trees += sorted(made, key=lambda tree: -tree.total.ns)
    return trees


def _without_work(work: Work) -> list[_Ran]:
    """The instructions of programs that compute nothing, in the used steps."""
    activity, rows = work.activity, work.others
    number = work.costs.place[activity.slice[rows]]
    rows, number = rows[number >= 0], number[number >= 0]
    keys, at = np.unique(np.stack((number, activity.category[rows]), axis=1), axis=0, return_inverse=True)
    at = at.reshape(-1)
    total, counts = np.bincount(at, activity.end[rows] - activity.start[rows]).astype(np.int64), np.bincount(at)
    ran = []
    for (which, code), ns, count in zip(keys.tolist(), total.tolist(), counts.tolist(), strict=True):
        place = work.costs.compiled[which]
        roof = Roof(count, ns, 0, 0, None, False, None, None)
        op = OpRoof(activity.device, place.one.name, place.operands, CostKind.COMPILED, place.one.name, roof, place)
        ran.append(_Ran(op, place, CATEGORIES[code]))
    return ran


def _tree(trace: Trace, device: int, number: int, ran: list[_Ran]) -> ProgramTree:
    program = int(trace.programs.program[number])
    unknown: dict[str, int] = defaultdict(int)
    for one in ran:
        if one.op.roof.flops is None:
            unknown[one.place.cost.unknown or one.op.name] += one.op.roof.ns
    return ProgramTree(
        device=device,
        module=trace.strings[trace.programs.module[number]],
        program=None if program == NULL else program,
        total=_total(ran),
        utilisation=_utilisation(ran, unknown=bool(unknown)),
        rematerialised_ns=_ns(one for one in ran if is_rematerialised(one.place)),
        outside_ns=_ns(one for one in ran if is_outside(one.place)),
        waiting_ns=_ns(one for one in ran if one.waits),
        unknown=dict(unknown),
        nodes=tuple(_nodes(ran)),
    )


def _ns(ran: Iterable[_Ran]) -> int:
    return sum(one.op.roof.ns for one in ran)


def _total(ran: Sequence[_Ran]) -> Total:
    flops, moved = [one.op.roof.flops for one in ran], [one.op.roof.bytes for one in ran]
    return Total(
        ns=_ns(ran),
        count=sum(one.op.roof.count for one in ran),
        flops=None if None in flops else sum(value or 0 for value in flops),
        bytes=None if None in moved else sum(value or 0 for value in moved),
    )


def _utilisation(ran: Sequence[_Ran], *, unknown: bool) -> float | None:
    """Exchanges and copies may run beside what computes: their time is not counted, that of waits is."""
    ns = _ns(one for one in ran if one.waits or one.category is Category.COMPUTE)
    products = [one.op.roof for one in ran if one.category is Category.COMPUTE and one.place.is_product]
    if unknown or not ns or any(not roof.peak_flops or roof.flops is None for roof in products):
        return None
    return sum((roof.flops or 0) / (roof.peak_flops or 1) for roof in products) * 1e9 / ns


def _scopes(place: ProgramPlace) -> _Path:
    """The scopes around an op, outermost first; the framework's op ends them."""
    return tuple(part for part in (place.one.scope or "").split("/") if part)[:_DEEPEST]


_DEEPEST = 32
"""Scopes within each other that are told apart; the rest is one."""
_OP_NUMBER = regex(r"\.\d+$")
_FRAMEWORK_OP = 1
"""Scopes within one that is no more than a layer of ops."""


@record
class _Tree:
    """How the ops of a program lie in scopes that are alike."""

    ran: dict[_Path, list[_Ran]]
    """Of each path of scopes the ops that lie in it."""
    place: dict[_Path, tuple[int, int]]
    """Of scopes and ops beside others of their name the place among those; and how many those are."""

    def nodes(self, paths: Sequence[_Path], depth: int) -> list[Node]:
        """What lies in the scopes that the paths share, which are alike so far."""
        inside: dict[object, list[_Path]] = defaultdict(list)
        ops: dict[object, list[tuple[_Path, _Ran]]] = defaultdict(list)
        for path in paths:
            if depth < len(path):
                inside[self._key(path[: depth + 1])].append(path)
                continue
            for one in self.ran[path]:
                whole = _numbered(path, one)
                ops[self._key(whole), one.place.one.opcode, one.category].append((whole, one))
        made = [[self._op(runs, depth)] for runs in ops.values()]
        made += [[self._scope(alike, depth), *self.nodes(alike, depth + 1)] for alike in inside.values()]
        return [node for group in sorted(made, key=lambda group: -group[0].total.ns) for node in group]

    def _key(self, path: _Path) -> object:
        return NUMBER.sub("", path[-1]), self.place.get(path)

    def _scope(self, paths: Sequence[_Path], depth: int) -> Node:
        which = sorted({path[: depth + 1] for path in paths})
        total = _total([one for path in paths for one in self.ran[path]])
        return Node(self._name(which), depth, total, times=len(which))

    def _op(self, runs: Sequence[tuple[_Path, _Ran]], depth: int) -> Node:
        ran = [one for _, one in runs]
        dearest = max(ran, key=lambda one: one.op.roof.ns)
        name = dearest.op.name if len(ran) == 1 else self._name([path for path, _ in runs])
        return Node(name, depth, _total(ran), dearest.op, dearest.category, len(ran))

    def _name(self, paths: Sequence[_Path]) -> str:
        if len({path[-1] for path in paths}) == 1:
            return paths[0][-1]
        told = NUMBER.sub("*", paths[0][-1])
        place = self.place.get(paths[0])
        return f"{told} ({place[0]} of {place[1]})" if place else told


def _numbered(scopes: _Path, one: _Ran) -> _Path:
    """The path of an op; the first that a program has of a name is without a number."""
    name = one.op.name
    return (*scopes, name if _OP_NUMBER.search(name) else f"{name}.0")


def _nodes(ran: Sequence[_Ran]) -> list[Node]:
    """The ops by scope, depth first and by time."""
    by_path: dict[_Path, list[_Ran]] = defaultdict(list)
    for one in ran:
        by_path[_scopes(one.place)].append(one)
    deepest: dict[_Path, int] = {}
    for path, ops in by_path.items():
        for end in range(1, len(path) + 1):
            deepest[path[:end]] = max(deepest.get(path[:end], 0), len(path) - end)
        deepest.update((_numbered(path, one), 0) for one in ops)
    layers = [path for path, inside in deepest.items() if inside <= _FRAMEWORK_OP]
    return _Tree(by_path, _places(layers)).nodes(sorted(by_path), 0)


def _places(paths: Iterable[_Path]) -> dict[_Path, tuple[int, int]]:
    beside: dict[tuple[_Path, str], list[tuple[int, _Path]]] = defaultdict(list)
    for path in paths:
        if number := NUMBER.search(path[-1]):
            beside[path[:-1], NUMBER.sub("", path[-1])].append((int(number[0]), path))
    return {
        path: (at, len(siblings))
        for siblings in beside.values()
        for at, (_, path) in enumerate(sorted(siblings), 1)
        if len(siblings) > 1
    }


def is_rematerialised(place: ProgramPlace) -> bool:
    """Whether an instruction computes again what was computed before."""
    return ".remat" in place.one.name or "rematted_computation" in (place.one.scope or "")


def is_outside(place: ProgramPlace) -> bool:
    """Whether an instruction hands work to the host in the middle of a program."""
    to_host = place.one.opcode == "send-done" and place.one.number(47) == 1
    return to_host or (place.one.scope or "").endswith(":XlaSendToHost")
