"""Branches of a TensorFlow graph that neither need each other nor run side by side."""

from __future__ import annotations

import tempfile
from pathlib import Path

from stepscope.analysis.analyse import analyse
from stepscope.analysis.branches import Branches, independent_branches
from stepscope.analysis.facts import Facts
from stepscope.analysis.limits import BRANCH_OPS
from stepscope.diagnosis.notices import notices
from stepscope.formats.tf1 import step_stats
from stepscope.inputs.source import Source
from tests.kit.step_stats import CPU, GPU, device, node, run_metadata

Ops = list[tuple[str, str, int]]
"""Name, inputs and time of the kernel in µs, in the order in which they run."""
JOIN = "join/Add"


def run(ops: Ops, *, streams: int = 1, feed: str = "input", labels: bool = True) -> Facts:
    """One run of a graph: an input, then the ops on a GPU, each with a kernel behind the one before."""
    launches, kernels = [], [list[bytes]() for _ in range(streams)]
    at = 20
    for number, (name, inputs, dur) in enumerate(ops):
        label = f"{name} = MatMul({inputs})" if labels else f"{name} = MatMul()"
        launches.append(node(name, 10 + 2 * number, 1, label))
        kernels[number % streams].append(node(f"{name}:MatMul", at, dur))
        at += dur + 1
    data = run_metadata(
        device(CPU, node("_SOURCE", 0, 1, "_SOURCE = NoOp()"), node(feed, 2, 5, f"{feed} = Placeholder()")),
        device(GPU, *launches),
        *(device(f"/device:GPU:0/stream:{13 + at}", *rows) for at, rows in enumerate(kernels)),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile"
        path.write_bytes(data)
        return analyse(step_stats.read(Source(path)))


def chain(scope: str, count: int, dur: int, first: str = "input") -> Ops:
    made, before = [], first
    for at in range(count):
        made.append((f"{scope}/op{at}", before, dur))
        before = f"{scope}/op{at}"
    return made


def alternating(*chains: Ops) -> Ops:
    return [op for ops in zip(*chains, strict=True) for op in ops]


def towers(count: int = 8, first: int = 100, second: int = 60, behind: str = "input") -> Ops:
    """Two towers of ops that take turns, and what joins them."""
    both = alternating(chain("tower_0", count, first, behind), chain("tower_1", count, second, behind))
    return [*both, (JOIN, f"tower_0/op{count - 1}, tower_1/op{count - 1}", 10)]


def found(facts: Facts) -> list[Branches]:
    return independent_branches(facts)


def told(facts: Facts) -> str | None:
    return next((notice.text for notice in notices(facts) if notice.code == "independent_branches"), None)


def test_two_towers_on_one_stream_are_told_with_their_time():
    facts = run(towers())
    (pair,) = found(facts)
    assert (pair.longer.scope, pair.longer.ops, pair.longer.ns) == ("tower_0", 8, 800_000)
    assert (pair.shorter.scope, pair.shorter.ops, pair.shorter.ns) == ("tower_1", 8, 480_000)
    assert pair.compute_ns == 1_290_000
    text = told(facts)
    assert text is not None
    assert "`tower_0` (8 ops, 800 µs) and `tower_1` (8 ops, 480 µs) do not need each other" in text
    assert "up to 480 µs per step less" in text


def test_towers_that_run_on_two_streams_already_are_not_told():
    facts = run(towers(), streams=2)
    assert not found(facts)
    assert told(facts) is None


def test_a_chain_has_no_branches_whatever_its_scopes():
    ops = chain("tower_0", 8, 100) + chain("tower_1", 8, 60, "tower_0/op7")
    assert not found(run(ops))


def test_one_edge_between_the_towers_leaves_what_it_does_not_order():
    """The second tower needs the third op of the first: what comes before is no branch beside it."""
    ops = chain("tower_0", 12, 100)
    ops += [(name, "tower_0/op2" if at == 0 else inputs, dur) for at, (name, inputs, dur) in enumerate(
        chain("tower_1", 12, 60))]  # fmt: skip
    (pair,) = found(run(ops))
    assert (pair.longer.ops, pair.longer.ns) == (12 - 3, 900_000)
    assert pair.shorter.ns == 720_000


def test_a_control_input_orders_as_a_tensor_does():
    ops = chain("tower_0", 8, 100)
    ops += [(name, "input, ^tower_0/op7" if at == 0 else inputs, dur) for at, (name, inputs, dur) in enumerate(
        chain("tower_1", 8, 60))]  # fmt: skip
    assert not found(run(ops))


def test_gradients_of_weights_beside_the_chain_of_gradients_are_no_branches():
    """A training step: each layer's weight gradient and update hang off the backward chain, a third of all time."""
    forward, ops = chain("layer", 10, 50), list[tuple[str, str, int]]()
    before = "layer/op9"
    for at in range(10):
        ops.append((f"gradients/layer{at}/dx", before, 50))
        ops.append((f"gradients/layer{at}/dw", before, 50))
        ops.append((f"update/layer{at}/clip", f"gradients/layer{at}/dw", 10))
        ops.append((f"update/layer{at}/apply", f"update/layer{at}/clip", 10))
        before = f"gradients/layer{at}/dx"
    assert not found(run([*forward, *ops]))


def test_short_branches_are_no_news():
    trunk, last = chain("trunk", 10, 100), "trunk/op9"
    assert found(run([*trunk, *towers(BRANCH_OPS, behind=last)]))
    assert not found(run([*trunk, *towers(BRANCH_OPS - 1, behind=last)]))
    assert not found(run([*chain("trunk", 10, 1000), *towers(BRANCH_OPS, behind=last)]))


def test_nothing_is_told_where_a_node_was_not_recorded():
    """An input of which nothing is known may come from anywhere."""
    ops = towers()
    ops[4] = (ops[4][0], f"{ops[4][1]}, lost/op", ops[4][2])
    assert not found(run(ops))


def test_a_tensor_from_another_part_of_the_graph_comes_from_its_node():
    ops = [(name, inputs.replace("input", "input/_12"), dur) for name, inputs, dur in towers()]
    assert len(found(run(ops))) == 1


def test_nothing_is_told_without_inputs():
    assert not found(run(towers(), labels=False))


def test_nothing_is_told_of_a_loop():
    ops = towers()
    ops[0] = (ops[0][0], f"input, {ops[6][0]}", ops[0][2])
    assert not found(run(ops))
