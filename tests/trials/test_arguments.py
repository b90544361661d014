"""The batch size on a job's command line."""

from __future__ import annotations

import pytest

from stepscope.errors import UsageError
from stepscope.trials.arguments import batch_sizes


@pytest.mark.parametrize(
    ("words", "name", "largest"),
    [
        (["train.py", "--batch-size", "6", "--epochs", "2"], "--batch-size", "train.py --batch-size 48 --epochs 2"),
        (["train.py", "--batch-size=6"], "--batch-size", "train.py --batch-size=48"),
        (["train.py", "data.batch=1"], "data.batch", "train.py data.batch=8"),
    ],
)
def test_the_number_is_found_in_each_way_of_writing_it(words: list[str], name: str, largest: str) -> None:
    sizes = batch_sizes(words, name)
    given = int(words[2]) if words[1] == name else int(words[1].partition("=")[2])
    assert [size.value for size in sizes] == [n for n in (given // 2, 2 * given, 4 * given, 8 * given) if n]
    assert " ".join(sizes[-1].put_into(words)) == largest
    assert {size.given for size in sizes} == {given}


@pytest.mark.parametrize("words", [["train.py"], ["train.py", "--batch-size"], ["train.py", "--batch-size", "auto"]])
def test_a_command_without_the_number_is_told_how_to_give_it(words: list[str]) -> None:
    with pytest.raises(UsageError, match="--batch-size"):
        batch_sizes(words, "--batch-size")
