"""How a report says that its cures can be tried: the same command everywhere, ready to be pasted."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.report import markdown, terminal
from stepscope.web.words import words

EXAMPLE = Path(__file__).parents[2] / "examples" / "profiles" / "cpu_input_bound.json.gz"
COMMAND = ["a script/train.py", "--name=it's a b", *(f"--option-{number}" for number in range(12))]


def _document(folder: Path, **facts: Any) -> Any:
    """The example's report, beside a manifest."""
    profile = folder / "a.json.gz"
    profile.write_bytes(EXAMPLE.read_bytes())
    manifest = {"schema": "stepscope.capture/1", "files": [{"path": profile.name}], **facts}
    (folder / "a.stepscope.json").write_text(json.dumps(manifest))
    return stepscope.open(profile).document()


@pytest.mark.parametrize("verbose", [False, True])
def test_the_command_of_the_run_stands_on_a_line_of_its_own_however_long(tmp_path: Path, verbose: bool) -> None:
    document = _document(tmp_path, command=COMMAND, world_size=None)
    pasted = f"stepscope try {shlex.join(COMMAND)}"
    assert len(pasted) > 100
    lines = terminal.render(document, width=80, verbose=verbose).splitlines()
    at = lines.index(f"    {pasted}")
    assert lines[at - 1] == "Prove it: this puts a cure of 1 into the job and times it."
    assert f"`{pasted}`" in markdown.render(document, verbose=verbose)


def test_pages_terminal_and_markdown_have_the_same_command(tmp_path: Path) -> None:
    document = _document(tmp_path, command=["train.py", "a b"])
    said = [one["proof"] for one in words(document)["findings"].values() if one["proof"]]
    assert said
    assert all(one.startswith("stepscope try --cure ") and one.endswith(" train.py 'a b'") for one in said)
    assert "    stepscope try train.py 'a b'" in terminal.render(document).splitlines()


@pytest.mark.parametrize(
    "facts",
    [{}, {"command": []}, {"command": "train.py"}, {"command": ["train.py"], "world_size": 4}],
    ids=["none", "empty", "no list", "a rank"],
)
def test_without_the_jobs_command_its_place_is_named(tmp_path: Path, facts: dict[str, Any]) -> None:
    document = _document(tmp_path, **facts)
    told = "Prove it: stepscope try COMMAND, with the job's own command, puts a cure of 1 into it and times it."
    assert told in terminal.render(document, width=120).splitlines()
