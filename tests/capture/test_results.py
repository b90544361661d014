"""The manifest of a profile among those of thousands of processes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from stepscope.capture import results
from stepscope.capture.results import manifest_of

RANKS = 600


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What many ranks left: each a manifest whose name has the time at which it began, and a profile with a later."""
    for rank in range(RANKS):
        listed = [{"path": f"host.rank{rank}.{900 + rank}.1700000000000000{rank:03}.pt.trace.json.gz"}]
        facts = {"schema": results.SCHEMA, "files": listed, "rank": rank}
        path = tmp_path / f"host.rank{rank}.{900 + rank}.16999999999{rank:08}{results.ENDING}"
        path.write_text(json.dumps(facts))
    return tmp_path


@pytest.mark.parametrize("is_settled", [True, False])
def test_each_profile_has_its_own_and_no_other_is_read(
    folder: Path, is_settled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_settled:
        os.utime(folder, (1, 1))
    reads, read = list[str](), results._read

    def counted(path: Path) -> dict[str, Any] | None:
        reads.append(path.name)
        return read(path)

    monkeypatch.setattr(results, "_read", counted)
    for rank in (0, 7, 70, 333, RANKS - 1):
        found = manifest_of(folder / f"host.rank{rank}.{900 + rank}.1700000000000000{rank:03}.pt.trace.json.gz")
        assert found is not None
        assert found["rank"] == rank
    assert len(reads) == 5


def test_a_manifest_that_is_new_is_seen_at_once(folder: Path) -> None:
    assert manifest_of(folder / "another.json") is None
    facts = {"schema": results.SCHEMA, "files": [{"path": "another.json"}]}
    (folder / f"another{results.ENDING}").write_text(json.dumps(facts))
    assert manifest_of(folder / "another.json") == facts


def test_a_name_that_no_folder_can_have_has_no_manifest() -> None:
    assert manifest_of(Path("a\0b") / "trace.json") is None
