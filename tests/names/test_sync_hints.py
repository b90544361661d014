"""What is known of ops and frames that make the host wait, in each framework's own words."""

from __future__ import annotations

import pytest

from stepscope.names.sync_hints import Replacement, SyncHint, frame_hint, sync_hint


def assert_advises(hint: SyncHint | None, says: str) -> None:
    assert hint is not None
    assert any(says in str(line) for line in hint.alternatives)


@pytest.mark.parametrize(
    ("op", "says"),
    [
        ("aten::nonzero", "torch.nonzero_static(x, size=n)"),
        ("aten::nonzero_numpy", "torch.where(cond, a, b)"),
        ("aten::_unique2", "scatter_add_"),
        ("aten::index", "ignore_index"),
        ("Where", "tf.where(mask, x, other)"),
        ("boolean_mask/Where:Where", "tf.boolean_mask"),
        ("UniqueV2", "unsorted_segment_sum"),
    ],
)
def test_ops_and_what_keeps_their_shape(op: str, says: str):
    assert_advises(sync_hint(op), says)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ("torch/_tensor_str.py(707): _str", "print"),
        ("/usr/lib/python3/site-packages/torch/amp/grad_scaler.py(371): <genexpr>", "bfloat16"),
        ("<built-in method tolist of Tensor object at 0x7f0000001000>", "one copy for many values"),
        ("lax_numpy.py(2861): nonzero", "jnp.nonzero(x, size=n"),
        ("setops.py(377): unique", "jnp.unique(x, size=n"),
        ("array.py(281): __float__", "every N steps"),
    ],
)
def test_frames_of_libraries(frame: str, says: str):
    assert_advises(frame_hint(frame), says)


@pytest.mark.parametrize(
    "frame",
    ["train.py(5): nonzero", "torch/optim/adam.py(10): step", "torch/amp/grad_scaler.py(300): step", "array.py"],
)
def test_other_frames(frame: str):
    assert frame_hint(frame) is None


def test_only_what_does_more_on_the_device_is_charged():
    assert sync_hint("aten::nonzero").replacement is Replacement.WHERE
    assert sync_hint("aten::item").replacement is None
    assert sync_hint("aten::_unique2").replacement is None, "it sorts already"


@pytest.mark.parametrize("op", ["my::Where", "Wherever", "x:y", "aten::Where"])
def test_other_ops(op: str):
    assert sync_hint(op) is None
