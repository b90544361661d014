"""``analyses.op_tree``: the ops of compiled programs by scope, each with its HLO text and what is around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.hlo.text import neighbourhood, text_of
from stepscope.analysis.hlo.tree import Node, ProgramTree, is_outside, is_rematerialised, program_trees
from stepscope.analysis.roofline import OpRoof

if TYPE_CHECKING:
    from stepscope.document import programs as entry

PROGRAMS = 20
"""Programs that a report lists."""
NODES = 150
"""Scopes and ops of a program that a report lists."""
DRAWN = 40
"""Ops of a program, by time, whose text and neighbourhood a report holds."""


def op_tree(facts: Facts) -> list[entry.ProgramEntry]:
    """The programs that take longest."""
    trees = program_trees(facts.trace, facts.work) if facts.programs else []
    return [_program(tree) for tree in sorted(trees, key=lambda tree: -tree.total.ns)[:PROGRAMS]]


def _program(tree: ProgramTree) -> entry.ProgramEntry:
    ops = sorted((node for node in tree.nodes if node.op is not None), key=lambda node: -node.total.ns)[:DRAWN]
    drawn = {id(node.op) for node in ops}
    return {
        "device": tree.device,
        "module": tree.module,
        "program": None if tree.program is None else str(tree.program),
        "total_ns": tree.total.ns,
        "count": tree.total.count,
        "flops": tree.total.flops,
        "bytes": tree.total.bytes,
        "flops_per_s": tree.total.flops_per_s,
        "bytes_per_s": tree.total.bytes_per_s,
        "utilisation": tree.utilisation,
        "rematerialised_ns": tree.rematerialised_ns,
        "outside_compilation_ns": tree.outside_ns,
        "waiting_ns": tree.waiting_ns,
        "unknown": [{"name": name, "ns": ns} for name, ns in sorted(tree.unknown.items(), key=lambda item: -item[1])],
        "count_of_nodes": len(tree.nodes),
        "nodes": [_node(node, drawn) for node in tree.nodes[:NODES]],
    }


def _node(node: Node, drawn: set[int]) -> entry.ProgramNode:
    op, total = node.op, node.total
    made: entry.ProgramNode = {
        "name": node.name,
        "depth": node.depth,
        "total_ns": total.ns,
        "count": total.count,
        "flops": total.flops,
        "bytes": total.bytes,
        "flops_per_s": total.flops_per_s,
        "bytes_per_s": total.bytes_per_s,
        "op": None if op is None else _op(op, node.category, drawn=id(op) in drawn),
    }
    if node.times > 1:
        made["times"] = node.times
    return made


def _op(op: OpRoof, category: Category, *, drawn: bool) -> entry.ProgramOp:
    place, computes = op.place, category is Category.COMPUTE
    assert place is not None
    return {
        "category": str(category),
        "opcode": place.one.opcode,
        "kind": str(op.kind),
        "kernel": op.kernel,
        "bound": op.roof.bound,
        "flops_share": op.roof.flops_share,
        "bandwidth_share": op.roof.bandwidth_share,
        "intensity": op.roof.intensity,
        "rematerialised": is_rematerialised(place),
        "outside_compilation": is_outside(place),
        "unknown": place.cost.unknown if computes else None,
        "hlo": text_of(place.program, place.one) if drawn else None,
        "graph": _graph(op) if drawn else None,
    }


def _graph(op: OpRoof) -> entry.ProgramGraph:
    place = op.place
    assert place is not None
    around = neighbourhood(place.program, place.one.row)
    made = [place.program.instructions[row] for row in around.rows]
    return {
        "nodes": [
            {"name": one.name, "opcode": one.opcode, "shape": str(one.shape)[:200], "distance": distance}
            for one, distance in zip(made, around.distance, strict=True)
        ],
        "edges": [list(edge) for edge in around.edges],
        "cut": around.cut,
    }
