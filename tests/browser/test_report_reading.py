"""What pages say about their own figures: legends, what the choice of steps covers, ways on to the trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from tests.browser.test_report_pages import B200, H100, V100, open_page
from tests.kit.traces import real_trace

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]


def analyses(trace: str) -> dict[str, Any]:
    found: dict[str, Any] = stepscope.open(real_trace(trace)).document()["analyses"]
    return found


@pytest.mark.real
def test_points_of_the_roofline_have_the_colour_of_what_bounds_them(shared_page: Page, reports: Reports) -> None:
    rows = [row for row in analyses(H100)["roofline"]["ops"] if row["intensity"] and row["flops_per_s"]]
    open_page(shared_page, reports(H100), "kernels")
    drawn = Counter({bound: shared_page.locator(f".scatter .bound-{bound}").count() for bound in BOUNDS})
    assert drawn == Counter(row["bound"] or "unknown" for row in rows)
    keys = shared_page.locator("section:has(.scatter) .keys").inner_text()
    assert {bound for bound, words in BOUNDS.items() if words in keys} == set(+drawn)


BOUNDS = {
    "compute": "bound by computing",
    "memory": "bound by memory",
    "neither": "near neither roof",
    "unknown": "peak not known",
}
