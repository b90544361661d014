"""What is to be recorded, and the bounds of it: passed from ``stepscope run`` to the job as JSON in a variable."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

VARIABLE = "STEPSCOPE_CAPTURE"
"""The environment variable that carries the options into every process of a job."""


@dataclass(frozen=True)
class Options:
    """Options of one recording; times in seconds, sizes in bytes."""

    out: str = "stepscope"
    """Folder of profiles and manifests."""
    skip: int = 5
    """Steps that are never recorded: they compile, allocate and fill caches."""
    settle: int = 50
    """Steps after which recording begins even where step time has not settled."""
    active: int = 20
    """Steps recorded, where they are short."""
    enough: int = 6
    """Steps recorded in any case: diagnosis leaves out the first and the last."""
    budget: float = 2.0
    """Beyond ``enough`` steps the recording goes on for no longer than this, in seconds: a profile grows by some ten
    megabytes a second where Python's stacks are recorded, before it is compressed."""
    after: int = 10
    """Steps timed, but not recorded, after the profile is written."""
    stacks: bool = True
    shapes: bool = False
    memory: bool = False
    tensorboard: bool = False
    """XPlane files go where TensorBoard looks for them."""
    max_seconds: float = 60.0
    """A window that lasts this long ends at the next step, or at once after ``HARD`` times as long."""
    max_bytes: int = 2 << 30
    """A profile larger than this is not kept."""
    max_memory: int = 4 << 30
    """A job that grows by this much while it is recorded is recorded no further."""
    experiment: str | None = None
    cures: tuple[str, ...] = ()
    """What ``stepscope try`` has the job do otherwise (``cures/``)."""
    trial: bool = False
    """Steps are timed and nothing is recorded: ``after`` of them, from step ``skip`` on."""
    seed: int | None = None
    """What random numbers of a trial begin with."""
    watch_value: str | None = None
    """The variable of the loop whose value is compared; None: what ``backward`` is called on."""
    notes_writes: bool = False
    """Whether files that the job writes are noted."""
    watch: float = 0.0
    """Steps' time between two windows, in seconds; 0 records one window and no more."""
    watch_bytes: int = 1 << 30
    """Of several windows' profiles the oldest are removed beyond this."""


HARD = 5
"""A window without a complete step is extended up to this many times ``max_seconds``."""
SETTLED_STEPS = 3
SETTLED_SPREAD = 0.25
"""Step time has settled when this many steps in a row differ by no more than this share from their median: start-up
effects are several times a step, while steps of real loops vary by some percent."""
RANKS_SKIP = 10
"""Ranks begin together, so not when each finds its own step time settled but at this step, if ``skip`` is not later."""
SETTLED_HALF = 4
"""So has it when the means of this many steps and of as many before them do so: loaders with several workers give their
batches in bursts."""
PROFILER_WARM_UP = 1
"""Steps that the profiler runs without keeping anything: its own start is slow."""
BACKLOG_SHARE, MOST_BACKLOG = 0.5, 200
"""A call for an answer that took less than this share of the last ones did not wait for a question as they did; so many
of those are left out while a profiler starts and stops. Chosen."""


def fewest_steps(options: Options, world: int | None = None) -> int:
    """Steps that a job of so many ranks must run for a window of enough steps."""
    skip = options.skip if (world or 1) == 1 else max(options.skip, RANKS_SKIP)
    return skip + PROFILER_WARM_UP + min(options.enough, options.active)


def to_text(options: Options) -> str:
    """For the environment variable."""
    return json.dumps(asdict(options))


def from_environment(environment: Mapping[str, str] = os.environ) -> Options | None:
    """The options of the run this process is part of; None outside of a run. Unknown keys are a newer tool's."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    given: dict[str, Any] = json.loads(text)
    known = {field.name for field in fields(Options)}
    given["cures"] = tuple(given.get("cures", ()))
    return Options(**{key: value for key, value in given.items() if key in known})
