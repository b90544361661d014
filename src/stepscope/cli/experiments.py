"""What an experiment of ``stepscope run`` has shown, against the same command's last run without it."""

from __future__ import annotations

from stepscope.capture import experiment
from stepscope.capture.results import Recording
from stepscope.errors import StepscopeError
from stepscope.units import format_ns

_NOISE = 0.05
"""Steps of two runs that differ by less than this share are alike: medians of five steps vary by some percent."""
_REMAINS = "Where batches are copied to a device, those copies remain in both runs."
_REFUSED = {
    experiment.SYNTHETIC: "no PyTorch DataLoader and no tf.data dataset was iterated; JAX has no input pipeline of its "
    "own, and PyTorch/XLA takes its batches from a DataLoader",
    experiment.PINNED: "no PyTorch DataLoader was made; JAX, TensorFlow and PyTorch/XLA pin memory by themselves",
    experiment.WORKERS: "no PyTorch DataLoader was made; for tf.data it is num_parallel_calls=tf.data.AUTOTUNE, and "
    "JAX has no loader",
    experiment.CALLBACKS: "no Keras model was fitted; callbacks of other libraries are objects of the script",
}


def outcome(changed: Recording, all_runs: list[Recording]) -> list[str]:
    """Sentences for people; ``all_runs`` is what the folder holds, of this run and others."""
    told = changed.facts.get("experiment") or {}
    asked = str(told.get("name") or changed.facts["options"]["experiment"])
    name, _ = experiment.parsed(asked)
    if told.get("refused"):
        return [f"experiment {asked}: not made: {told['refused']}"]
    if not told.get("applied"):
        return [f"experiment {asked}: nothing was changed: {_REFUSED[name]}"]
    before = _baseline(changed, all_runs)
    new = _step_ns(changed)
    if new is None:
        return [f"experiment {asked}: the steps were too few to be timed"]
    if before is None:
        return [f"experiment {asked}: a step took {format_ns(new)}; to compare, run once without --experiment"]
    old = _step_ns(before) or 0
    about_input = _of_input(before, old - new) if name == experiment.SYNTHETIC else []
    return [f"experiment {asked}: {_compared(old, new)}", *about_input]


def _compared(old: int, new: int) -> str:
    if abs(old - new) < _NOISE * old:
        return f"a step took {format_ns(new)}, as before ({format_ns(old)})"
    change = f"{format_ns(abs(old - new))} {'less' if new < old else 'more'}"
    return f"a step took {format_ns(new)} instead of {format_ns(old)}, {change}"


def _of_input(before: Recording, gained: int) -> list[str]:
    """How much of what the diagnosis books to input was gained."""
    booked = _input_ns(before)
    if booked is None:
        return [_REMAINS]
    if booked == 0:
        return ["The diagnosis without the experiment books nothing to input.", _REMAINS]
    real = min(max(gained, 0), booked)
    return [f"Of {format_ns(booked)} per step that the diagnosis counts as input, {format_ns(real)} is real.", _REMAINS]


def _baseline(changed: Recording, all_runs: list[Recording]) -> Recording | None:
    """The last recording of the same command and rank without an experiment."""
    alike = [
        each
        for each in all_runs
        if not (each.facts.get("options") or {}).get("experiment")
        and each.facts.get("command") == changed.facts.get("command")
        and each.rank == changed.rank
        and _step_ns(each) is not None
    ]
    return max(alike, key=lambda each: int(each.facts["started_ns"]), default=None)


def _step_ns(run: Recording) -> int | None:
    """What a step took while it was not recorded."""
    step_ns = (run.facts.get("step_ns") or {}).get("unrecorded")
    return step_ns if isinstance(step_ns, int) else None


def _input_ns(run: Recording) -> int | None:
    """What the diagnosis books to input per step; None where there is no profile to ask."""
    from stepscope import pipeline

    if not run.profiles:
        return None
    try:
        document = pipeline.open_profile(run.profiles[-1]).brief()
    except StepscopeError:
        return None
    used = {step["index"] for step in document["steps"] if step["complete"]}
    parts = [row["parts"].get("input", 0) for row in document["accounting"] if row["step"] in used]
    return sum(parts) // len(parts) if parts else None
