"""The command line of ``stepscope try``, as far as no job runs."""

from __future__ import annotations

import json

import pytest

from stepscope.capture.cures import CURES
from stepscope.cli import main


def test_every_cure_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["try", "--list"]) == 0
    told = capsys.readouterr().out
    assert all(f"{cure.name}=N: {cure.title}" in told or f"{cure.name}: {cure.title}" in told for cure in CURES)
    assert main(["try", "--list", "--format", "json"]) == 0
    assert [each["cure"] for each in json.loads(capsys.readouterr().out)] == [cure.name for cure in CURES]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name the command to try"),
        (["--budget", "soon", "train.py"], "90s, 10m or 1h"),
        (["--scratch", "x", "train.py"], "go together"),
        (["--format", "html", "train.py"], "-o try.html"),
        (["--cure", "workrs", "train.py"], "there is no cure 'workrs'"),
        (["--nothing", "train.py"], "no option --nothing"),
    ],
)
def test_wrong_usage_is_told_before_anything_runs(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["try", *arguments]) == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert "recording" not in told
