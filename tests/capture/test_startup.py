"""What the start-up module does to a Python process, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.capture.launch import environment_for
from stepscope.capture.options import Options
from tests.capture.jobs import environment

HEAVY = ["numpy", "polars", "numba", "llvmlite", "rich", "msgspec", "isal", "click", "sqlglot"]
HEAVY += ["torch", "jax", "tensorflow"]


def python(tmp_path: Path, code: str, *path: Path, prefix: tuple[str, ...] = ()) -> str:
    """What a program prints in a process of a run that shares nothing with this one but its interpreter."""
    inherited = environment(PYTHONPATH=":".join(map(str, path))) if path else environment()
    env = environment_for(Options(out=str(tmp_path)), inherited)
    ran = subprocess.run([sys.executable, *prefix, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return ran.stdout.strip()


def test_the_shadowed_module_still_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.shadowed = __file__")
    code = "import sys, sitecustomize; print(sys.shadowed == sitecustomize.__file__, sys.shadowed)"
    assert python(tmp_path, code, tmp_path) == f"True {tmp_path / 'sitecustomize.py'}"


def test_nothing_heavy_is_imported_and_the_path_is_as_before(tmp_path: Path) -> None:
    code = f"import sys; print(*(set({HEAVY}) & set(sys.modules)), *(p for p in sys.path if 'capture' in p))"
    assert python(tmp_path, code) == ""


def test_a_module_waited_for_is_itself(tmp_path: Path) -> None:
    """Its loader, sources and resources are what they would be, and a hook that fails harms nobody."""
    package = tmp_path / "jax"
    package.mkdir()
    (package / "__init__.py").write_text("def here(): pass")
    (package / "data.txt").write_text("data")
    code = (
        "import inspect, importlib.resources, jax, sys\n"
        "print(type(jax.__spec__.loader).__name__, 'exec_module' in vars(jax.__loader__))\n"
        "print(inspect.getsource(jax.here).strip(), (importlib.resources.files('jax') / 'data.txt').read_text())\n"
    )
    assert python(tmp_path, code, tmp_path).splitlines() == ["SourceFileLoader False", "def here(): pass data"]


def test_a_missing_framework_is_missing_as_ever(tmp_path: Path) -> None:
    code = "try:\n  import torch_xla\nexcept ModuleNotFoundError as e: print(e)"
    assert python(tmp_path, code) == "No module named 'torch_xla'"


def test_the_folder_needs_no_stepscope_beside_it(tmp_path: Path) -> None:
    """-S leaves site-packages out; the start-up module is run by hand as site would."""
    code = "import sitecustomize, sys; print('_stepscope_capture' in sys.modules, 'stepscope' in sys.modules)"
    assert python(tmp_path, code, prefix=("-S",)) == "True False"


@pytest.mark.parametrize(
    "code",
    [
        "import stepscope",
        "import stepscope.capture",
        "import stepscope\nwith stepscope.annotate('x', size=1): stepscope.step()",
        "import stepscope\n@stepscope.annotate('x')\ndef f(): return 1\nf()",
        "import stepscope\nstepscope.schedule(wait=1)",
    ],
)
def test_the_session_api_imports_nothing_heavy(code: str) -> None:
    script = f"{code}\nimport sys; print(*(set({HEAVY}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
