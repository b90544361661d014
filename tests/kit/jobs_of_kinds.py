"""One profile as other kinds of job would have written it: what is renamed or left out says what the job is for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from stepscope.trace.trace import Trace
from tests.kit.events import Event, Thread

_OF_TRAINING = (
    (r"Optimizer\.\w+#\w+\.\w+", "postprocess"),
    (r"autograd::engine::evaluate_function: ", "run: "),
    (r"torch::autograd::\w+", "aten::view"),
    (r"Backward\d*\b", "Op"),
    (r"train_step", "one_step"),
    (r"train\.py", "generate.py"),
    (r"update_running_loss", "read_result"),
    (r"(?i)backward", "decode"),
    (r"(?i)optimizer", "sampler"),
    (r"(?i)nll_loss|cross_entropy|\bloss\b", "softmax"),
    (r"(?i)adam\w*|\bsgd\b", "scale"),
)


def as_inference(events: Sequence[Event]) -> list[Event]:
    """The same work, with nothing in it that only training has."""
    left = ("Sequence number", "Fwd thread id")
    return [
        replace(
            event,
            name=_renamed(event.name),
            flows=tuple(flow for flow in event.flows if flow.kind != "fwdbwd"),
            args={key: value for key, value in event.args.items() if key not in left},
        )
        for event in events
    ]


def as_serving(events: Sequence[Event]) -> list[Event]:
    """The same inside an engine that answers requests."""
    made = as_inference(events)
    longest = max(made, key=lambda event: (event.dur_ns or 0) if event.track == Thread() else 0)
    engine = replace(
        longest, name="vllm/v1/worker/gpu_model_runner.py(1210): execute_model", cat="python_function", args={}
    )
    return [engine, *made]


def of_version(trace: Trace, newest: tuple[int, int]) -> Trace:
    """The same, written by an old version of the framework."""
    info = replace(trace.info, framework_oldest=None, framework_newest=newest, origin_epoch_ns=None)
    return replace(trace, info=info)


def _renamed(name: str) -> str:
    for pattern, word in _OF_TRAINING:
        name = re.sub(pattern, word, name)
    return name
