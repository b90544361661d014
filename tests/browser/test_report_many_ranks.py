"""The grid of ranks and steps is right and readable whatever the number of ranks."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepscope import cli
from stepscope.cli import pages
from stepscope.web.assemble import ShownRun, html_file
from tests.browser.large_jobs import document_of, page_of
from tests.kit import example_ranks

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Shot = Callable[["Page"], None]

_DARK = """() => {
    const plot = document.querySelector('.heat-plot svg');
    const cells = [...plot.querySelectorAll('path')].filter((one) => Number(one.getAttribute('fill-opacity')) > 0.3);
    const rows = cells.flatMap((one) => one.getAttribute('d').match(/M\\d+ \\d+/g) ?? [])
        .map((at) => +at.split(' ')[1]);
    const box = plot.getBoundingClientRect();
    const labels = [...document.querySelectorAll('.heat-rows > *')];
    const height = box.height / labels.length;
    return [...new Set(rows)].map((row) => {
        const middle = box.top + (row + 0.5) * height;
        const label = labels.find((one) => {
            const {top, bottom} = one.getBoundingClientRect();
            return top <= middle && middle < bottom;
        });
        return [label.textContent, height];
    });
}"""
"""The label that stands beside each row with dark cells, and the row's height in pixels."""


@pytest.mark.parametrize(
    ("world", "late", "labels"),
    [
        (8, 5, ["rank 5"]),
        (32, 31, ["rank 31", "rank 31"]),
        (128, 97, ["rank 97", "ranks 96–99"]),
        (500, 137, ["rank 137", "ranks 128–143"]),
        (4096, 3001, ["rank 3001", "ranks 2944–3071"]),
    ],
)
def test_the_late_rank_is_seen_at_its_label(
    page: Page, tmp_path: Path, shot: Shot, world: int, late: int, labels: list[str]
) -> None:
    page.goto(f"{page_of(tmp_path, world, late)}#/ranks")
    page.wait_for_selector(".heat-plot")
    dark = page.evaluate(_DARK)
    assert [label for label, _ in dark] == labels
    assert min(height for _, height in dark) >= 15
    if world > 8:  # above all others, whatever its number
        assert page.locator(".heat-rows > *").first.inner_text() == f"rank {late}"
    shot(page)


def test_the_critical_path_over_ranks_is_a_chart_and_a_table(page: Page, tmp_path: Path, shot: Shot) -> None:
    page.goto(f"{page_of(tmp_path, 4, 2)}#/ranks")
    part = page.get_by_role("region", name="What sets the step time: the critical path over all ranks")
    part.wait_for()
    text = part.inner_text()
    assert "17.6 ms per step, the mean of 4 steps (19 ns longer than the mean of ranks)" in text
    assert "computing (kernels) 61.6 % · waiting for input data 34.3 %" in text
    assert part.locator(".bar-name").all_inner_texts() == ["rank 2", "rank 3"]
    shot(page)
    part.get_by_role("button", name="Table").focus()
    page.keyboard.press("Enter")
    rows = part.get_by_role("table").locator("tbody tr")
    told = [[cell.inner_text() for cell in row.locator("td").all()[:5]] for row in rows.all()]
    assert told == [["2", "17.5 ms", "98.9 %", "10.9 ms", "6.05 ms"], ["3", "187 µs", "1.1 %", "12.5 µs", "0 ns"]]


def test_a_band_says_its_largest_and_opens_its_ranks(page: Page, tmp_path: Path) -> None:
    page.goto(f"{page_of(tmp_path, 500, 137)}#/ranks")
    page.locator(".heat-plot").focus()
    for key in ("ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    at = page.locator(".heat-rows > *").all_inner_texts().index("ranks 128–143")
    for _ in range(at - 1):
        page.keyboard.press("ArrowDown")
    said = page.locator("[aria-live=polite]").inner_text()
    assert said.startswith("largest of ranks 128–143: rank 137, step ")
    page.keyboard.press("Enter")
    page.wait_for_selector(".heat-rows > :text-is('rank 128')")
    opened = [f"rank {rank}" for rank in range(128, 144)]
    assert page.locator(".heat-rows > *").all_inner_texts() == ["rank 137", *opened]
    assert [label for label, _ in page.evaluate(_DARK)] == ["rank 137", "rank 137"]
    page.get_by_role("button", name="All ranks").click()
    page.wait_for_selector(".heat-rows > :text-is('ranks 0–15')")


def test_a_phone_shows_a_name_and_its_mean_beside_each_other(page: Page, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    document = document_of(16, 7)
    for row in document["analyses"]["over_ranks"]["kernels"]:
        row["name"] += " of a name that is as long as those of kernels are"
    out = tmp_path / "phone.html"
    out.write_text(html_file([ShownRun("16 ranks", document, None)]), encoding="utf-8")
    page.goto(f"{out.as_uri()}#/kernels")
    mean = page.get_by_role("table", name="Kernels").locator("tbody tr").first.locator("td").nth(1)
    mean.wait_for()
    box = mean.bounding_box()
    assert box
    assert box["x"] + box["width"] <= 390


def test_pages_of_a_thousand_ranks_merge_them_by_name(page: Page, tmp_path: Path, shot: Shot) -> None:
    """Each name is a row, whose outlier is named and to which the row opens; nothing grows with the ranks."""
    address = page_of(tmp_path, 1000, 137)
    page.goto(f"{address}#/kernels")
    rows = page.get_by_role("table", name="Kernels").locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == 50
    said = [one.strip() for one in rows.first.locator("td").all_inner_texts()]
    assert said[1:] == ["500 µs", "1", "500 µs", "rank 999", "1.00 ms", "rank 137", "2.00 ×", "1000"]
    assert page.locator(".tiles").inner_text().split("\n")[-2:] == [
        "rank 137", "by 12.7 ms per step, in 50 of 50 rows"]  # fmt: skip
    rows.first.get_by_role("button", name="× 1000").click()
    opened = page.locator("tr.inner").all_inner_texts()
    assert len(opened) == 16
    assert opened[0].split()[:3] == ["rank", "137", "1.00"]
    assert page.evaluate("document.querySelectorAll('main *').length") < 3_000
    shot(page)
    page.goto(f"{address}#/memory")
    memory = page.get_by_role("table", name="Memory").locator("tbody tr")
    memory.first.wait_for()
    for told in ("most in use", "500 MiB", "1.00 MiB", "rank 0", "1000 MiB", "rank 999"):
        assert told in memory.first.inner_text()


def test_ranks_that_findings_name_are_in_the_file(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nobody waits for them, or who is waited for is not known."""
    monkeypatch.setattr(pages, "RANK_PAGES", 1)
    from stepscope.report import document as report

    made = report.of_job

    def renamed(*given: object) -> object:
        document = made(*given)  # type: ignore[arg-type]
        document["findings"][0]["rank"] = 3
        document["analyses"]["ranks"]["stragglers"] = []
        return document

    monkeypatch.setattr(report, "of_job", renamed)
    out = tmp_path / "job.html"
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--format", "html", "-o", str(out)]) == 0
    page.goto(f"{out.as_uri()}#/overview")
    page.get_by_role("button", name="Show in trace").first.click()
    page.wait_for_selector(".trace-host canvas")


def test_a_table_is_printed_with_all_its_rows(page: Page, tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed (pip install pypdf)")
    page.goto(f"{page_of(tmp_path, 160, 97)}#/ranks")
    page.wait_for_selector("main .scroll")
    rows = (
        page.locator("main table[aria-label]")
        .filter(has=page.locator("button:text-is('rank')"))
        .last.locator("tbody tr")
    )
    assert rows.count() == 100
    text = " ".join(one.extract_text() for one in pypdf.PdfReader(io.BytesIO(page.pdf())).pages)
    assert len({number for number in range(100, 160) if re.search(rf"\b{number}\b", text)}) == 60
    assert "Show all" not in text
    assert rows.count() == 100
