"""A notebook that Jupyter ran, with profiles shown below its cells."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.browser.test_report_served import VERDICT
from tests.captures.environments import framework_python
from tests.web.reports import EXAMPLE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CELLS = (f"import stepscope\nprofile = stepscope.open({str(EXAMPLE)!r})", "profile", "profile.show(height=500)")


def run(notebook: Path) -> Path:
    """The notebook after Jupyter ran it, as HTML."""
    cells = [
        {"cell_type": "code", "id": str(at), "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
        for at, cell in enumerate(CELLS)
    ]
    notebook.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    command = (framework_python("jupyter"), "-m", "nbconvert", "--execute", "--to", "html", notebook)
    packages = Path(np.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(packages)))}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return notebook.with_suffix(".html")


def test_a_profile_shows_itself_below_a_cell(browser: Browser, tmp_path: Path) -> None:
    made = run(tmp_path / "cells.ipynb")
    context = browser.new_context()
    context.set_default_timeout(30_000)
    # Of the exported page itself: what it draws formulas with, from a network.
    context.route(lambda url: not url.startswith(("file:", "blob:", "data:")), lambda route: route.abort())
    page = context.new_page()
    page.goto(made.as_uri())
    assert page.locator("iframe").count() == 2
    for at in range(2):
        frame = page.frame_locator("iframe").nth(at)
        assert VERDICT in frame.locator(".sentence").inner_text()
        frame.get_by_role("link", name="Trace").click()
        frame.locator(".trace-host canvas").first.wait_for()
    assert page.locator("iframe").nth(1).evaluate("(one) => one.style.height") == "500px"
    context.close()
