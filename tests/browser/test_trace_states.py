"""What the trace says of itself where it is not everything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stepscope
from stepscope.web import pack as packs
from tests.browser.trace_steps import opened, pressed, span
from tests.web.reports import EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page


def test_a_trace_too_large_is_shown_in_part(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shot: Callable[[Page], None]
) -> None:
    monkeypatch.setattr(packs, "VIEW_SLICES", 1_000)
    report = tmp_path / "part.html"
    report.write_text(stepscope.open(EXAMPLES / "simulated_masked_loss_before.json.gz").html(), encoding="utf-8")
    opened(page, report.as_uri())
    banner = page.locator(".tv-banner").inner_text()
    assert "Partial: of the" in banner
    assert "`" not in banner
    assert page.locator(".tv-banner code").first.inner_text() == "stepscope slice PROFILE part.json --steps A:B"
    whole = span(page)
    pressed(page, "x")
    assert span(page) != whole
    shot(page)
