"""What recording costs a training step: ``python benchmarks/capture_overhead.py`` in a Python with PyTorch.

CPU time of the training thread per step, of a step of about a millisecond that is nothing but dispatch (the worst
case): off; armed but idle, by the hooks of ``stepscope run`` and by ``stepscope.profile`` with an ``annotate`` and a
``step`` in every iteration, beside a hook that does nothing; recording by both, with each option, beside
``torch.profiler`` with the same option. They record in turns, so that a machine that gets slower or faster meanwhile
affects them alike; ratios are medians over the turns, with the interval that holds the median in 19 of 20 runs. As
that is wide on a busy machine, the calls that end a step are timed by themselves too: all that is ours within a step.
stepscope is taken from the checkout around this file where it is not installed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).resolve().parents[1] / "src"))

import torch
from torch import nn

import stepscope
from stepscope.capture import hooks
from stepscope.capture.frameworks import make_backend
from stepscope.capture.options import Options
from stepscope.capture.recorder import Recorder

COLD, IDLE = 100, 3000
"""Steps while nothing records; the first do not count."""
WARM_UP, ACTIVE = 2, 12
NEVER = 10**9
Z_95 = 1.96
OPTIONS = {
    "plain": {},
    "shapes": {"shapes": True},
    "stacks": {"stacks": True},
    "memory": {"memory": True},
    "all three": {"shapes": True, "stacks": True, "memory": True},
}
THEIRS = {"shapes": "record_shapes", "stacks": "with_stack", "memory": "profile_memory"}

Step = Callable[[], None]


class Recorded(NamedTuple):
    """Medians of a window, ns: CPU time of a step, time in the call that ends it."""

    step: float
    ended: float


def make_step(layers: int) -> Step:
    """A training step of small layers."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(layers)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs = torch.randn(8, 16)

    def step() -> None:
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()

    return step


def cpu_ns(step: Step) -> int:
    """CPU time of this thread in one step."""
    began = time.thread_time_ns()
    step()
    return time.thread_time_ns() - began


def idle(step: Step, folder: str) -> dict[str, list[float]]:
    """What our code takes of each step while it is armed, ns, timed where it is called, between the job's own work.
    (The difference of two steps of a millisecond is noise at this scale.)"""
    clock = time.perf_counter_ns  # Reading the CPU time of a thread costs more than what is timed here.
    own = statistics.median([-clock() + clock() for _ in range(IDLE)])
    found: dict[str, list[float]] = {"nothing": [], "run": [], "session": []}
    recorder = Recorder(Options(out=folder, skip=NEVER), make_backend)
    hooks.into_torch(recorder, torch)
    installed = optimizer_hooks()
    ((key, ours),) = installed.items()
    # The same place with a hook that does nothing: what calling anything there costs.
    for kind, hook in (("nothing", lambda *_: None), ("run", ours)):

        def timed(*arguments: object, kind: str = kind, hook: Callable[..., object] = hook) -> None:
            began = clock()
            hook(*arguments)
            found[kind].append(clock() - began - own)

        installed[key] = timed
        for _ in range(IDLE):
            step()
    recorder._done()  # Nothing was recorded.
    del installed[key]
    with stepscope.profile(folder, schedule=stepscope.schedule(wait=NEVER)):
        for _ in range(IDLE):
            began = clock()
            range_ = stepscope.annotate("train_step")
            range_.__enter__()
            entered = clock() - began
            step()
            began = clock()
            range_.__exit__(None, None, None)
            stepscope.step()
            found["session"].append(entered + clock() - began - 2 * own)
    return {kind: times[COLD:] for kind, times in found.items()}


def optimizer_hooks() -> dict[int, Callable[..., object]]:
    """PyTorch's hooks of all optimizers."""
    found: dict[int, Callable[..., object]] = import_module("torch.optim.optimizer")._global_optimizer_post_hooks
    return found


def taking_turns(measures: list[Callable[[], Recorded]], rounds: int) -> list[list[Recorded]]:
    """What each measures in every round; each is as often the first as the last."""
    found: list[list[Recorded]] = [[] for _ in measures]
    for number in range(rounds):
        for place in range(len(measures)):
            which = (number + place) % len(measures)
            found[which].append(measures[which]())
    return found


class Timed:
    """A function that keeps how long its calls took, ns."""

    def __init__(self, called: Callable[..., object]) -> None:
        self.called = called
        self.times: list[int] = []

    def __call__(self, *arguments: object) -> None:
        began = time.perf_counter_ns()
        self.called(*arguments)
        self.times.append(time.perf_counter_ns() - began)


def ours(step: Step, folder: str, options: dict[str, bool]) -> Recorded:
    """A window of ``stepscope.profile``."""
    schedule = stepscope.schedule(wait=0, warmup=WARM_UP, active=ACTIVE)
    with stepscope.profile(folder, schedule=schedule, **{"stacks": False, **options}):
        return recorded(step, ended := Timed(stepscope.step), ended)


def run(step: Step, folder: str, options: dict[str, bool]) -> Recorded:
    """A window of the hooks of ``stepscope run``."""
    chosen = Options(out=folder, skip=1, settle=0, active=ACTIVE + 1, **{"stacks": False, **options})
    recorder = Recorder(chosen, make_backend)
    hooks.into_torch(recorder, torch)
    ((key, hook),) = optimizer_hooks().items()
    optimizer_hooks()[key] = ended = Timed(hook)
    try:
        return recorded(step, lambda: None, ended)
    finally:
        recorder.finish()
        del optimizer_hooks()[key]


def theirs(step: Step, options: dict[str, bool]) -> Recorded:
    """A window of ``torch.profiler``."""
    schedule = torch.profiler.schedule(wait=0, warmup=WARM_UP, active=ACTIVE, repeat=1)
    named = {THEIRS[name]: on for name, on in options.items()}
    with torch.profiler.profile(schedule=schedule, **named) as profiler:
        return recorded(step, ended := Timed(profiler.step), ended)


def recorded(step: Step, then: Callable[[], None], ended: Timed) -> Recorded:
    """The median step of those that are recorded, and of the calls that end one; the first and last pay for start and
    stop."""

    def marked() -> None:
        step()
        then()

    steps = [cpu_ns(marked) for _ in range(WARM_UP + ACTIVE)]
    kept = slice(WARM_UP + 1, -1)
    return Recorded(statistics.median(steps[kept]), statistics.median(ended.times[kept]))


def against(found: list[Recorded], base: list[Recorded]) -> str:
    """The median of the ratios within each round, less one, and its interval; and of the calls alone."""
    ratios = sorted(100 * (one.step / other.step - 1) for one, other in zip(found, base, strict=True))
    more = statistics.median(each.ended for each in found) - statistics.median(each.ended for each in base)
    calls = f"calls alone {100 * more / statistics.median(each.step for each in base):+.2f} %"
    away = math.ceil(Z_95 * math.sqrt(len(ratios)) / 2)  # Order statistics, whatever the distribution.
    low, high = max(0, len(ratios) // 2 - away), min(len(ratios) - 1, len(ratios) // 2 + away)
    return f"{statistics.median(ratios):+5.1f} % ({ratios[low]:+.1f} to {ratios[high]:+.1f}; {calls})"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=22, help="layers of the model: 22 take about a millisecond")
    parser.add_argument("--rounds", type=int, default=60, help="windows per option")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    step = make_step(chosen.layers)
    for _ in range(200):
        step()
    with tempfile.TemporaryDirectory() as folder:
        off = statistics.median(cpu_ns(step) for _ in range(IDLE))
        print(f"PyTorch {torch.__version__}; CPU time per step, off: {off / 1e3:,.0f} µs")
        for kind, times in idle(step, folder).items():
            low, took, high = statistics.quantiles(times, n=4)
            print(f"armed, {kind:10} {took / 1e3:5.2f} µs, {100 * took / off:5.2f} % (half of the steps: "
                  f"{low / 1e3:.2f} to {high / 1e3:.2f} µs)")  # fmt: skip
        for name, options in OPTIONS.items():
            other, session, hooked = taking_turns(
                [
                    lambda options=options: theirs(step, options),
                    lambda options=options: ours(step, folder, options),
                    lambda options=options: run(step, folder, options),
                ],
                chosen.rounds,
            )
            times = statistics.median(each.step for each in other) / off
            print(f"recording, {name:10} torch.profiler {times:5.2f} x; against it "
                  f"session {against(session, other)}, run {against(hooked, other)}")  # fmt: skip


if __name__ == "__main__":
    main()
