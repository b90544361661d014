"""No file of the repository names a folder of the machine it was written on."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

# Roots of personal and temporary folders; a path needs at least one more component ("/data" alone is prose).
LOCAL_PATH = re.compile(r"(?<![\w.:/~}>-])/(?:home|Users|root|tmp|mnt|scratch|work\w*|builds?|runner|private)/[\w.~-]+")

# Files that may name such a path, with the reason.
ALLOWED = {
    "tests/guards/test_local_paths.py": "examples of what is refused",
    "tests/analysis/test_where.py": "folders of files that compilers write",
}

# Paths of made-up people, in tests of how reports write paths, and those that real profiles of others hold.
MADE_UP = {"/home/ana", "/workspace/conv-jax"}


def test_no_file_names_a_local_path(root: Path, repository_files: list[Path]) -> None:
    found = {}
    for path in repository_files:
        named = set(LOCAL_PATH.findall(text_of(root / path))) - MADE_UP
        if named and path.as_posix() not in ALLOWED:
            found[path.as_posix()] = sorted(named)
    assert found == {}


def text_of(path: Path) -> str:
    """The text of a file, decompressed where it is gzip."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return data.decode("utf-8", errors="replace")


def test_what_is_a_local_path() -> None:
    refused = ["open('/home/ann/x.py')", "see /tmp/out.json", '"/Users/ann/run"', "cd /workspace/repo"]
    fine = [
        "https://host/home/page",
        "/job:localhost/task:0",
        "/usr/bin/python3",
        "src/home/x",
        "and /tmp alone",
    ]
    assert all(LOCAL_PATH.search(text) for text in refused)
    assert not any(LOCAL_PATH.search(text) for text in fine)
