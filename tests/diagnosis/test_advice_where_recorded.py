"""Advice on recording more fits what was recorded; advice on waits fits what they are for; GPUs are no processors."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.syncs import Sync
from stepscope.analysis.where import Where
from stepscope.analysis.workload import CPU, Purpose, Workload
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.evidence import to_record_host
from stepscope.diagnosis.exchange_remedies import GRADIENTS, JOIN_GRADIENTS, JOIN_SHARDS, REDUCED, SHARDS
from stepscope.diagnosis.remedies import COPY_PINNED, JAX, TENSORFLOW, TORCH_XLA, TRANSFERS, Remedies, remedy
from stepscope.diagnosis.rules.sync_bound import _fix, _saves
from stepscope.names.hosts import HostRole, classify_host_name
from stepscope.names.sync_hints import SyncHint
from stepscope.trace.tables import Kind
from tests.kit.xla import HostRange, Job, Op, build


def job(framework: str, frames: bool = False) -> Facts:
    """Steps of 10 ms, of which one takes 60 ms longer in which the host shows nothing."""
    host, ops, at = [], [], 0
    for step in range(8):
        long = 60_000 if step == 4 else 0
        host.append(HostRange("train", at, 10_000 + long - 10, Kind.STEP, step))
        host.append(HostRange("PjRtExecutable::Execute (jit_step)", at + 500 + long, 200, Kind.RUNTIME_CALL))
        ops.append(Op("fusion.1", at + 900 + long, 8_500, execute=len(host) - 1, run=step))
        host += [HostRange("train.py(3): main", at + long + 10, 20, Kind.PYTHON_FRAME)] * frames
        at += 10_000 + long
    return analyse(build(Job(host, ops, framework=framework)))


@pytest.mark.parametrize(
    ("framework", "frames", "words"),
    [
        (TORCH_XLA, False, "PyTorch/XLA's profiler records no Python code"),
        (JAX, False, "python_tracer_level = 1"),
        (JAX, True, "jax.profiler.TraceAnnotation"),
        (TORCH_XLA, True, "xp.Trace"),
    ],
)
def test_what_would_record_more_is_what_this_profiler_can(framework: str, frames: bool, words: str) -> None:
    facts = job(framework, frames)
    assert words in to_record_host(facts)
    slow = [found for found in diagnose(facts).findings if found.rule == "slow_steps"]
    assert [words in found.fix for found in slow] == [True]


@pytest.mark.parametrize("texts", [GRADIENTS, JOIN_GRADIENTS, JOIN_SHARDS, REDUCED, SHARDS, COPY_PINNED, TRANSFERS])
@pytest.mark.parametrize("framework", [JAX, TENSORFLOW])
def test_processors_get_no_advice_for_gpus(texts: Remedies, framework: str) -> None:
    told = remedy(texts, Workload(framework, Purpose.TRAINING, vendors=frozenset({CPU})))
    assert "gpu" not in told.lower()
    assert told


@pytest.mark.parametrize(
    ("where", "saves"),
    [
        (Where("train.py", 10, "save_checkpoint"), True),
        (Where("train.py", 10, "train", annotation="save checkpoint"), True),
        (Where("train.py", 10, "log_metrics"), False),
        (Where(op="PjitFunction(step)"), False),
    ],
)
def test_a_wait_for_what_is_saved_is_no_reading_of_metrics(where: Where, saves: bool) -> None:
    assert _saves(where) is saves


@pytest.mark.parametrize("function", ["save_checkpoint", "_save_checkpoint", "load_checkpoint", "dump_checkpoints"])
def test_a_program_s_own_function_tells_that_it_saves(function: str) -> None:
    assert classify_host_name(f"train.py(7): {function}", is_python=True) is HostRole.CHECKPOINT_IO


@pytest.mark.parametrize("function", ["checkpoint", "checkpoint_sequential", "save_figure", "load_batch_checkpointed"])
def test_functions_that_save_nothing(function: str) -> None:
    """``checkpoint`` is what recomputes activations."""
    assert classify_host_name(f"train.py(7): {function}", is_python=True) is not HostRole.CHECKPOINT_IO


def test_waits_of_two_kinds_have_a_line_each() -> None:
    """Reading a value has alternatives, waiting for a program to start has none."""
    hint = SyncHint("a value is read", ("keep the value on the device",))
    reads = Sync("step", "np.asarray", Where(), 8, frozenset({0}), 9, 9, hint, (0,))
    starts = Sync("step", "Wait for LaunchOnDevice completion", Where(), 8, frozenset({0}), 9, 9, None, (0,))
    first, second = _fix(job(JAX), [reads, starts]).split("\n- ")
    assert first == "- keep the value on the device"
    assert second.startswith("The call waits until its program was started")
    assert _fix(job(JAX), [starts]).startswith("The call waits")
