"""What cures save of real jobs, predicted and measured: the table of ``docs/truth.md``, every pair of them.

python -m tests.trials.measure                         # writes docs/trials.json; then make docs: an hour
python -m tests.trials.measure --budget 1m loader      # one of them, in less time
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.captures.environments import framework_python
from tests.kit.traces import REPOSITORY
from tests.newcomer.runs import alone

FILE = REPOSITORY / "docs" / "trials.json"
SCRIPTS, NEWCOMERS = (REPOSITORY / "tests" / name / "scripts" for name in ("trials", "newcomer"))


@dataclass(frozen=True)
class Job:
    """A script, and what starts it."""

    script: Path
    environment: str = "torch"
    launcher: tuple[str, ...] = ()
    cures: tuple[str, ...] = ()
    """Tried whatever is found; none: what the findings call for."""
    why_missed: dict[str, str] = field(default_factory=dict)
    """Of cures that do not keep what was promised, as far as it is known."""


JOBS = {
    "loader": Job(SCRIPTS / "loader.py"),
    "too_many_workers": Job(SCRIPTS / "too_many_workers.py", cures=("workers",)),
    "threads": Job(SCRIPTS / "threads.py"),
    "chain": Job(SCRIPTS / "chain.py"),
    "varying": Job(SCRIPTS / "varying.py"),
    "garbage": Job(SCRIPTS / "garbage.py", cures=("garbage",)),
    "healthy": Job(SCRIPTS / "healthy.py"),
    "simulator": Job(SCRIPTS / "simulator.py"),
    "accumulated": Job(
        SCRIPTS / "accumulated.py", cures=("no-sync",),
        launcher=("-m", "torch.distributed.run", "--nproc-per-node", "2"),
    ),
    "jax_loop": Job(SCRIPTS / "jax_loop.py", environment="jax"),
    "keras_fit": Job(SCRIPTS / "keras_fit.py", environment="tensorflow"),
    "tf_loop": Job(SCRIPTS / "tf_loop.py", environment="tensorflow"),
    "slow_dataset": Job(NEWCOMERS / "slow_dataset.py"),
    "hf_trainer": Job(NEWCOMERS / "hf_trainer.py", environment="integrations"),
    "lightning_callback": Job(NEWCOMERS / "lightning_callback.py", environment="integrations"),
    "slow_rank": Job(
        NEWCOMERS / "slow_rank.py", launcher=("-m", "torch.distributed.run", "--nproc-per-node", "2"),
        cures=("bucket-size=50", "static-graph"),
    ),
}  # fmt: skip


def measured(name: str, budget: str, folder: Path) -> list[dict[str, Any]]:
    """A row per cure that was measured. Raises CalledProcessError where the job could not be tried."""
    job = JOBS[name]
    started = [str(framework_python(job.environment)), "-W", "ignore", *job.launcher, str(job.script)]
    asked = [argument for cure in job.cures for argument in ("--cure", cure)]
    command = [sys.executable, "-m", "stepscope", "try", "--budget", budget, "--format", "json", "--writes-again"]
    with alone():
        ran = subprocess.run(
            [*command, *asked, "--", *started],
            cwd=folder, env=os.environ | {"CUDA_VISIBLE_DEVICES": ""}, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    document = json.loads(ran.stdout)
    rows = [*document["trials"], *filter(None, [document["together"]])]
    return [
        {"job": name, "cure": row["name"], "verdict": row["verdict"], "loss": row["values"]["outcome"]}
        | {"predicted": row["predicted"], "measured": row["measured"], "kept": row["name"] in document["keep"]}
        | {"why_missed": job.why_missed.get(row["name"], "")}
        for row in rows
        if row["measured"] is not None
    ]


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """In place of what is written of the same job."""
    old = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
    kept = [row for row in old if row["job"] != name]
    every = sorted([*kept, *rows], key=lambda row: list(JOBS).index(row["job"]))
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, every)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("jobs", nargs="*", metavar="JOB")
    options.add_argument("--budget", default="4m", help="time for each job")
    asked = options.parse_args()
    failed = []
    for name in asked.jobs or JOBS:
        with tempfile.TemporaryDirectory() as made:
            try:
                write(name, measured(name, asked.budget, Path(made)))
            except subprocess.CalledProcessError:
                failed.append(name)
    if failed:
        sys.exit(f"could not be tried: {', '.join(failed)}")
