"""Each command loads what it needs, and nothing of what its list names. Counted in modules, not in seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROFILES = Path(__file__).resolve().parents[2] / "examples" / "profiles"
KINETO = str(PROFILES / "simulated_masked_loss_one.json.gz")
XPLANE = str(PROFILES / "jax_eight_devices.xplane.pb.gz")

_RUN = """
import contextlib, io, sys
from stepscope.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    status = main(sys.argv[1:])
print(*sys.modules)
sys.exit(status)
"""

HEAVY = ("numpy", "numba", "llvmlite", "polars", "msgspec", "isal", "rich", "sqlglot")
OTHERS = (
    "stepscope.document.declared", "stepscope.document.kinds",
    "polars", "sqlglot", "stepscope.sql", "stepscope.web", "stepscope.comparison",
    "stepscope.remote.client", "stepscope.remote.collect", "stepscope.remote.server",
    "stepscope.formats.nsys.read", "stepscope.formats.nsys.sqlite", "stepscope.formats.tf1.step_stats",
    "stepscope.formats.tf1.timeline",
)  # fmt: skip
"""What the diagnosis of a profile by any framework of today does without."""
LOADED = {
    "--version": (["--version"], (*HEAVY, "stepscope.formats", "stepscope.analysis", "stepscope.report")),
    "--help": (["--help"], (*HEAVY, "stepscope.formats", "stepscope.analysis", "stepscope.report")),
    "diagnose --help": (["diagnose", "--help"], HEAVY),
    "view --help": (["view", "--help"], HEAVY),
    "run --help": (["run", "--help"], HEAVY),
    "diagnose, Kineto": (
        ["diagnose", KINETO],
        (*OTHERS, "numba", "llvmlite", "stepscope.formats.xplane.read", "stepscope.formats.xplane.space",
         "stepscope.formats.chrome.xla",
         "stepscope.cluster", "stepscope.jobs"),
    ),
    "diagnose, Kineto, as JSON": (
        ["diagnose", KINETO, "--format", "json"],
        (*OTHERS, "rich", "stepscope.formats.xplane.read", "stepscope.cluster", "stepscope.report.terminal"),
    ),
    "diagnose, XPlane": (
        ["diagnose", XPLANE],
        (*OTHERS, "stepscope.formats.chrome.kineto", "stepscope.formats.chrome.read", "stepscope.jobs"),
    ),
}  # fmt: skip


def loaded(arguments: list[str], **environment: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", _RUN, *arguments], capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.parametrize(("arguments", "without"), LOADED.values(), ids=LOADED.keys())
def test_a_command_loads_what_it_needs(arguments: list[str], without: tuple[str, ...]) -> None:
    modules = loaded(arguments)
    assert "stepscope.cli" in modules
    assert [name for name in modules if name.startswith(tuple(f"{one}." for one in without)) or name in without] == []


def test_what_the_lists_name_exists() -> None:
    """A misspelt name would make the test above pass whatever happens."""
    names = {name for _, without in LOADED.values() for name in without}
    script = f"import importlib; [importlib.import_module(name) for name in {sorted(names)!r}]"
    subprocess.run([sys.executable, "-c", script], check=True)
