"""What recording costs a training step: ``python benchmarks/capture_overhead.py`` in a Python with PyTorch.

CPU time of the training thread per step, of a step of about a millisecond that is nothing but dispatch (the worst
case): off; armed but idle, by the hooks of ``stepscope run`` and by ``stepscope.profile`` with an ``annotate`` and a
``step`` in every iteration; recording, with each option, beside ``torch.profiler`` with the same option. Both record in
turns, so that a machine that gets slower or faster meanwhile affects them alike; ratios are medians over the turns.
stepscope is taken from the checkout around this file where it is not installed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

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
OPTIONS = {
    "plain": {},
    "shapes": {"shapes": True},
    "stacks": {"stacks": True},
    "memory": {"memory": True},
    "all three": {"shapes": True, "stacks": True, "memory": True},
}
THEIRS = {"shapes": "record_shapes", "stacks": "with_stack", "memory": "profile_memory"}

Step = Callable[[], None]


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


def idle(step: Step, folder: str) -> dict[str, float]:
    """What our code takes of a step while it is armed, ns: the median, timed where it is called, between the job's own
    work. (The difference of two steps of a millisecond is noise at this scale.)"""
    clock = time.perf_counter_ns  # Reading the CPU time of a thread costs more than what is timed here.
    own = statistics.median([-clock() + clock() for _ in range(IDLE)])
    found: dict[str, list[float]] = {"run": [], "session": []}
    recorder = Recorder(Options(out=folder, skip=NEVER), make_backend)
    hooks.into_torch(recorder, torch)
    installed = import_module("torch.optim.optimizer")._global_optimizer_post_hooks
    ((key, hook),) = installed.items()

    def timed(*arguments: object) -> None:
        began = clock()
        hook(*arguments)
        found["run"].append(clock() - began - own)

    installed[key] = timed
    for _ in range(IDLE):
        step()
    recorder._done()  # Takes the hooks out; nothing was recorded.
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
    return {kind: statistics.median(times[COLD:]) for kind, times in found.items()}


def taking_turns(measures: list[Callable[[], float]], rounds: int) -> list[list[float]]:
    """What each measures in every round; each is as often the first as the last."""
    found: list[list[float]] = [[] for _ in measures]
    for number in range(rounds):
        for place in range(len(measures)):
            which = (number + place) % len(measures)
            found[which].append(measures[which]())
    return found


def ours(step: Step, folder: str, options: dict[str, bool]) -> float:
    """The median recorded step, ns, with ``stepscope.profile``."""
    schedule = stepscope.schedule(wait=0, warmup=WARM_UP, active=ACTIVE)
    with stepscope.profile(folder, schedule=schedule, **{"stacks": False, **options}):
        return recorded(step, stepscope.step)


def theirs(step: Step, options: dict[str, bool]) -> float:
    """The same with ``torch.profiler``."""
    schedule = torch.profiler.schedule(wait=0, warmup=WARM_UP, active=ACTIVE, repeat=1)
    named = {THEIRS[name]: on for name, on in options.items()}
    with torch.profiler.profile(schedule=schedule, **named) as profiler:
        return recorded(step, profiler.step)


def recorded(step: Step, ended: Callable[[], None]) -> float:
    """The median step, with its marker, of those that are recorded; the first and last pay for start and stop."""

    def marked() -> None:
        step()
        ended()

    return statistics.median([cpu_ns(marked) for _ in range(WARM_UP + ACTIVE)][WARM_UP + 1 : -1])


def against(found: list[float], base: list[float]) -> float:
    """The median of the ratios within each round."""
    return statistics.median(one / other for one, other in zip(found, base, strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=22, help="layers of the model: 22 take about a millisecond")
    parser.add_argument("--rounds", type=int, default=15, help="windows per option")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    step = make_step(chosen.layers)
    for _ in range(200):
        step()
    with tempfile.TemporaryDirectory() as folder:
        off = statistics.median(cpu_ns(step) for _ in range(IDLE))
        print(f"PyTorch {torch.__version__}; CPU time per step, off: {off / 1e3:,.0f} µs")
        for kind, took in idle(step, folder).items():
            print(f"armed, {kind:10} {took / 1e3:5.2f} µs, {100 * took / off:5.2f} %")
        for name, options in OPTIONS.items():
            mine, other = taking_turns(
                [lambda options=options: ours(step, folder, options), lambda options=options: theirs(step, options)],
                chosen.rounds,
            )
            print(
                f"recording, {name:10} {statistics.median(mine) / off:5.2f} x; torch.profiler "
                f"{statistics.median(other) / off:5.2f} x; ours against it {100 * (against(mine, other) - 1):+6.2f} %"
            )


if __name__ == "__main__":
    main()
