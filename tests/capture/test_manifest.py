"""What a manifest says of its process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.capture import manifest

SAYS = f"""
import json, sys
sys.path.insert(0, {str(Path(manifest.__file__).parents[2])!r})
from stepscope.capture.manifest import command
print(json.dumps(command()))
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train.py", "--name", "a b"], ["train.py", "--name", "a b"]),
        (["-m", "pkg.train", "-x"], ["-m", "pkg.train", "-x"]),
        (["-m", "pkg"], ["-m", "pkg"]),
        (["pkg", "-x"], ["pkg", "-x"]),
    ],
)
def test_a_command_is_as_it_was_given(words: list[str], said: list[str], tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    for name in ("train.py", "pkg/__init__.py", "pkg/train.py", "pkg/__main__.py"):
        (tmp_path / name).write_text("" if name.endswith("__init__.py") else SAYS)
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == said
