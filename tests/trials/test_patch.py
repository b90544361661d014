"""Cures as changes of a source: each text is what stood there and what is to stand there."""

from __future__ import annotations

import subprocess
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from stepscope.capture.cures import BY_NAME
from stepscope.trials.patch import Applied, made

pytest.importorskip("libcst")


def place(source: str, call: str, **more: Any) -> dict[str, Any]:
    """Where a call stands, as Python tells it."""
    begin = source.index(call)
    before, upto = source[:begin], source[: begin + len(call)]
    return {
        "line": before.count("\n") + 1,
        "end_line": upto.count("\n") + 1,
        "column": len(before[before.rfind("\n") + 1 :].encode()),
        "end_column": len(upto[upto.rfind("\n") + 1 :].encode()),
        **more,
    }


def patched(tmp_path: Path, source: str, *cures: tuple[str, int | None, str | None]) -> tuple[str, list[str]]:
    """The source with some cures in it, each with its number and the call at which it was put in; and what is left."""
    script = tmp_path / "train.py"
    script.write_text(source, encoding="utf-8")
    applied = [
        Applied(BY_NAME[name], value, () if call is None else (place(source, call, file=str(script)),))
        for name, value, call in cures
    ]
    change = made(applied, script, tmp_path)
    after = change.files[script][1] if script in change.files else source
    if change.diff:  # The diff says the same as the text.
        subprocess.run(["git", "apply", "-"], input=change.diff.encode(), cwd=tmp_path, check=True)
        assert script.read_text(encoding="utf-8") == after
    return after, change.by_hand


def test_arguments_are_appended_replaced_and_taken_out(tmp_path: Path) -> None:
    call = "DataLoader(data, batch_size=8)"
    source = f"loader = {call}  # kept\n"
    after, by_hand = patched(tmp_path, source, ("workers", 2, call))
    assert after == "loader = DataLoader(data, batch_size=8, num_workers=2, persistent_workers=True)  # kept\n"
    assert by_hand == []
    call = "DataLoader(data, num_workers=8, prefetch_factor=4, persistent_workers=True)"
    after, _ = patched(tmp_path, f"loader = {call}\n", ("workers", 1, call))
    assert after == "loader = DataLoader(data, num_workers=1, prefetch_factor=4, persistent_workers=True)\n"
    after, _ = patched(tmp_path, f"loader = {call}\n", ("workers", 0, call))
    assert after == "loader = DataLoader(data, num_workers=0)\n"


def test_an_argument_gets_a_line_where_the_others_have_one(tmp_path: Path) -> None:
    call = "DataLoader(\n    data,\n    batch_size=8,\n)"
    after, _ = patched(tmp_path, f"loader = {call}\n", ("persistent-workers", None, call))
    assert after == "loader = DataLoader(\n    data,\n    batch_size=8,\n    persistent_workers=True,\n)\n"


def test_of_two_calls_in_a_line_the_right_one_is_changed_also_behind_letters_of_several_bytes(tmp_path: Path) -> None:
    source = "größe = 1; a, b = Adam(p), Adam(q, lr=1e-3)  # ü\n"
    after, _ = patched(tmp_path, source, ("fused-optimizer", None, "Adam(q, lr=1e-3)"))
    assert after == "größe = 1; a, b = Adam(p), Adam(q, lr=1e-3, fused=True)  # ü\n"


def test_arguments_that_may_be_there_already_are_left_to_a_person(tmp_path: Path) -> None:
    call = "DataLoader(data, **options)"
    after, by_hand = patched(tmp_path, f"loader = {call}\n", ("workers", 2, call))
    assert after == f"loader = {call}\n"
    assert "num_workers=2" in by_hand[0]
    assert "train.py:1" in by_hand[0]


def test_a_statement_follows_the_one_that_makes_the_model(tmp_path: Path) -> None:
    source = dedent("""\
        def main():
            # the model
            model = Net(
                width=3,
            ).to("cpu")
            train(model)
        """)
    after, _ = patched(tmp_path, source, ("compile", None, "Net(\n        width=3,\n    )"))
    assert after == source.replace("    train(model)", "    model.compile()\n    train(model)")


@pytest.mark.parametrize(
    "source", ["def build():\n    return Net()\n", "for layer in Net():\n    pass\n", "run(Net())\n"]
)
def test_where_no_name_holds_the_model_a_person_writes_it(tmp_path: Path, source: str) -> None:
    after, by_hand = patched(tmp_path, source, ("compile", None, "Net()"))
    assert after == source
    assert "model.compile()" in by_hand[0]


def test_a_with_around_the_call_keeps_its_comments(tmp_path: Path) -> None:
    source = "import torch\n\nfor x in data:\n    # forward\n    y = model(x)  # here\n    y.backward()\n"
    after, _ = patched(tmp_path, source, ("bf16", None, "model(x)"))
    assert after == (
        "import torch\n\nfor x in data:\n    # forward\n    with torch.autocast('cuda', dtype=torch.bfloat16):\n"
        "        y = model(x)  # here\n    y.backward()\n"
    )


def test_a_setting_comes_behind_the_imports_unless_the_script_has_a_call_for_it(tmp_path: Path) -> None:
    source = '"""Doc."""\nimport torch\nfrom torch import nn\n\nx = 1\n'
    after, _ = patched(tmp_path, source, ("threads", 2, None))
    assert after == '"""Doc."""\nimport torch\nfrom torch import nn\ntorch.set_num_threads(2)\n\nx = 1\n'
    without = "from torch import nn\n\nx = 1\n"
    after, _ = patched(tmp_path, without, ("threads", 2, None))
    assert after == "from torch import nn\nimport torch\ntorch.set_num_threads(2)\n\nx = 1\n"
    called = "import torch\n\ntorch.set_num_threads(64)\n"
    after, _ = patched(tmp_path, called, ("threads", 2, "torch.set_num_threads(64)"))
    assert after == "import torch\n\ntorch.set_num_threads(2)\n"


def test_several_cures_are_one_change(tmp_path: Path) -> None:
    source = "import torch\n\nloader = DataLoader(data)\nmodel = Net()\n"
    cures = (("workers", 2, "DataLoader(data)"), ("prefetch", 4, "DataLoader(data)"), ("compile", None, "Net()"))
    after, by_hand = patched(tmp_path, source, *cures)
    assert by_hand == []
    assert after == (
        "import torch\n\nloader = DataLoader(data, num_workers=2, persistent_workers=True, prefetch_factor=4)\n"
        "model = Net()\nmodel.compile()\n"
    )


def test_what_cannot_be_parsed_or_read_is_left_to_a_person(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("def broken(:\n", encoding="utf-8")
    where = {"file": str(script), "line": 1, "column": 0, "end_line": 1, "end_column": 3}
    change = made([Applied(BY_NAME["workers"], 2, (where,))], script, tmp_path)
    assert change.diff == ""
    assert "cannot be parsed" in change.by_hand[0]
    gone = {**where, "file": str(tmp_path / "gone.py")}
    assert "No such file" in made([Applied(BY_NAME["workers"], 2, (gone,))], script, tmp_path).by_hand[0]


def test_variables_and_lines_by_hand(tmp_path: Path) -> None:
    change = made([Applied(BY_NAME["expandable-segments"], None, ())], None, tmp_path)
    assert change.by_hand == ["Before the job is started:\n    export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"]
    change = made([Applied(BY_NAME["garbage"], None, ())], None, tmp_path)
    assert "gc.freeze()" in change.by_hand[0]


def test_windows_line_ends_stay(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes(b"loader = DataLoader(data)\r\nx = 1\r\n")
    where = {"file": str(script), "line": 1, "column": 9, "end_line": 1, "end_column": 25}
    change = made([Applied(BY_NAME["persistent-workers"], None, (where,))], script, tmp_path)
    assert change.files[script][1] == "loader = DataLoader(data, persistent_workers=True)\r\nx = 1\r\n"


def test_a_function_gets_its_decorator_where_the_script_has_the_name(tmp_path: Path) -> None:
    source = "import jax\n\n\ndef update(layers):\n    return layers\n"
    script = tmp_path / "train.py"
    script.write_text(source, encoding="utf-8")
    at = {"file": str(script), "line": 4, "function": "update"}
    change = made([Applied(BY_NAME["jax-jit"], None, (at,))], script, tmp_path)
    assert change.files[script][1] == source.replace("def update", "@jax.jit\ndef update")
    script.write_text(source.replace("import jax", "from jax import numpy"), encoding="utf-8")
    change = made([Applied(BY_NAME["jax-jit"], None, (at,))], script, tmp_path)
    assert (change.files, "@jax.jit" in change.by_hand[0]) == ({}, True)


def test_arguments_may_be_what_a_place_says_of_itself(tmp_path: Path) -> None:
    source, call = "step = jax.jit(update)\n", "jax.jit(update)"
    script = tmp_path / "train.py"
    script.write_text(source, encoding="utf-8")
    at = place(source, call, file=str(script), given="(0, 1)")
    change = made([Applied(BY_NAME["jax-donation"], None, (at,))], script, tmp_path)
    assert change.files[script][1] == "step = jax.jit(update, donate_argnums=(0, 1))\n"


def test_a_dataset_prefetches_behind_the_statement_that_makes_it(tmp_path: Path) -> None:
    call = "read().batch(4)"
    source = f"import tensorflow as tf\n\ndataset = {call}\n"
    after, _ = patched(tmp_path, source, ("tf-prefetch", None, call))
    assert after == f"{source}dataset = dataset.prefetch(tf.data.AUTOTUNE)\n"
    after, by_hand = patched(tmp_path, f"dataset = {call}\n", ("tf-prefetch", None, call))
    assert (after, "prefetch" in by_hand[0]) == (f"dataset = {call}\n", True)
