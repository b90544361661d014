"""What pages say about their own figures: legends, what the choice of steps covers, ways on to the trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

from stepscope.units import format_ns, format_share
from tests.browser.test_report_pages import H100, V100, open_page
from tests.support import real_profile

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]


def analyses(trace: str) -> dict[str, Any]:
    found: dict[str, Any] = real_profile(trace).document()["analyses"]
    return found


@pytest.mark.real
def test_points_of_the_roofline_have_the_colour_of_what_bounds_them(shared_page: Page, reports: Reports) -> None:
    rows = [row for row in analyses(H100)["roofline"]["ops"] if row["intensity"] and row["flops_per_s"]]
    open_page(shared_page, reports(H100), "kernels")
    drawn = Counter({bound: shared_page.locator(f".scatter .bound-{bound}").count() for bound in BOUNDS})
    assert drawn == Counter(row["bound"] or "unknown" for row in rows)
    keys = shared_page.locator("section:has(.scatter) .keys").inner_text()
    assert {bound for bound, words in BOUNDS.items() if words in keys} == set(+drawn)


@pytest.mark.real
def test_every_page_says_what_of_it_is_of_the_chosen_steps(shared_page: Page, reports: Reports) -> None:
    document = real_profile(V100).document()
    rows = [row for row in document["accounting"] if row["phase"] == "step" and row["step"] in (1, 2, 3)]
    busy = {part["category"]: part["busy"] for part in document["analyses"]["breakdown"][0]["parts"]}
    whole = sum(row["dur_ns"] for row in rows)
    worked = sum(ns for row in rows for category, ns in row["parts"].items() if busy[category])

    open_page(shared_page, reports(V100), "overview?steps=6-8")
    figures = shared_page.locator(".tiles .of-steps").all_inner_texts()
    assert figures[0].split("\n") == ["step time", format_ns(round(whole / 3)), "mean of steps 6 to 8"]
    assert figures[1].split("\n") == ["device busy", format_share(worked / whole), "of steps 6 to 8"]
    note = shared_page.locator(".scope")
    assert "Of steps 6 to 8 only:" in note.inner_text()
    assert "“Each step”" in note.inner_text()

    open_page(shared_page, reports(V100), "input?steps=6-8")
    waited = format_ns(round(sum(row["parts"]["input"] for row in rows) / 3))
    assert waited in shared_page.locator(".tiles .of-steps").inner_text()

    open_page(shared_page, reports(V100), "kernels?steps=6-8")
    assert waited in shared_page.locator("section:has(h2:text-is('Idle time by cause, per step'))").inner_text()
    open_page(shared_page, reports(V100), "ops?steps=6-8")
    assert "all steps used together" in note.inner_text()
    open_page(shared_page, reports(V100), "memory?steps=6-8")
    pairs = shared_page.locator("section:has(h2:text-is('Growth from step to step')) tbody td:first-child")
    grown = document["analyses"]["memory"]["pools"][0]["growth"]["steps"]
    assert pairs.all_inner_texts() == [f"{step + 4} → {step + 5}" for step in grown if step <= 3]

    # The trace opens at the steps.
    first, last = document["steps"][1], document["steps"][3]
    shared_page.goto(f"{reports(V100)}#/trace?steps=6-8")
    shared_page.wait_for_url(lambda url: "start=" in url)
    shown = parse_qs(shared_page.url.partition("?")[2])
    assert int(shown["start"][0]) < first["start_ns"]
    assert last["start_ns"] + last["dur_ns"] < int(shown["end"][0]) < document["steps"][5]["start_ns"]


@pytest.mark.real
def test_ops_and_kernels_lead_to_their_slices(shared_page: Page, reports: Reports) -> None:
    for name, panel in (("ops", "Ops by type"), ("kernels", "Kernels by time")):
        open_page(shared_page, reports(V100), name)
        row = shared_page.locator(f"section:has(h2:text-is('{panel}')) tbody tr").first
        row.get_by_role("button", name="Trace").click()
        shared_page.wait_for_url(lambda url: "#/trace" in url and "find=" in url)
        found = parse_qs(shared_page.url.partition("?")[2])["find"][0]
        document = analyses(V100)
        expected = document["ops"]["by_type"][0]["op"] if name == "ops" else document["kernels"][0]["name"]
        assert found == f'name="{expected}"'
        shared_page.get_by_text(re.compile(r"^[\d,]+ · [\d.]+ ms$")).first.wait_for()


@pytest.mark.real
def test_no_two_places_of_an_op_look_alike(shared_page: Page, reports: Reports) -> None:
    open_page(shared_page, reports(V100), "ops")
    rows = shared_page.locator("section:has(h2:text-is('Ops by place')) tbody tr")
    cells = [(row.locator("td").first.inner_text(), row.locator("td").nth(6).inner_text()) for row in rows.all()[:12]]
    assert len(set(cells)) == len(cells)
    assert "with_modules=True" in shared_page.locator("section:has(h2:text-is('Layers'))").inner_text()


@pytest.mark.real
def test_phases_are_shown(shared_page: Page, reports: Reports) -> None:
    document = real_profile(V100).document()
    open_page(shared_page, reports(V100), "overview")
    phases = shared_page.locator("section:has(h2:text-is('Device time by phase'))").inner_text()
    for ns in document["summary"]["phases_ns_per_step"].values():
        assert not ns or format_ns(ns) in phases


@pytest.mark.real
def test_runs_that_could_be_fused_are_shown(shared_page: Page, reports: Reports) -> None:
    document = real_profile(H100).document()
    open_page(shared_page, reports(H100), "kernels")
    (chain,) = [one for one in document["findings"] if one["rule"] == "memory_bound_chain"]
    fused = shared_page.locator("section:has(h2:text-is('Fusion candidates'))")
    assert chain["title"] in fused.inner_text()
    assert fused.get_by_role("button", name="Show in trace").count() == 1


def test_without_a_device_the_host_works(shared_page: Page, reports: Reports) -> None:
    open_page(shared_page, reports("example"), "overview")
    assert "plain: the host works" in shared_page.locator("main").inner_text()


BOUNDS = {
    "compute": "bound by computing",
    "memory": "bound by memory",
    "neither": "near neither roof",
    "unknown": "what bounds it is not known",
}
