"""Runs jobs as a user would, and times them bare, in turns with their cures."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import stepscope
from tests.captures.environments import framework_python
from tests.newcomer.jobs import SCRIPTS, Cure, Job

try:
    import fcntl
except ImportError:  # Windows: tests run in one process there
    fcntl = None  # type: ignore[assignment]

SOURCES = Path(stepscope.__file__).parents[1]
TIMEOUT_S = 300
_STEP = re.compile(r"step_ms ([0-9.]+)")
_WORKERS = re.compile(r"num_workers=([1-9]\d*)")


@dataclass(frozen=True)
class Told:
    """What ``stepscope run`` said of a job."""

    job: Job
    document: dict[str, Any]
    text: str
    """The terminal's."""

    def finding(self, rule: str | None = None) -> dict[str, Any]:
        """The finding of a rule, or of the job's cause; KeyError where there is none."""
        wanted = rule or self.job.cause
        found = next((each for each in self.document["findings"] if each["rule"] == wanted), None)
        if found is None:
            raise KeyError(f"no finding of {wanted}: {[each['rule'] for each in self.document['findings']]}")
        return found

    @property
    def first(self) -> str | None:
        """The rule of what is to be done first; where nothing says what it saves, of what is told first."""
        rules = {each["id"]: each["rule"] for each in self.document["findings"]}
        return next((rules[one] for one in (*self.document["plan"], *rules)), None)

    @property
    def lines(self) -> list[str]:
        """The lines of the script that the cause's places name, longest first."""
        script = (SCRIPTS / self.job.script).read_text(encoding="utf-8").splitlines()
        places = [place for place in self.finding()["where"] if place and place["line"] is not None]
        mine = [place["line"] for place in places if Path(place["file"] or "").name == self.job.script]
        return [script[line - 1] for line in mine]


class Running:
    """One job: recorded once, timed as often as is asked for."""

    def __init__(self, job: Job, folder: Path) -> None:
        self.job, self._folder = job, folder
        self._python = framework_python(job.environment)

    @cached_property
    def told(self) -> Told:
        """What ``stepscope run`` says of it."""
        out = self._folder / "recorded"
        command = [sys.executable, "-m", "stepscope", "run", "-o", out, *self.job.options, "--", *self._command()]
        with alone():
            ran = self._run(command, self.job.status)
        diagnose = [sys.executable, "-m", "stepscope", "diagnose", out / "run-1", "--format", "json"]
        return Told(self.job, json.loads(self._run(diagnose, 0).stdout), ran.stderr)

    def timed(self, cures: tuple[Cure, ...], times: int) -> Iterator[list[float]]:
        """Milliseconds of a step as it is and with each cure, in turns there and back: after each, medians so far."""
        sets = [(), *(self._followed(cure) for cure in cures)]
        found: list[list[float]] = [[] for _ in sets]
        for turn in range(times):
            with alone():
                for at in range(len(sets))[:: -1 if turn % 2 else 1]:
                    found[at].append(self._step_ms(sets[at]))
            yield [median(each) for each in found]

    def _followed(self, cure: Cure) -> tuple[str, ...]:
        if "{workers}" not in cure.arguments:
            return cure.arguments
        named = _WORKERS.search(self.told.finding(cure.rule)["fix"])
        assert named, f"no number of workers in: {self.told.finding(cure.rule)['fix']}"
        return tuple(argument.replace("{workers}", named[1]) for argument in cure.arguments)

    def _step_ms(self, arguments: tuple[str, ...]) -> float:
        ran = self._run([*self._command(), *arguments], self.job.status)
        return float(_STEP.findall(ran.stdout)[-1])

    def _command(self) -> list[Any]:
        return [self._python, "-W", "ignore", *self.job.launcher, SCRIPTS / self.job.script, *self.job.arguments]

    def _run(self, command: list[Any], status: int) -> subprocess.CompletedProcess[str]:
        self._folder.mkdir(parents=True, exist_ok=True)
        ran = subprocess.run(
            list(map(str, command)),
            env=os.environ | {"PYTHONPATH": str(SOURCES), "CUDA_VISIBLE_DEVICES": ""},
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
            start_new_session=True,
            preexec_fn=ahead_of_others if os.name == "posix" else None,
        )
        assert ran.returncode == status, f"{command} failed:\n{ran.stderr[-4000:]}"
        return ran


def promised_ms(told: Told, cure: Cure) -> tuple[float, float]:
    """Between which times a step is promised to be with a cure, in ms; twice the same where it is no range, and as it
    is where there is no finding."""
    step = unrecorded_ns(told)
    try:
        promise = finding = told.finding(cure.rule)
    except KeyError:
        return step / 1e6, step / 1e6
    if cure.option is not None:
        promise = next(option for option in finding["options"] if cure.option in option["title"])
    upper, best = promise["predicted_step_ns"], promise["best_step_ns"]
    lower = upper if best is None else best
    return (step - cure.share * (step - lower)) / 1e6, (step - cure.share * (step - upper)) / 1e6


def unrecorded_ns(told: Told) -> float:
    """What a step takes without recording, as the report tells; what the recorded ones take where it does not."""
    summary = told.document["summary"]
    return float(summary["unrecorded_step_ns"] or summary["step_time_ns"]["mean"])


@contextmanager
def alone() -> Iterator[None]:
    """Of all processes that run tests here one times at once."""
    with (Path(tempfile.gettempdir()) / "stepscope-timed.lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def ahead_of_others() -> None:
    """Where this may be done: the job goes before whatever else the machine does, so that times are its own."""
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text("-19", encoding="ascii")
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -5)
