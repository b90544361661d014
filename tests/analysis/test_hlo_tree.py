"""Programs as trees of scopes, their text and what stands around an instruction."""

from __future__ import annotations

import jsonschema
import pytest

import stepscope
from stepscope.analysis.analyse import analyse
from stepscope.analysis.hlo.text import LONGEST, MOST, neighbourhood, text_of
from stepscope.analysis.hlo.tree import Node, program_trees
from stepscope.document.programs import ProgramNode
from stepscope.hlo.program import read_program
from stepscope.report.op_tree import op_tree
from stepscope.report.program_sections import op_tree as sections
from stepscope.report.schema import load
from stepscope.trace.trace import Trace
from tests.analysis.test_hlo_work import FLOPS, GEMM, A, B, gpu
from tests.kit.hlo import op, program
from tests.kit.traces import real_trace

SCOPED = op("gemm.1", "custom-call", "(bf16[4096,4096], s8[64])", "a", "b", scope="jit(f)/attn/dot_general",
            more=((28, "__cublas$gemm"), (43, GEMM)))  # fmt: skip
AGAIN = op("neg.remat", "negate", "bf16[4096,4096]", "a", scope="jit(f)/attn/neg")
MINE = op("mine", "custom-call", "bf16[4096,4096]", "a", more=((28, "my_kernel"),), scope="jit(f)/mlp/mine")


def ran() -> Trace:
    return gpu(program(A, B, SCOPED, AGAIN, MINE), ("k1", "gemm.1", 900), ("k2", "neg.remat", 100), ("k3", "mine", 50))


def test_scopes_hold_what_lies_in_them() -> None:
    (tree,) = program_trees(ran(), analyse(ran()).work)
    names = [(node.depth, node.name, node.total.ns) for node in tree.nodes]
    assert names == [
        (0, "jit(f)", 1_050_000), (1, "attn", 1_000_000), (2, "dot_general", 900_000), (3, "gemm.1", 900_000),
        (2, "neg", 100_000), (3, "neg.remat", 100_000), (1, "mlp", 50_000), (2, "mine", 50_000), (3, "mine", 50_000),
    ]  # fmt: skip
    attention = tree.nodes[1].total
    assert (attention.flops, attention.count) == (FLOPS + 4096**2, 2)
    assert tree.nodes[0].total.flops is None  # one op's work is not known


def test_what_is_computed_again_and_what_is_not_known_is_told() -> None:
    (tree,) = program_trees(ran(), analyse(ran()).work)
    assert (tree.rematerialised_ns, tree.unknown, tree.utilisation) == (100_000, {"my_kernel": 50_000}, None)
    assert (tree.module, tree.program, tree.device) == ("jit_f", 1, 0)


def test_a_program_whose_work_is_known_has_a_utilisation() -> None:
    trace = gpu(program(A, B, SCOPED, AGAIN), ("k1", "gemm.1", 900), ("k2", "neg.remat", 100))
    (tree,) = program_trees(trace, analyse(trace).work)
    assert tree.utilisation == pytest.approx(FLOPS / 312e12 / 1e-3, rel=1e-6)


def test_what_computes_nothing_stands_in_the_tree_with_its_time() -> None:
    exchange = op("all-reduce.1", "all-reduce", "bf16[4096,4096]", "a", scope="jit(f)/psum")
    ran = ("k1", "gemm.1", 900), ("ncclDevKernel_AllReduce", "all-reduce.1", 600)
    trace = gpu(program(A, B, SCOPED, exchange), *ran)
    facts = analyse(trace)
    (tree,) = program_trees(trace, facts.work)
    assert (tree.total.ns, tree.total.flops, tree.waiting_ns) == (1_500_000, FLOPS, 0)
    assert tree.utilisation == pytest.approx(FLOPS / 312e12 / 0.9e-3, rel=1e-6)  # it may run beside the product
    (node,) = (node for node in op_tree(facts)[0]["nodes"] if node["name"] == "all-reduce.1")
    assert (node["total_ns"], node["flops"], node["op"]["category"], node["op"]["bound"]) == (
        600_000, 0, "collective", None)  # fmt: skip


@pytest.mark.real
def test_a_program_that_waits_for_host_memory_says_so_op_by_op() -> None:
    found = op_tree(stepscope.open(real_trace("xplane/tpu_v6e_4_chips.xplane.pb")).facts)
    assert len(found) == 4
    for one in found:
        assert one["waiting_ns"] / one["total_ns"] == pytest.approx(0.969, abs=0.001)
        assert [node["name"] for node in one["nodes"][:4]] == ["copy-done.4", "copy-done.2", "copy-done", "copy-done.5"]
        assert {node["op"]["category"] for node in one["nodes"][:4]} == {"host_memory"}


def test_the_report_holds_text_and_graph_and_fits_its_schema() -> None:
    (found,) = op_tree(analyse(ran()))
    schema = load()
    jsonschema.validate(found, {"$ref": "#/$defs/program", "$defs": schema["$defs"]})
    node = next(node for node in found["nodes"] if node["name"] == "gemm.1")
    assert node["op"]["hlo"].startswith("%gemm.1 = (bf16[4096,4096], s8[64]) custom-call(bf16[4096,4096] %a, ")
    assert [one["name"] for one in node["op"]["graph"]["nodes"]] == ["gemm.1", "a", "b"]
    assert node["op"]["graph"]["edges"] == [[1, 0], [2, 0]]
    programs, ops = sections([found])
    assert programs.rows[0][0] == "jit_f(1)"
    assert ops.rows[3][0] == "· · · gemm.1"


def test_a_profile_without_programs_has_no_tree() -> None:
    assert op_tree(analyse(gpu(b"", ("k1", "gemm.1", 900)))) == []
    assert sections([]) == []


def test_the_neighbourhood_reaches_two_edges_each_way_and_no_more_than_fit() -> None:
    chain = [op("p", "parameter", "f32[8]"), *(op(f"n{at}", "negate", "f32[8]", f"n{at - 1}" if at else "p")
                                               for at in range(7))]  # fmt: skip
    made = read_program(program(*chain))
    around = neighbourhood(made, made.by_name["n3"])
    assert [(made.instructions[row].name, far) for row, far in zip(around.rows, around.distance, strict=True)] == [
        ("n3", 0), ("n2", -1), ("n4", 1), ("n1", -2), ("n5", 2)]  # fmt: skip
    many = [op("p", "parameter", "f32[8]"), *(op(f"n{at}", "negate", "f32[8]", "p") for at in range(100))]
    made = read_program(program(*many))
    found = neighbourhood(made, made.by_name["p"])
    assert (len(found.rows), found.cut) == (MOST, True)


def test_long_texts_are_cut() -> None:
    made = read_program(program(A, op("k", "custom-call", "f32[8]", "a", more=((28, "x"), (43, "y" * 9_999)))))
    assert len(text_of(made, made.instructions[1])) == LONGEST + 1


def layers(*scopes: str) -> tuple[list[Node], list[ProgramNode], list[str]]:
    """The tree of ops of 100 µs that lie in these scopes; as a report holds it; its first column."""
    ops = [op(f"add.{at}", "add", "bf16[4096,4096]", "a", "b", scope=scope) for at, scope in enumerate(scopes)]
    trace = gpu(program(A, B, *ops), *((f"k{at}", f"add.{at}", 100) for at in range(len(ops))))
    facts = analyse(trace)
    (tree,) = program_trees(trace, facts.work)
    assert sum(node.total.ns for node in tree.nodes if node.op) == tree.total.ns == 100_000 * len(ops)
    (report,) = op_tree(facts)
    return list(tree.nodes), report["nodes"], [row[0] for row in sections([report])[1].rows]


def test_layers_that_a_model_repeats_are_one_row_with_how_many_there_are() -> None:
    scopes = [f"jit(f)/jvp(layer_{layer})/{part}/add" for layer in range(12) for part in ("attention", "mlp")]
    nodes, report, shown = layers(*scopes)
    assert [(node.depth, node.name, node.times, node.total.count) for node in nodes] == [
        (0, "jit(f)", 1, 24), (1, "jvp(layer_*)", 12, 24),
        (2, "attention", 12, 12), (3, "add", 12, 12), (4, "add.*", 12, 12),
        (2, "mlp", 12, 12), (3, "add", 12, 12), (4, "add.*", 12, 12),
    ]  # fmt: skip
    assert [node.get("times") for node in report] == [None, *[12] * 7]
    assert shown[:3] == ["jit(f)", "· jvp(layer_*) × 12", "· · attention × 12"]
    assert report[4]["op"] is not None
    assert report[4]["op"]["hlo"].startswith("%add.")


def test_what_stands_beside_each_other_in_one_layer_is_not_alike() -> None:
    """Two products of an MLP do different work; that of the first block is like that of the second."""
    numbers = [(block, 2 * block + at) for block in range(3) for at in range(2)]
    nodes, _, _ = layers(*(f"f/block_{block}/Dense_{dense}/add" for block, dense in numbers), "f/x", "f/x")
    assert [(node.name, node.times) for node in nodes if node.depth in (1, 2)] == [
        ("block_*", 3), ("Dense_* (1 of 2)", 3), ("Dense_* (2 of 2)", 3),
        ("x", 1), ("add.6", 1), ("add.7", 1),
    ]  # fmt: skip


@pytest.mark.real
@pytest.mark.parametrize("name", ["tpu_v6e_4_chips", "mi300_jax_attention", "mi300_jax_conv"])
def test_every_op_of_a_real_program_is_in_one_row(name: str) -> None:
    facts = stepscope.open(real_trace(f"xplane/{name}.xplane.pb")).facts
    for tree in program_trees(facts.trace, facts.work):
        ops = [node for node in tree.nodes if node.op]
        assert sum(node.total.ns for node in ops) == tree.total.ns
        assert sum(node.total.count for node in ops) == tree.total.count
        assert {node.times for node in tree.nodes} == {1}  # none of them has layers that are alike
