"""The pages of a job's ranks and of two runs compared, as the commands write them."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stepscope import cli, pipeline
from stepscope.jobs import Job
from stepscope.report import comparison as report
from stepscope.units import format_ns
from tests.kit import example_ranks
from tests.web.reports import EXAMPLES, HOSTILE, hostile_profile

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Shot = Callable[["Page"], None]

BEFORE, AFTER = (EXAMPLES / f"simulated_masked_loss_{which}.json.gz" for which in ("before", "after"))
FIXED = EXAMPLES / "cpu_input_fixed.json.gz"
UNTOLD = re.compile(r"\b(undefined|NaN|null|\[object|Infinity)\b")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module")
def job(folder: Path) -> str:
    out = folder / "job.html"
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--format", "html", "-o", str(out)]) == 0
    return out.as_uri()


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return pipeline.open(example_ranks.FOLDER).document()


@pytest.fixture(scope="module")
def compared(folder: Path) -> str:
    out = folder / "compare.html"
    assert cli.main(["compare", str(BEFORE), str(AFTER), "--format", "html", "-o", str(out)]) == 0
    return out.as_uri()


@pytest.fixture(scope="module")
def comparison(folder: Path) -> dict[str, Any]:
    out = folder / "compare.json"
    assert cli.main(["compare", str(BEFORE), str(AFTER), "--format", "json", "-o", str(out)]) == 0
    return dict(json.loads(out.read_text(encoding="utf-8")))


def open_page(page: Page, address: str, name: str) -> str:
    page.goto(f"{address}#/{name}")
    page.wait_for_selector("main .page")
    return page.locator("main").inner_text()


def profiles(page: Page) -> Any:
    return page.locator(".top select[aria-label=Profile]")


def shown(page: Page) -> str:
    """The chosen profile."""
    return str(profiles(page).evaluate("(one) => one.selectedOptions[0].text"))


def section(page: Page, title: str) -> Any:
    return page.locator(f'section:has(h2:text-is("{title}"))')


@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
def test_ranks(page: Page, job: str, document: dict[str, Any], shot: Shot, theme: str) -> None:
    open_page(page, job, "ranks")
    page.get_by_label("Theme").select_option(theme)
    text = page.locator("main").inner_text()
    assert not UNTOLD.search(text), text
    (late,) = document["analyses"]["ranks"]["stragglers"]
    stragglers = section(page, "Stragglers").locator("tbody tr").inner_text()
    for said in (late["host"], format_ns(late["waited_ns_per_step"]), "input"):
        assert said in stragglers
    rows = section(page, "Whom each step waited for").locator("tbody tr").all_inner_texts()
    for step, row in zip(late_steps(document), rows, strict=True):
        assert format_ns(step["waited_ns"]) in row
    (traffic,) = document["analyses"]["collectives"]
    collectives = section(page, "Collectives").locator("tbody").inner_text()
    for ns in (traffic["wait_ns"], traffic["transfer_ns"], traffic["exposed_ns_per_step"]):
        assert format_ns(ns) in collectives
    clocks = section(page, "Clocks").locator("tbody tr").all_inner_texts()
    for clock, row in zip(document["analyses"]["ranks"]["clocks"], clocks, strict=True):
        assert format_ns(clock["uncertainty_ns"]) in row
    shot(page)


def late_steps(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["analyses"]["ranks"]["steps"])


def test_the_heat_map_tells_each_cell_by_keys(page: Page, job: str, document: dict[str, Any]) -> None:
    open_page(page, job, "ranks")
    first = late_steps(document)[0]
    plot = page.locator(".heat-plot")
    plot.focus()
    page.keyboard.press("ArrowDown")
    for _ in range(first["rank"]):
        page.keyboard.press("ArrowDown")
    said = page.locator("[aria-live=polite]").inner_text()
    assert f"rank {first['rank']}, step {first['number']}" in said
    assert f"the others waited for it {format_ns(first['waited_ns'])}" in said
    assert format_ns(first["waited_ns"]) in page.locator(".tip").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_selector(".trace-host")
    assert shown(page).startswith(f"rank {first['rank']}:")
    page.wait_for_selector(".trace-host canvas")


def test_the_heat_map_shows_other_measures_and_is_a_table(page: Page, job: str, document: dict[str, Any]) -> None:
    open_page(page, job, "ranks")
    row = next(row for row in document["accounting"] if (row["rank"], row["step"]) == (2, 1))
    page.get_by_label("What the cells show").select_option("waiting for input data")
    assert format_ns(row["parts"]["input"]) in page.locator(".heat-values").inner_text()
    page.get_by_label("What the cells show").select_option("step time")
    assert format_ns(row["dur_ns"]) in page.locator(".heat-values").inner_text()
    panel = section(page, "Each rank in each step")
    panel.get_by_role("button", name="Table", exact=True).click()
    assert panel.locator("tbody tr").count() == len([one for one in document["accounting"] if one["phase"] == "step"])


def test_the_overview_of_a_job(page: Page, job: str, document: dict[str, Any], shot: Shot) -> None:
    text = open_page(page, job, "overview")
    assert document["summary"]["verdict"] in text
    assert not UNTOLD.search(text), text
    waits = document["summary"]["parts_ns_per_step"]["collective_wait"]
    assert format_ns(waits) in page.locator(".legend").inner_text()
    page.get_by_label("Device").select_option(index=3)
    assert section(page, "Each step").get_by_role("application").count() == 1
    assert page.locator("h2", has_text="(rank 2, device 0").count() == 1
    shot(page)


def test_a_finding_of_a_rank_leads_to_its_trace(page: Page, job: str, document: dict[str, Any]) -> None:
    open_page(page, job, "overview")
    rank = document["findings"][0]["rank"]
    page.get_by_role("button", name="Show in trace").first.click()
    page.wait_for_url("**#/trace?**")
    assert shown(page).startswith(f"rank {rank}:")


@pytest.mark.parametrize("name", ["input", "kernels", "memory", "trace"])
def test_pages_of_all_ranks_lead_to_each(page: Page, job: str, name: str) -> None:
    open_page(page, job, name)
    together = ["Ranks 0, 1, 2, 3 in one view"] if name == "trace" else []
    assert page.locator(".choices button").all_inner_texts() == together + [f"Rank {rank}" for rank in range(4)]
    page.locator(".choices").get_by_role("button", name="Rank 3").click()
    page.wait_for_selector("main:not(:has(.choices)) .page")
    assert shown(page).startswith("rank 3:")
    assert page.locator("nav a[aria-current=page]").inner_text().lower().startswith(name)


def test_a_page_of_a_job_has_its_ranks_by_name(page: Page, job: str, document: dict[str, Any]) -> None:
    open_page(page, job, "input")
    loader = document["analyses"]["over_ranks"]["stages"][0]
    row = section(page, "Stages of the input pipeline over the ranks").locator("tbody tr").first
    for said in (format_ns(loader["mean_ns_per_step"]), format_ns(loader["each"][0]["ns_per_step"]), "rank 2"):
        assert said in row.inner_text()
    open_page(page, job, "kernels")
    first = document["analyses"]["over_ranks"]["kernels"][0]
    kernels = section(page, "Kernels over the ranks").locator("tbody tr")
    kernels.first.get_by_role("button", name="× 4").click()
    opened = page.locator("tr.inner").all_inner_texts()
    assert [format_ns(one["ns_per_step"]) in text for one, text in zip(first["each"], opened, strict=True)] == [
        True
    ] * 4
    page.locator("tr.inner").nth(1).get_by_role("button").click()
    page.wait_for_selector("main:not(:has(.choices)) .page")
    assert shown(page).startswith(f"rank {first['each'][1]['rank']}:")
    assert page.get_by_label("Filter Kernels").input_value() == first["name"]


def test_the_trace_of_a_job_shows_its_ranks_in_one_view(page: Page, job: str) -> None:
    open_page(page, job, "trace")
    page.get_by_role("button", name="Ranks 0, 1, 2, 3 in one view").click()
    page.wait_for_url("**#/trace?*beside=*")
    page.locator(".trace-body").get_by_text("rank 3").first.wait_for()
    assert set(re.findall(r"rank \d · device 0", page.locator(".trace-body").inner_text())) == {
        f"rank {rank} · device 0" for rank in range(4)
    }


def test_a_page_of_a_job_asks_its_ranks(page: Page, job: str) -> None:
    open_page(page, job, "kernels")
    page.keyboard.press("a")
    box = page.get_by_role("dialog", name="Ask the trace")
    box.get_by_label("Query", exact=True).fill("kind:kernel group by rank")
    page.keyboard.press("Enter")
    box.locator("tbody tr").first.wait_for()
    assert sorted(row.split()[0] for row in box.locator("tbody tr").all_inner_texts()) == ["0", "1", "2", "3"]
    box.get_by_role("button", name="Show in the trace").click()
    page.wait_for_url("**#/trace?*beside=*")
    page.locator(".tv-answer tbody tr").nth(3).wait_for()


def test_ranks_beyond_the_limit_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, page: Page
) -> None:
    monkeypatch.setattr("stepscope.cli.pages.RANK_PAGES", 1)
    out = folder / "few.html"
    assert cli.main(["diagnose", str(example_ranks.FOLDER), "--format", "html", "-o", str(out)]) == 0
    assert "1 of 4 ranks" in capsys.readouterr().err
    text = open_page(page, out.as_uri(), "trace")
    assert "1 of 4 ranks" in text
    assert page.locator(".choices button").all_inner_texts() == [f"Rank {example_ranks.LATE}"]


@pytest.mark.parametrize(
    ("path", "bound"),
    [(example_ranks.FOLDER / "rank0.json.gz", "≤"), (EXAMPLES / "jax_eight_devices.xplane.pb.gz", "")],
)
def test_one_profile_alone_has_its_collectives(page: Page, folder: Path, path: Path, bound: str) -> None:
    out = folder / f"{path.name}.html"
    assert cli.main(["diagnose", str(path), "--format", "html", "-o", str(out)]) == 0
    page.goto(f"{out.as_uri()}#/ranks")
    table = page.get_by_role("table", name="Collectives").first
    assert "all-reduce" in table.inner_text()
    assert ("≤" in table.inner_text()) == bool(bound)
    assert not UNTOLD.search(page.inner_text("main"))


def test_what_is_not_determined_is_said(page: Page, folder: Path) -> None:
    made = pipeline.open(example_ranks.FOLDER)
    assert isinstance(made, Job)
    ranks, collectives = made.document()["analyses"]["ranks"], made.document()["analyses"]["collectives"]
    ranks.update(determined=False, stragglers=[], steps=[])
    for row in ranks["per_rank"]:
        row.update(made_wait_ns_per_step=None, late_steps=None)
    for clock in ranks["clocks"][1:]:
        clock.update(offset_ns=None, drift=None, at_ns=None, uncertainty_ns=None)
    collectives[0].update(wait_ns=None, exposed_ns_per_step=None, algorithm_bandwidth=None, bus_bandwidth=None)
    (folder / "untold.html").write_text(made.html(), encoding="utf-8")
    text = open_page(page, (folder / "untold.html").as_uri(), "ranks")
    assert "Who was late is not determined" in text
    assert "Whether a rank is late beyond chance is not determined" in text
    assert section(page, "Clocks").locator("tbody").inner_text().count("not determined") == 9
    assert section(page, "Collectives").locator("tbody").inner_text().count("not determined") == 2
    assert page.get_by_label("What the cells show").evaluate("(one) => one.value") == "time"
    assert not UNTOLD.search(text), text


@pytest.mark.parametrize("theme", ["light", "dark", "contrast"])
def test_compare(page: Page, compared: str, comparison: dict[str, Any], shot: Shot, theme: str) -> None:
    page.goto(compared)
    page.wait_for_selector("main .page.compare")
    page.get_by_label("Theme").select_option(theme)
    text = page.locator("main").inner_text()
    assert not UNTOLD.search(text), text
    assert page.locator(".sentence").inner_text() == report.sentence(comparison)
    assert str(report.achieved(comparison)).replace("`", "") in text
    for line in map(report.finding, comparison["findings"]):
        assert line.replace("`", "") in section(page, "Findings").inner_text()
    parts = section(page, "Where each step's time goes").locator("tbody tr").all_inner_texts()
    for part, row in zip(comparison["parts"], parts, strict=True):
        assert part["label"] in row
        assert format_ns(part["before_ns"]) in row
    for title in ("kernels", "ops"):
        names = section(page, title.capitalize()).locator("tbody tr td:first-child").all_inner_texts()
        assert names == [item["name"] for item in comparison[title]]
    shot(page)


def test_the_difference_is_a_flame_graph_and_a_table(
    page: Page, compared: str, comparison: dict[str, Any], shot: Shot
) -> None:
    open_page(page, compared, "compare")
    panel = section(page, "Difference by op and kernel")
    boxes = panel.get_by_role("treeitem")
    gone = next(box for box in comparison["work"] if not box["after_ns"])
    said = f"{'/'.join(gone['path'])}: −{format_ns(gone['before_ns'])} per step"
    box = panel.get_by_role("treeitem", name=said, exact=True)
    new = next(box for box in comparison["work"] if not box["before_ns"])
    assert "shrank" in str(box.get_attribute("class"))
    grown = panel.get_by_role("treeitem", name=f"{'/'.join(new['path'])}: +{format_ns(new['after_ns'])} per step")
    assert "grew" in str(grown.get_attribute("class"))
    colours = [one.evaluate("(one) => getComputedStyle(one).backgroundColor") for one in (box, grown, boxes.first)]
    assert len(set(colours)) == 3
    tops = {one.evaluate("(one) => one.getBoundingClientRect().top") for one in boxes.all()}
    assert len(tops) == max(len(box["path"]) for box in comparison["work"])
    shot(page)
    panel.get_by_role("button", name="Table", exact=True).click()
    assert panel.locator("tbody tr").count() == min(len(comparison["work"]), 100)


def test_the_python_of_both_runs_is_a_difference_flame_graph(
    page: Page, compared: str, comparison: dict[str, Any], shot: Shot
) -> None:
    open_page(page, compared, "compare")
    panel = section(page, "Difference by Python function")
    calls = comparison["calls"]
    call = max(calls, key=lambda one: one["before_ns"] - one["after_ns"])
    path, at = [call["name"]], call["caller"]
    while at >= 0:
        path, at = [calls[at]["name"], *path], calls[at]["caller"]
    said = f"{'/'.join(path)}: −{format_ns(call['before_ns'] - call['after_ns'])} per step"
    assert panel.get_by_role("treeitem", name=said, exact=True).is_visible()
    panel.scroll_into_view_if_needed()
    shot(page)
    panel.get_by_role("button", name="Table").click()
    assert panel.locator("tbody tr").count() == min(len(calls), 100)


def test_each_step_is_a_dot(page: Page, compared: str, comparison: dict[str, Any]) -> None:
    open_page(page, compared, "compare")
    both = [*comparison["before"]["step_ns"], *comparison["after"]["step_ns"]]
    assert page.locator(".dots circle").count() == len(both)
    page.locator(".dots-plot").focus()
    page.keyboard.press("End")
    said = page.locator("[aria-live=polite]").inner_text()
    assert said == f"after, used step 6 of 6: {format_ns(both[-1])}"
    assert page.locator(".tip").inner_text() == said
    section(page, "Step times").get_by_role("button", name="Table", exact=True).click()
    rows = section(page, "Step times").locator("tbody tr").all_inner_texts()
    assert [format_ns(ns) in row for ns, row in zip(both, rows, strict=True)] == [True] * len(both)


def test_both_runs_stand_beside_their_comparison(page: Page, compared: str) -> None:
    open_page(page, compared, "overview")
    assert profiles(page).locator("option").all_inner_texts() == [
        f"before: {BEFORE.name}", f"after: {AFTER.name}",
    ]  # fmt: skip
    profiles(page).select_option(index=1)
    page.wait_for_selector(f"bdi:text('{AFTER.name}')")
    assert shown(page) == f"after: {AFTER.name}"
    open_page(page, compared, "trace")
    page.wait_for_selector(".trace-host canvas")


def test_names_of_ranks_stay_text(page: Page, tmp_path: Path) -> None:
    attacks = {f"layer_0_{k}": attack for k, attack in enumerate(HOSTILE)}
    for path in sorted(example_ranks.FOLDER.iterdir()):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        trace["host_name"] = HOSTILE[1]
        for event in trace["traceEvents"]:
            event["name"] = attacks.get(event["name"], event["name"])
        (tmp_path / path.name.removesuffix(".gz")).write_text(json.dumps(trace), encoding="utf-8")
    out = tmp_path / "<b>job.html"
    out.write_text(pipeline.open(tmp_path).html(), encoding="utf-8")
    for name in ("overview", "ranks", "trace"):
        open_page(page, out.as_uri(), name)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main iframe, main script, main a[href]:not([href^='#/'])").count() == 0
    text = open_page(page, out.as_uri(), "ranks")
    assert HOSTILE[1] in text


def test_names_of_compared_runs_stay_text(page: Page, tmp_path: Path) -> None:
    out = tmp_path / "compare.html"
    hostile = hostile_profile(tmp_path)
    assert cli.main(["compare", str(hostile), str(FIXED), "--format", "html", "-o", str(out)]) == 0
    text = open_page(page, out.as_uri(), "compare")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main iframe, main script, main a[href]:not([href^='#/'])").count() == 0
    assert HOSTILE[1] in text
    assert "\u202e" not in text
    longest = "Math.max(0, ...[...document.querySelectorAll('main *')].map((one) => one.textContent.length))"
    assert page.evaluate(longest) < 200_000


def test_a_page_of_a_comparison_goes_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["compare", str(BEFORE), str(AFTER), "--format", "html"]) == 2
    assert "-o compare.html" in capsys.readouterr().err
