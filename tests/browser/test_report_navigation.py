"""The navigation lists what has content, and what is known of waiting without a remedy stands beneath the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stepscope
from stepscope.units import format_ns
from stepscope.web.assemble import ShownRun, html_file
from tests.browser.large_jobs import page_of
from tests.kit.traces import real_trace

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
B200 = "kineto/b200_eager_rank0_of_8.json.gz"


def listed(page: Page) -> list[str]:
    page.wait_for_selector("main .page")
    return [one.inner_text().split()[0] for one in page.locator("nav a:visible").all()]


def test_pages_without_content_are_not_listed(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('example')}#/overview")
    assert listed(page) == ["Overview", "Input", "Ops", "Trace"]
    # Who comes to one is told what to record, and where he is.
    page.goto(f"{reports('example')}#/kernels")
    page.wait_for_selector("h1:text-is('Kernels')")
    assert listed(page) == ["Overview", "Input", "Ops", "Kernels", "Trace"]


def test_a_job_lists_what_it_knows_of_all_ranks(page: Page, tmp_path: Path) -> None:
    page.goto(f"{page_of(tmp_path, 8, 5)}#/overview")
    assert listed(page) == ["Overview", "Ops", "Kernels", "Memory", "Ranks"]


@pytest.mark.real
def test_waiting_without_a_remedy_says_what_the_host_was_in(page: Page, tmp_path: Path) -> None:
    profile = stepscope.open(real_trace(B200))
    document = {**profile.document(), "findings": [], "plan": []}
    out = tmp_path / "report.html"
    out.write_text(html_file([ShownRun("a", document, profile.run().pack)]), encoding="utf-8")
    page.goto(f"{out.as_uri()}#/overview")
    told = page.locator(".host-in")
    longest = max(
        (gap for gap in document["analyses"]["idle"]["gaps"] if gap["blocking"] == "aten::addmm"),
        key=lambda gap: int(gap["dur_ns"]),
    )
    line = told.locator("li", has_text="aten::addmm").first
    assert longest["where"]["file"] in line.inner_text()
    assert format_ns(longest["dur_ns"]).split()[1] in line.inner_text()
    line.get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".trace-host canvas")
