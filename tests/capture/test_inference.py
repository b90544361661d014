"""Jobs that have no optimizer steps, or a profiler of their own: real frameworks."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import stepscope
from stepscope.cli.run_folders import runs
from tests.capture.jobs import SCRIPTS, Ran, run
from tests.captures.environments import framework_python


def job(out: Path, script: str, *words: object, framework: str = "torch") -> Ran:
    ran = run(out, "--python", framework_python(framework), "--no-stacks", SCRIPTS / script, *words)
    assert ran.status == 0, ran.stderr
    assert ran.manifest["failures"] == []
    return ran


def count(ran: Ran, name: str) -> int:
    names = stepscope.open(ran.profile()).trace.table("slices")["name"].cast(pl.String)
    return int((names == name).sum())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "inference", "grad", "samples"])
def test_calls_of_the_outermost_module_are_steps(tmp_path: Path, kind: str) -> None:
    """Also of one that was never switched to evaluation; a transform that is called for each sample is no step."""
    ran = job(tmp_path, "torch_serve.py", kind, 300)
    assert ran.manifest["steps_from"] == "repeated calls"
    assert stepscope.open(ran.profile()).steps["number"].to_list() == ran.steps()
    assert abs(count(ran, "aten::linear") - 12 * len(ran.steps())) <= 12


@pytest.mark.slow
def test_calls_of_a_compiled_module_are_steps(tmp_path: Path) -> None:
    ran = job(tmp_path, "torch_serve.py", "compiled", 300)
    assert (ran.manifest["steps_from"], len(ran.manifest["files"])) == ("repeated calls", 1)
    assert stepscope.open(ran.profile()).steps["number"].to_list() == ran.steps()


@pytest.mark.slow
def test_models_can_be_copied_and_saved_while_they_are_watched(tmp_path: Path) -> None:
    assert job(tmp_path, "torch_copied.py").stdout == b"end False\n"


@pytest.mark.slow
def test_too_few_calls_are_said(tmp_path: Path) -> None:
    ran = job(tmp_path, "torch_serve.py", "plain", 3)
    assert "no profile was written because " in ran.stderr
    assert ran.manifest["files"] == []


@pytest.mark.slow
def test_a_job_in_which_nothing_repeats_is_recorded_for_two_seconds(tmp_path: Path) -> None:
    ran = job(tmp_path, "torch_serve.py", "tensors", 30_000)  # Longer than nothing is waited for.
    assert (ran.manifest["window"], ran.manifest["ended"]) == (None, "no steps were found; 2 s were recorded")
    assert count(ran, "aten::matmul") > 100
    assert "step time" in ran.stderr
    assert "no steps were found; 2 s were recorded" in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("calls", "tokens", "forwards"), [(3, 40, 1), (40, 4, 4)])
def test_tokens_of_generate_are_steps_and_calls_of_few_tokens_are(
    tmp_path: Path, calls: int, tokens: int, forwards: int
) -> None:
    ran = job(tmp_path, "hf_generate.py", calls, tokens, framework="integrations")
    assert (ran.manifest["steps_from"], ran.stdout) == ("repeated calls", f"(2, {16 + tokens})\n".encode())
    embeddings = count(ran, "aten::embedding")
    assert abs(embeddings - forwards * len(ran.steps())) <= forwards


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["first", "whole"])
def test_the_jobs_own_profiler_and_ours(tmp_path: Path, kind: str) -> None:
    """Ours comes after its window, where it ends; what it wrote is diagnosed in both cases."""
    path = tmp_path / ("own" if kind == "first" else "own.json.gz")
    ran = job(tmp_path / "out", "torch_own_profiler.py", kind, 60, path)
    (own,) = ran.manifest["own_traces"]
    assert Path(own) == (path if kind == "whole" else next(path.iterdir()))
    if kind == "first":
        assert ran.manifest["window"]["first_step"] >= 5
        assert stepscope.open(ran.profile()).steps["number"].to_list() == ran.steps()
        assert f"the command's own profiler wrote {own}: " in ran.stderr
        (report,) = ran.out.glob("own.*.txt")
        assert "step time" in report.read_text()
    else:
        assert "no profile was written because the job's own profiler was at work" in ran.stderr
        assert f"this is the diagnosis of what the command's own profiler wrote: {own}" in ran.stderr
        assert sum(line.startswith("step time ") for line in ran.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_second_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = (job(tmp_path, "torch_serve.py", "plain", 3) for _ in range(2))
    assert runs(tmp_path) == [first.out, second.out]
    nothing = run(tmp_path, "python3", "-c", "pass")
    assert (nothing.status, len(runs(tmp_path))) == (0, 2)
