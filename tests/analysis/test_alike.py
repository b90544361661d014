"""Layers that a model repeats are told as one."""

from __future__ import annotations

from stepscope.analysis.alike import alike
from stepscope.analysis.layers import Layer
from tests.support import real_facts


def told(*paths: str) -> list[tuple[str, int]]:
    found = alike([Layer(path, 10, 5, 2, 20) for path in paths])
    assert sum(len(one.layers) for one in found) == len(paths)
    return [(one.path, len(one.layers)) for one in found]


def test_layers_that_differ_in_their_numbers_alone_are_one():
    paths = [f"Net_0/layers.{block}/{part}" for block in range(12) for part in ("attention", "mlp")]
    assert told(*paths) == [("Net_0/layers.*/attention", 12), ("Net_0/layers.*/mlp", 12)]
    assert told("a/b1", "a/c1") == [("a/b1", 1), ("a/c1", 1)]


def test_what_stands_in_one_layer_beside_each_other_is_not_alike():
    """The counter of a class runs on from block to block: the place in the block is what counts."""
    paths = [f"Block_{block}/Linear_{3 * block + at}" for block in range(4) for at in range(3)]
    assert told(*paths) == [(f"Block_*/Linear_* ({place} of 3)", 4) for place in (1, 2, 3)]
    assert told("Block_0/fc1", "Block_0/fc2", "Block_1/fc1", "Block_1/fc2") == [("Block_*/fc1", 2), ("Block_*/fc2", 2)]


def test_the_whole_has_the_sums():
    (one,) = alike([Layer("n0/l0", 10, 5, 2, 20), Layer("n1/l1", 30, 1, 1, 40)])
    assert one.whole == Layer("n*/l*", 40, 6, 3, 60)
    assert [layer.path for layer in one.layers] == ["n0/l0", "n1/l1"]


def test_the_blocks_of_a_language_model():
    (layers,) = real_facts("kineto/h100_qwen05b.json.gz").layers
    found = alike(layers.layers)
    assert found[0].path == "Qwen2Model_0/Qwen2DecoderLayer_*/Qwen2Attention_*"
    assert (len(found), len(found[0].layers)) == (17, 24)
    assert sum(one.whole.own_ns for one in found) + layers.outside_ns == layers.total_ns
