"""Two runs, and ranks of a job, in one view of the trace."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from stepscope import cli, pipeline
from stepscope.units import format_ns
from tests.browser.trace_steps import opened, pressed, settled, tab
from tests.cluster.jobs import MS, data_parallel
from tests.cluster.jobs import clocks as clocks_of
from tests.kit import example_ranks
from tests.kit.cluster import simulate
from tests.web.reports import EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Shot = Callable[["Page"], None]

BEFORE, AFTER = (EXAMPLES / f"simulated_masked_loss_{which}.json.gz" for which in ("before", "after"))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("compared") / "compare.html"
    assert cli.main(["compare", str(BEFORE), str(AFTER), "--format", "html", "-o", str(out)]) == 0
    return out.as_uri()


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("job") / "job.html"
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--format", "html", "-o", str(out)]) == 0
    return out.as_uri()


@pytest.fixture(scope="module")
def clocks() -> dict[int, dict[str, Any]]:
    ranks = pipeline.open(example_ranks.FOLDER).document()["analyses"]["ranks"]
    return {clock["rank"]: clock for clock in ranks["clocks"]}


def beside(page: Page) -> Any:
    return page.get_by_label("beside")


def put_beside(page: Page, text: str) -> None:
    beside(page).select_option(label=text)
    page.wait_for_function("(text) => document.querySelector('.trace-beside select').selectedOptions[0].text === text "
                           "&& document.querySelector('.tv-root[data-ready-ms]')", arg=text)  # fmt: skip
    page.wait_for_selector(".tv-stage[data-frames]")


def heads(page: Page) -> str:
    return "\n".join(page.locator(".tv-heads-inner .tv-head").all_inner_texts())


def test_before_and_after_stand_in_one_view_by_their_steps(page: Page, compared: str, shot: Shot) -> None:
    opened(page, compared)
    assert beside(page).locator("option").all_inner_texts() == ["nothing", f"after: {AFTER.name}"]
    put_beside(page, f"after: {AFTER.name}")
    text = heads(page)
    assert re.search(r"before · .*after · ", text, re.DOTALL), text
    assert "first steps begin together" in page.locator(".trace-beside").inner_text()
    page.wait_for_url(re.compile("beside=1"))
    assert beside(page).evaluate("(one) => one === document.activeElement")
    shot(page)


def test_the_address_gives_the_same_view_back(page: Page, compared: str) -> None:
    opened(page, compared, "trace?run=1&beside=0&start=0&end=5000000")
    text = heads(page)
    assert re.search(r"after · .*before · ", text, re.DOTALL), text
    page.wait_for_url(re.compile(r"#/trace\?(?=.*start=0&)(?=.*end=5000000)(?=.*beside=0)(?=.*run=1)"))
    page.keyboard.press("g")
    page.keyboard.press("o")
    page.wait_for_selector("main .page:not(.trace-host)")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_selector(".tv-stage")
    assert "before · " in heads(page)
    assert "beside=0" in page.url
    put_beside(page, "nothing")
    page.wait_for_url(re.compile("end=5000000"))
    assert "before · " not in heads(page)
    page.wait_for_url(lambda url: "beside" not in url)


def test_runs_are_aligned_by_a_chosen_step(page: Page, compared: str) -> None:
    opened(page, compared, "trace?beside=1")
    by = page.get_by_label("aligned by")
    names = by.locator("option").all_inner_texts()
    by.select_option(index=5)
    page.wait_for_url(re.compile(r"beside=1(%40|@)5"))
    page.wait_for_selector("text=the chosen steps begin together")
    page.wait_for_selector(".tv-root[data-ready-ms]")
    page.get_by_label("Search slices").fill(f"kind:step track:device {names[5].replace('step ', 'step:')}")
    page.get_by_label("Search slices").press("Enter")
    hits = page.locator(".tv-panel-body table:has(caption:text-is('Hits')) tbody tr, table[aria-label='Hits'] tbody tr")
    hits.first.wait_for()
    # Cells, not the text of a row: what of it is rendered is up to the browser.
    rows = hits.evaluate_all("rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))")
    begins = {row[3] for row in rows if row[0] == names[5]}
    assert len(rows) > 1
    assert len(begins) == 1, rows


def hits(page: Page, query: str) -> list[list[str]]:
    """The cells of what a search lists."""
    page.get_by_label("Search slices").fill(query)
    page.get_by_label("Search slices").press("Enter")
    settled(page)
    rows = page.locator(".tv-panel-body table:has(caption:text-is('Hits')) tbody tr, table[aria-label='Hits'] tbody tr")
    rows.first.wait_for()
    found: list[list[str]] = rows.evaluate_all("rows => rows.map((row) => [...row.cells].map((c) => c.textContent))")
    return found


def test_runs_are_aligned_by_a_chosen_op(page: Page, compared: str, shot: Shot) -> None:
    opened(page, compared, "trace?beside=1")
    every = hits(page, "kind:kernel track:stream step:4 run:before")
    name = every[-1][0]
    query = f'kind:kernel name="{name}" track:stream step:4'
    pressed(page, "N")  # The last one.
    tab(page, "Details")
    assert page.get_by_role("button", name="Align the runs here").is_visible()
    nth = len([row for row in every if row[0] == name]) - 1

    def begins() -> tuple[str, str]:
        rows = hits(page, query)
        of = [[row[3] for row in rows if row[4].startswith(f"{side} ")] for side in ("before", "after")]
        return of[0][nth], of[1][nth]

    apart = begins()
    assert apart[0] != apart[1]
    pressed(page, "b")
    page.wait_for_selector("text=runs are aligned by the chosen op")
    page.wait_for_selector(".tv-root[data-ready-ms]")
    assert begins() == (apart[0], apart[0])
    by = page.get_by_label("aligned by")
    assert by.evaluate("(one) => one.selectedOptions[0].text") == f"{name} ({nth + 1} of step 4)"
    shot(page)
    page.reload()
    page.wait_for_selector("text=runs are aligned by the chosen op")
    by.select_option(index=1)
    page.wait_for_selector("text=first steps begin together")


def test_a_finding_is_shown_beside_the_other_run(page: Page, compared: str) -> None:
    opened(page, compared, "trace?beside=1")
    page.goto(f"{compared}#/overview")
    page.get_by_role("button", name="Show in trace").first.click()
    page.wait_for_url(re.compile("#/trace.*beside=1"))
    settled(page)
    assert re.search(r"before · .*after · ", heads(page), re.DOTALL)
    assert "thread 4242" in page.locator(".tv-heads-pinned").inner_text()
    evidence = stepscope.open(BEFORE).document()["findings"][0]["evidence"][0]
    assert page.locator(".tv-live").inner_text().partition(", on ")[0].endswith(f", {evidence['dur_ns']} ns")
    page.get_by_text("Shown for:").get_by_role("button").click()
    page.wait_for_selector(".finding[open]")
    tab_of_findings(page, compared)


def tab_of_findings(page: Page, compared: str) -> None:
    """From the other run's view the finding of the run beside it leads to that run's own page."""
    opened(page, compared, "trace?run=1&beside=0")
    tab(page, "Findings")
    page.locator(".tv-finding .tv-link").first.click()
    page.wait_for_url(lambda url: "#/overview" in url and "run=" not in url)
    page.wait_for_selector(".finding[open]")


def test_a_run_that_is_not_there_is_not_shown(page: Page, compared: str) -> None:
    opened(page, compared, "trace?beside=7.8")
    assert "·" not in heads(page)
    assert beside(page).evaluate("(one) => one.selectedOptions[0].text") == "nothing"


def test_ranks_stand_on_one_clock(page: Page, job: str, clocks: dict[int, dict[str, Any]], shot: Shot) -> None:
    opened(page, job, "trace?run=1")
    first = int(page.locator(".top select[aria-label=Profile]").evaluate("(one) => one.selectedOptions[0].text")[5])
    others = sorted(set(clocks) - {first})
    every = f"ranks {', '.join(map(str, others))}"
    assert beside(page).locator("option").all_inner_texts() == ["nothing", *(f"rank {k}" for k in others), every]
    put_beside(page, every)
    note = page.locator(".trace-beside p").inner_text()
    for rank in others:
        apart = clocks[rank]["offset_ns"] - clocks[first]["offset_ns"]
        apart -= clocks[first]["drift"] * (clocks[rank]["at_ns"] - clocks[first]["at_ns"])
        uncertain = format_ns(clocks[rank]["uncertainty_ns"] + clocks[first]["uncertainty_ns"])
        moved = re.search(rf"rank {rank} moved by (\S+ \S+) and \S+ \S+ of drift, ± {re.escape(uncertain)}", note)
        assert moved
        assert moved[1] == f"{'+' if apart > 0 else '−'}{format_ns(round(abs(apart)))}"
    text = heads(page)
    assert f"rank {first} · device 0\nclock of the view" in text
    assert all(f"rank {rank} · device 0\n± " in text for rank in others)
    assert all(f"rank {rank} · " in text for rank in clocks)
    devices = [f"rank {rank} · device 0" for rank in (first, *others)]
    assert [line[: len(devices[0])] for line in re.findall(r"rank \d · .*", text)][:4] == devices
    page.wait_for_url(re.compile(r"beside=\d\.\d\.\d"))
    shot(page)


@pytest.fixture(scope="module")
def ten_ranks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job of ten ranks, of which the last is slow."""
    folder = tmp_path_factory.mktemp("ten")
    program = data_parallel(lambda rank, step: {"input": 5 * MS} if rank == 9 else {}, world=10)
    simulate(10, program, steps=4, clocks=clocks_of(3, 10)).write(folder / "ranks")
    out = folder / "job.html"
    assert cli.main(["diagnose", str(folder / "ranks"), "--format", "html", "-o", str(out)]) == 0
    return out.as_uri()


def test_more_than_four_ranks_stand_in_one_view_the_late_one_among_them(page: Page, ten_ranks: str, shot: Shot) -> None:
    page.goto(f"{ten_ranks}#/trace")
    together = page.get_by_role("button", name="in one view")
    texts = together.all_inner_texts()
    ranks = [[int(rank) for rank in re.findall(r"\d+", text)] for text in texts]
    assert [len(one) for one in ranks] == [4, 8]
    assert all(9 in one for one in ranks)
    together.nth(1).click()
    page.wait_for_selector(".tv-stage[data-frames]")
    first, *others = ranks[1]
    text = heads(page)
    assert f"rank {first} · device 0\nclock of the view" in text
    assert all(re.search(rf"rank {rank} · device 0\n± \d", text) for rank in others)
    note = page.locator(".trace-beside p").inner_text()
    assert re.fullmatch(rf"on the clock of rank {first}, ± \S+ \S+ at most", note)
    shot(page)
    page.set_viewport_size({"width": 390, "height": 844})
    # A phone has no room for both: which rank it is stays.
    assert page.locator(".tv-clock").first.is_hidden()
    names = page.locator(".tv-heads-inner .tv-group button")
    assert (names.first.get_attribute("title") or "").endswith("clock of the view")
    assert (names.nth(1).bounding_box() or {"width": 0})["width"] > 80


def test_a_collective_leads_to_the_other_ranks(page: Page, job: str, shot: Shot) -> None:
    opened(page, job, "trace?run=1")
    options = beside(page).locator("option").all_inner_texts()
    put_beside(page, options[-1])
    search = page.get_by_label("Search slices")
    search.fill("kind:collective")
    search.press("Enter")
    settled(page)
    page.locator(".tv-stage").focus()
    page.keyboard.press("Enter")
    tab(page, "Details")
    shot(page)
    told = re.findall(r"collective (rank \d) nccl", page.locator(".tv-panel-body").inner_text())
    assert len(told) == 3
    assert len(set(told)) == 3
    page.locator(".tv-stage").focus()
    page.keyboard.press("]")
    settled(page)
    assert told[0] in page.locator(".tv-panel-body").inner_text()


def test_a_report_of_one_run_offers_none(page: Page, reports: Callable[[str], str]) -> None:
    opened(page, reports("example"))
    assert page.locator(".trace-beside").is_hidden()
