"""Work that was not recorded, and annotations, on the pages and in the trace viewer."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from stepscope.units import format_ns
from tests.analysis.test_annotations import NESTED
from tests.analysis.test_unrecorded import decode, steady
from tests.browser.trace_steps import heads, opened, panel, pressed, settled, tab
from tests.kit.drawing import draw
from tests.kit.events import Event
from tests.kit.kineto_writer import write_kineto

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Shot = Callable[["Page"], None]
LOOKS = [(theme, palette) for theme in ("light", "dark", "contrast") for palette in ("standard", "blind")]


def report(folder: Path, events: list[Event]) -> tuple[str, dict[str, Any]]:
    """The address of the HTML report of some events, and its document."""
    source, page = folder / "trace.json", folder / "report.html"
    source.write_bytes(write_kineto(events))
    profile = stepscope.open(source)
    assert isinstance(profile, stepscope.Profile)
    page.write_text(profile.html(), encoding="utf-8")
    return page.as_uri(), profile.document()


def dressed(page: Page, theme: str, palette: str) -> None:
    page.get_by_label("Theme").select_option(theme)
    page.get_by_label("Colours").select_option(palette)


@pytest.mark.parametrize(("theme", "palette"), LOOKS)
def test_the_overview_has_a_colour_of_its_own_for_work_not_recorded(
    page: Page, tmp_path: Path, shot: Shot, theme: str, palette: str
) -> None:
    address, _ = report(tmp_path, steady(5).events())
    page.goto(f"{address}#/overview")
    page.wait_for_selector("h1:text-is('Overview') + .page")
    dressed(page, theme, palette)
    assert "work not recorded" in page.locator("main").inner_text()
    colours = page.evaluate("""() => {
      const of = (name) => [...document.querySelectorAll(`main .cat-${name}`)].map((one) => {
        const { backgroundColor, fill } = getComputedStyle(one);
        return one instanceof SVGElement ? fill : backgroundColor;
      });
      const probe = document.body.appendChild(document.createElement('i'));
      probe.style.color = 'var(--cat-unrecorded)';
      const wanted = getComputedStyle(probe).color;
      probe.remove();
      return { unrecorded: of('unrecorded'), compute: of('compute'), wanted };
    }""")
    assert len(colours["unrecorded"]) >= 2  # the bar and its legend
    assert set(colours["unrecorded"]) == {colours["wanted"]}
    assert colours["wanted"] not in colours["compute"]
    shot(page)


def pixel(page: Page, x: float, y: float) -> list[int]:
    """What is drawn on the tracks at a place of the page."""
    found: list[int] = page.evaluate(
        """([x, y]) => {
      const canvas = [...document.querySelectorAll('.tv-stage canvas')].find((one) => one.getContext('2d'));
      const box = canvas.getBoundingClientRect();
      const scale = canvas.width / box.width;
      const at = canvas.getContext('2d').getImageData((x - box.left) * scale, (y - box.top) * scale, 1, 1);
      return [...at.data].slice(0, 3);
    }""",
        [x, y],
    )
    return found


@pytest.mark.parametrize(("theme", "palette"), LOOKS)
def test_the_idle_lane_draws_work_not_recorded(
    page: Page, tmp_path: Path, shot: Shot, theme: str, palette: str
) -> None:
    address, _ = report(tmp_path, decode().events())
    opened(page, address)
    dressed(page, theme, palette)
    pressed(page, "0")
    name = "idle, by cause; work not recorded"
    assert name in "\n".join(heads(page))
    head = page.locator(".tv-heads-inner .tv-head", has_text=name).bounding_box()
    stage = page.locator(".tv-stage").bounding_box()
    assert head is not None
    assert stage is not None
    # The device shows nothing for the first 463 of 473 ms.
    x, y = stage["x"] + 0.6 * stage["width"], head["y"] + 8
    tab(page, "Colours")
    swatch = page.evaluate("""() => {
      const row = [...document.querySelectorAll('.tv-panel-body *')].filter((one) => (
        one.children.length && one.textContent.trim() === 'work that was not recorded')).pop();
      return getComputedStyle(row.querySelector('i, span, svg')).backgroundColor;
    }""")
    drawn = pixel(page, x, y)
    told = [int(part) for part in re.findall(r"\d+", swatch)[:3]]
    assert max(abs(one - other) for one, other in zip(drawn, told, strict=True)) <= 3, (drawn, told)
    tab(page, "Details")
    page.mouse.click(x, y)
    settled(page)
    assert "work not recorded" in panel(page)
    assert "It was not idle" in panel(page)
    shot(page)


def test_gaps_are_walked_and_counted_without_work_not_recorded(page: Page, tmp_path: Path) -> None:
    address, document = report(tmp_path, decode().events())
    opened(page, address)
    pressed(page, "0", "i")
    longest = document["analyses"]["idle"]["gaps"][0]
    assert format_ns(longest["dur_ns"]) in panel(page)
    assert "Why the device was idle" in panel(page)
    tab(page, "Gaps")
    page.wait_for_selector(".tv-panel-body tbody tr")
    assert "work not recorded" not in panel(page)


def test_annotations_have_a_table_and_rows_in_the_viewer(page: Page, tmp_path: Path, shot: Shot) -> None:
    address, document = report(tmp_path, draw(NESTED))
    page.goto(f"{address}#/ops")
    page.wait_for_selector("h1:text-is('Ops') + .page")
    section = page.locator("section", has=page.locator("h2:text-is('Annotations')"))
    rows = [row.inner_text().split("\t")[:8] for row in section.locator("tbody tr").all()]
    wanted = []
    for use in document["analyses"]["annotations"]["annotations"]:
        times = (use[of]["per_step"][key] for key in ("host_ns", "device_ns", "idle_ns") for of in ("whole", "own"))
        wanted.append([use["name"], "1", *map(format_ns, times)])
    assert rows == wanted
    shot(page)
    section.locator("tbody tr", has_text="load").get_by_text("Trace").click()
    page.wait_for_selector(".tv-stage[data-frames]")
    settled(page)
    assert [name.removeprefix("▾ ") for name in heads(page)].count("annotations") == 2
    assert page.locator(".tv-count").inner_text().startswith("1 ")
    shot(page)


def test_a_profile_without_annotations_shows_neither(page: Page, tmp_path: Path) -> None:
    address, _ = report(tmp_path, steady(5).events())
    page.goto(f"{address}#/ops")
    page.wait_for_selector("h1:text-is('Ops') + .page")
    assert page.locator("h2:text-is('Annotations')").count() == 0
    opened(page, address)
    assert not [name for name in heads(page) if "annotations" in name]
