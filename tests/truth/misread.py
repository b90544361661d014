"""What is said of profiles that are plausible but wrong: the table of ``docs/truth.md``.

python -m tests.truth.misread    # writes docs/misread.json; then make docs
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Diagnosis
from tests.kit.traces import REPOSITORY, traces_folder
from tests.kit.wrong import WAYS, made_wrong
from tests.support import planted_file, trace_of_bytes

FILE = REPOSITORY / "docs" / "misread.json"
REAL = ("v100_resnet50_workers0", "mi300_resnet_checkpointing_rank0_of_8")
SIMULATED = ("healthy", "input_bound", "sync_bound", "launch_bound", "copy_staging")
SAYS = ("profile_contradicts_itself", "profile_sampled", "profile_device_ends_early", "profile_device_late")
"""Notices with which costs are withheld."""
TELLS = ("profile_device_ends_early",)
"""And those that say what is wrong where the rest is right."""
STEP_WITHIN = 0.06
"""A device whose clock is 5 % off cannot be told from one that is that much slower."""
COST_WITHIN = 0.10


@cache
def profile(name: str) -> bytes:
    if name in SIMULATED:
        return planted_file(name)
    return (traces_folder() / "kineto" / f"{name}.json.gz").read_bytes()


def told(data: bytes) -> tuple[Diagnosis, int]:
    facts = analyse(trace_of_bytes(data))
    return diagnose(facts), facts.median_step_ns or 0


@cache
def right(name: str) -> tuple[Diagnosis, int]:
    return told(profile(name))


def outcome(name: str, way: str) -> str:
    """Whether what is said is withheld, right, or wrong."""
    (good, step), (found, its_step) = right(name), told(made_wrong(profile(name), way))
    codes = {notice.code for notice in found.notices}
    if codes & {*SAYS} and all(one.cost_ns_per_step is None for one in found.findings):
        return "withheld"
    first, its_first = (diagnosis.findings[:1] for diagnosis in (good, found))
    same = found.bottleneck == good.bottleneck and abs(its_step - step) <= STEP_WITHIN * step
    same &= [one.rule for one in first] == [one.rule for one in its_first]
    for one, other in zip(first, its_first, strict=False):
        cost, other_cost = one.cost_ns_per_step or 0, other.cost_ns_per_step or 0
        same &= abs(cost - other_cost) <= COST_WITHIN * cost
    if not same:
        return "wrong"
    return "right, said" if codes & {*TELLS} else "right"


def rows(make: Callable[[str, str], str] = outcome) -> list[dict[str, Any]]:
    return [{"way": way, **{name: make(name, way) for name in (*SIMULATED, *REAL)}} for way in WAYS]


if __name__ == "__main__":
    FILE.write_text(json.dumps(rows(), indent=1) + "\n", encoding="utf-8")
