"""The real servers and clients: JAX, TensorFlow, PyTorch/XLA, XProf; and a real PyTorch job."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.errors import StepscopeError
from stepscope.pipeline import Profile
from stepscope.remote.addresses import parsed
from stepscope.remote.client import monitor
from tests.capture.jobs import TIMEOUT_S, environment
from tests.capture.test_torch import SOURCE, free_port
from tests.captures.environments import framework_python
from tests.remote.test_on_demand import until

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parent / "scripts"

Started = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def start() -> Iterator[Started]:
    """Starts jobs that end with the tests."""
    with ExitStack() as stack:

        def started(framework: str, script: str, *words: object, **more: str) -> subprocess.Popen[str]:
            command = [framework_python(framework), SCRIPTS / script, *map(str, words)]
            pipe = subprocess.PIPE
            job = stack.enter_context(
                subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment(**more))
            )
            stack.callback(job.kill)
            return job

        yield started


def served(start: Started, framework: str, *words: object, **more: str) -> str:
    """The address of a job's own server, once it trains."""
    port = free_port()
    job = start(framework, f"{framework}_job.py", port, *words, **more)
    assert job.stdout is not None
    assert job.stdout.readline() == "ready\n"
    return f"localhost:{port}"


def capture(address: str, out: Path, **more: Any) -> Profile:
    (path,) = stepscope.capture_from(address, out, **more)
    profile = stepscope.open(path)
    assert isinstance(profile, Profile)
    return profile


def test_jax(start: Started, tmp_path: Path) -> None:
    address = served(start, "jax")
    profile = capture(address, tmp_path, duration=0.5)
    assert profile.trace.info.framework == "JAX"
    assert profile.steps.height > 5
    names = profile.trace.table("slices")["name"].cast(pl.String)
    assert names.str.contains("jax_job.py").any()
    without = capture(address, tmp_path, duration=0.5, stacks=False)
    assert not without.trace.table("slices")["name"].cast(pl.String).str.contains("jax_job.py").any()


def test_tensorflow(start: Started, tmp_path: Path) -> None:
    profile = capture(served(start, "tensorflow"), tmp_path, duration=0.5)
    assert profile.trace.info.framework == "TensorFlow"
    assert profile.steps.height > 5


def test_pytorch_xla(start: Started, tmp_path: Path) -> None:
    """Its server, at 2.9, writes on its own disk, which is ours here."""
    profile = capture(served(start, "torch_xla", "kept", PJRT_DEVICE="CPU"), tmp_path, duration=2)
    assert profile.steps.height


def test_a_server_object_of_pytorch_xla_that_was_dropped(start: Started, tmp_path: Path) -> None:
    address = served(start, "torch_xla", "dropped", PJRT_DEVICE="CPU")
    with pytest.raises(StepscopeError, match="the script must keep it"):
        stepscope.capture_from(address, tmp_path, duration=0.5)


# --- a real PyTorch job -----------------------------------------------------------------------------------------------


def torch_job(start: Started, kind: str, **server: Any) -> str:
    """The address of a PyTorch job of a kind; its Python has neither gRPC nor polars."""
    words = (kind, sys.executable, json.dumps(server))
    job = start("torch", "torch_job.py", *words, PYTHONPATH=str(SOURCE))
    assert job.stdout is not None
    said = json.loads(job.stdout.readline())
    assert (said["declined"], said["heavy"]) == (None, [])
    return f"127.0.0.1:{said['port']}"


@pytest.fixture(scope="module")
def training(start: Started) -> str:
    """A job that trains, and has begun to: the first optimizer step imports for seconds."""
    address = torch_job(start, "train")
    until(lambda: "each" in (monitor(parsed(address)[0]) or ""))
    return address


def test_pytorch_steps(training: str, tmp_path: Path) -> None:
    profile = capture(training, tmp_path, steps=5)
    assert profile.trace.info.framework == "PyTorch"
    numbers = profile.steps["number"].to_list()
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    names = profile.trace.table("slices")["name"].cast(pl.String).to_list()
    assert names.count("load_batch") == 5


def test_pytorch_through_tensorflows_client(training: str, tmp_path: Path) -> None:
    script = (
        "import sys, tensorflow as tf\n"
        "tf.profiler.experimental.client.trace(sys.argv[1], sys.argv[2], 400)\n"
        "print(tf.profiler.experimental.client.monitor(sys.argv[1], 100))\n"
    )
    said = by_client("tensorflow", script, training, tmp_path)
    assert "stepscope: PyTorch 2" in said
    assert_captured(tmp_path)


def test_pytorch_through_xprofs_client(training: str, tmp_path: Path) -> None:
    """What ``python -m jax.collect_profile`` and TensorBoard's "Capture profile" call."""
    script = (
        "import sys\n"
        "from xprof.convert import _pywrap_profiler_plugin as plugin\n"
        "options = {'host_tracer_level': 2, 'device_tracer_level': 1, 'python_tracer_level': 1}\n"
        "plugin.trace(sys.argv[1], sys.argv[2], '', True, 400, 3, options)\n"
    )
    by_client("xprof", script, training, tmp_path)
    assert_captured(tmp_path)


def by_client(framework: str, script: str, address: str, out: Path) -> str:
    ran = subprocess.run(
        [framework_python(framework), "-c", script, address, out],
        capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=environment(),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def assert_captured(folder: Path) -> None:
    (path,) = (folder / "plugins" / "profile").glob("*/*.xplane.pb")
    profile = stepscope.open(path)
    assert isinstance(profile, Profile)
    assert profile.steps.height > 3
    assert "load_batch" in profile.trace.table("slices")["name"].cast(pl.String).to_list()


@pytest.mark.parametrize(("kind", "steps"), [("infer", False), ("explicit", True), ("workers", True)])
def test_pytorch_jobs_of_other_kinds(start: Started, tmp_path: Path, kind: str, steps: bool) -> None:
    address = torch_job(start, kind)
    for _ in range(6):  # First steps import for seconds, which is no step yet.
        profile = capture(address, tmp_path, duration=0.3)
        assert len(profile.trace.slices)
        if numbered(profile) or not steps:
            break
    assert bool(numbered(profile)) == steps


def numbered(profile: Profile) -> list[int]:
    """Steps that were marked; without any the whole profile is one."""
    numbers: list[int] = profile.steps["number"].drop_nulls().to_list()
    return numbers


def test_a_step_longer_than_the_window_is_recorded_whole(start: Started, tmp_path: Path) -> None:
    address = torch_job(start, "slow")
    capture(address, tmp_path, duration=0.1)  # The first step takes longer.
    profile = capture(address, tmp_path, duration=0.1, stacks=False)
    assert len(numbered(profile)) == 1
    assert profile.steps["dur_ns"][0] > 1_000_000_000


def test_a_job_that_profiles_itself_declines(start: Started, tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="another PyTorch profiler was at work in this process"):
        stepscope.capture_from(torch_job(start, "profiled"), tmp_path, duration=0.1)


def test_a_job_that_ends_sends_what_it_has(start: Started, tmp_path: Path) -> None:
    port = free_port()
    words = ("train", sys.executable, json.dumps({"port": port}))
    job = start("torch", "torch_job.py", *words, PYTHONPATH=str(SOURCE))
    assert job.stdout is not None
    assert job.stdin is not None
    assert json.loads(job.stdout.readline())["port"] == port
    capture(f"localhost:{port}", tmp_path, duration=0.1)
    words = (f"localhost:{port}", "--duration", "60s", "-o", str(tmp_path / "late"))
    with subprocess.Popen(
        [sys.executable, "-m", "stepscope", "capture", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as capturing:  # fmt: skip
        until(lambda: "; recording" in (monitor(parsed(f"localhost:{port}")[0]) or ""))
        job.stdin.close()
        out, err = capturing.communicate(timeout=TIMEOUT_S)
    assert capturing.returncode == 0, err
    assert "step time" in out
    assert job.wait(TIMEOUT_S) == 0
