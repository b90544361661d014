"""What is promised of jobs with known truth, and what following it achieves: the table of ``docs/truth.md``.

    python -m tests.newcomer.measure                 # writes docs/jobs.json; then make docs
    python -m tests.newcomer.measure slow_dataset    # one of them

Every cure of every job is in it.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kit.traces import REPOSITORY
from tests.newcomer.jobs import JOBS
from tests.newcomer.runs import Running, promised_ms

FILE = REPOSITORY / "docs" / "jobs.json"
TURNS = 3

Row = dict[str, Any]


def measured(name: str, folder: Path) -> list[Row]:
    """A row per cure; what is promised is the middle of three recordings."""
    job = JOBS[name]
    recordings = [Running(job, folder / f"{name}{number}") for number in range(3)]
    *_, (bare, *achieved) = recordings[0].timed(job.cures, TURNS)
    rows = []
    for cure, ms in zip(job.cures, achieved, strict=True):
        promises = sorted((promised_ms(one.told, cure) for one in recordings), key=lambda pair: pair[1])
        best, promised = promises[1]
        first = recordings[0].told.first == job.cause
        row: Row = {"job": name, "cause": job.cause, "found_first": first, "cure": cure.what}
        row["why_missed"] = cure.why_missed
        row |= {"bare_ms": round(bare, 2), "best_ms": round(best, 2), "promised_ms": round(promised, 2)}
        rows.append(row | {"achieved_ms": round(ms, 2)})
    return rows


def write(rows: list[Row]) -> None:
    """In place of what is written of the same jobs."""
    names = list(JOBS)
    old = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
    kept = [row for row in old if row["job"] not in {made["job"] for made in rows}]
    every = sorted([*kept, *rows], key=lambda row: names.index(row["job"]))
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, every)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for name in sys.argv[1:] or [name for name, job in JOBS.items() if job.cures]:
            write(measured(name, Path(made)))
