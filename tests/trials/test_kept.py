"""Files that a job writes are found by every trial as they were, and left so."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.errors import UsageError
from stepscope.trials.kept import Kept


def test_each_trial_begins_with_the_files_as_they_were(tmp_path: Path) -> None:
    saved, log = tmp_path / "checkpoints", tmp_path / "log.txt"
    (saved / "old").mkdir(parents=True)
    (saved / "old" / "model.pt").write_text("one", encoding="utf-8")
    scratch = tmp_path / "scratch"
    kept = Kept(scratch, [saved, log])
    for name in ("first", "second"):
        with kept.trial(name):
            assert (saved / "old" / "model.pt").read_text(encoding="utf-8") == "one"
            assert not log.exists()
            (saved / "old" / "model.pt").write_text(name, encoding="utf-8")
            (saved / "new.pt").write_text(name, encoding="utf-8")
            log.write_text(name, encoding="utf-8")
    assert (saved / "old" / "model.pt").read_text(encoding="utf-8") == "one"
    assert not (saved / "new.pt").exists()
    assert not log.exists()
    assert (scratch / "first" / "0-checkpoints" / "new.pt").read_text(encoding="utf-8") == "first"
    assert (scratch / "second" / "1-log.txt").read_text(encoding="utf-8") == "second"


def test_they_are_put_back_where_a_trial_is_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("mine", encoding="utf-8")
    kept = Kept(tmp_path / "scratch", [log])

    def interrupted() -> None:
        with kept.trial("one"):
            log.write_text("theirs", encoding="utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert log.read_text(encoding="utf-8") == "mine"


def test_a_scratch_folder_within_what_is_kept_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--scratch"):
        Kept(tmp_path / "saved" / "scratch", [tmp_path / "saved"])
