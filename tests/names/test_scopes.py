"""Layers in name scopes, as JAX, Flax, TensorFlow 1 and 2 write them."""

from __future__ import annotations

import pytest

from stepscope.names.scopes import jax_scope, tensorflow_scope


@pytest.mark.parametrize(
    ("name", "layer", "backward"),
    [
        ("jit(step)/jvp(Net)/Block_0/Dense_1/dot_general", "Net/Block_0/Dense_1", False),
        ("jit(step)/transpose(jvp(Net))/Block_0/Dense_1/dot_general", "Net/Block_0/Dense_1", True),
        ("jit(train_step)/transpose(jvp())/while/body/closed_call/layer/dot_general", "layer", True),
        ("jit(train_step)/jvp(loss)/div", "loss", False),
        ("jit(f)/jit(main)/conv_general_dilated", "", False),
        ("jit(step)/sub", "", False),
        ("jit(s)/transpose(jvp(Net/Head))/mul;jit(s)/transpose(jvp(Net))/add", "Net/Head", True),
        ("jit(s)/vmap(Net)/jit(relu)/max", "Net", False),
        ("x", "", False),
        ("", "", False),
        ("((((", "", False),
    ],
)
def test_jax(name: str, layer: str, backward: bool):
    assert jax_scope(name) == (layer, backward)


@pytest.mark.parametrize(
    ("name", "layer", "backward"),
    [
        ("sequential_1/dense_1/Relu", "sequential_1/dense_1", False),
        ("sequential_1/dense_1/BiasAdd/ReadVariableOp", "sequential_1/dense_1", False),
        ("gradient_tape/sequential_1/dense_1/MatMul/MatMul_1", "sequential_1/dense_1", True),
        ("gradient_tape/sequential_1/dense_1/ReluGrad", "sequential_1/dense_1", True),
        ("gradients/model/dense/MatMul_grad/MatMul", "model/dense", True),
        ("tower_0/gradients/tower_0/fc/add_grad/Sum", "tower_0/fc", True),
        ("InceptionV3/Conv2d_1a/Conv2D", "InceptionV3/Conv2d_1a", False),
        ("Mean", "", False),
        ("", "", False),
    ],
)
def test_tensorflow(name: str, layer: str, backward: bool):
    assert tensorflow_scope(name) == (layer, backward)


def test_a_name_without_end_takes_no_time():
    assert jax_scope("jit(" * 100_000 + "x").layer == ""
    assert tensorflow_scope("a/" * 100_000).layer.startswith("a/a")
