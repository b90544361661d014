"""The pages below a notebook's cell."""

from __future__ import annotations

import html
import re
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.web import notebook
from stepscope.web.limits import NOTEBOOK_PACK_BYTES
from tests.web.reports import EXAMPLE, hostile_profile


@pytest.fixture(scope="module")
def profile() -> stepscope.Profile:
    return stepscope.open(EXAMPLE)


def test_a_profile_shows_itself_in_a_frame_that_cannot_reach_the_notebook(profile: stepscope.Profile) -> None:
    made = profile._repr_html_()
    (page,) = re.findall(r'^<iframe srcdoc="([^"]*)"', made)
    assert html.unescape(page) == profile.html()
    assert 'sandbox="allow-scripts allow-downloads"' in made
    assert "allow-same-origin" not in made


def test_names_stay_inside_the_frame(tmp_path: Path) -> None:
    made = stepscope.open(hostile_profile(tmp_path))._repr_html_()
    assert re.fullmatch(r'<iframe srcdoc="[^"<>]*" [^<>]*></iframe>', made)


def test_a_trace_too_large_for_a_notebook_is_left_out_and_said(profile: stepscope.Profile) -> None:
    run = replace(profile.run(), pack=bytes(NOTEBOOK_PACK_BYTES + 1))
    made = notebook.frame(run)
    assert len(made) < NOTEBOOK_PACK_BYTES
    assert "The trace (16.0 MiB) is too large to be kept inside a notebook." in made


def test_show_displays_below_a_cell(profile: stepscope.Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    modules: dict[str, Any] = {name: types.ModuleType(name) for name in ("IPython", "IPython.display")}
    modules["IPython"].get_ipython = lambda: types.SimpleNamespace(kernel=object())
    modules["IPython.display"].display = lambda data, raw: shown.append(data)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert profile.show(height=500) is None
    assert "height: 500px" in shown[0]["text/html"]
    assert shown[0]["text/plain"] == profile.verdict


def test_show_opens_a_browser_elsewhere(
    profile: stepscope.Profile, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = profile.show()
    assert path is not None
    assert opened == [path.as_uri()]
    assert path.read_text(encoding="utf-8") == profile.html()
