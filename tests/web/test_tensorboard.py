"""What TensorBoard imports and calls: nothing that could keep it from starting."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from stepscope.integrations.tensorboard_tab import Tab
from tests.web.reports import EXAMPLE


def test_the_entry_point_loads_nothing_of_ours() -> None:
    pytest.importorskip("tensorboard")
    script = (
        "import sys; from importlib.metadata import entry_points\n"
        "(ours,) = entry_points(group='tensorboard_plugins', name='stepscope')\n"
        "ours.load()\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('stepscope', 'numba', 'polars')))"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.strip()
    ours = ["stepscope", "stepscope._version", "stepscope.integrations", "stepscope.integrations.tensorboard"]
    assert said == str(ours)


def test_a_failure_of_ours_costs_the_tab_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("tensorboard")
    from stepscope.integrations.tensorboard import Loader

    context: Any = types.SimpleNamespace(logdir="/nowhere", flags=None)
    monkeypatch.setitem(sys.modules, "stepscope.integrations.tensorboard_tab", None)
    assert Loader().load(context) is None
    assert "stepscope: no tab (ModuleNotFoundError" in caplog.text


def test_every_run_below_the_log_directory_is_found_once(tmp_path: Path) -> None:
    for name in ("one/a.json.gz", "two/a.json.gz"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_bytes(EXAMPLE.read_bytes())
    (tmp_path / "notes.txt").write_text("no profile")
    tab = Tab.of(str(tmp_path), None)
    assert tab.is_active()
    tab._looked.clear()
    tab._last = float("-inf")
    assert tab.is_active()
    assert [entry.title for entry in tab._known.values()] == ["one/a.json.gz", "two/a.json.gz"]


@pytest.mark.parametrize(("logdir", "spec"), [(None, None), ("", ""), ("gs://bucket/logs", None), (None, "a:/nowhere")])
def test_places_without_profiles_show_no_tab(logdir: str | None, spec: str | None) -> None:
    assert not Tab.of(logdir, spec).is_active()


def test_folders_may_be_named_in_a_spec(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(EXAMPLE.read_bytes())
    assert Tab.of(None, f"run:{tmp_path},other:/nowhere").is_active()
