"""Hands on the trace: a mouse as in Perfetto, fingers, the way back, and what is said to who does not see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest

import stepscope
from tests.browser.trace_steps import command, heads, opened, panel, pressed, settled, span
from tests.kit.drawing import draw
from tests.kit.kineto_writer import write_kineto

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Reports = Callable[[str], str]
SMALL = "simulated_masked_loss_before.json.gz"


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page that is touched."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, reduced_motion="reduce")
    context.set_default_timeout(15_000)
    yield context.new_page()
    context.close()


def dragged(page: Page, *, shift: bool = False, button: Any = "left") -> None:
    """Drag over the tracks, from a third of their width to half of it."""
    box = page.locator(".tv-stage").bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 3, y)
    if shift:
        page.keyboard.down("Shift")
    page.mouse.down(button=button)
    page.mouse.move(box["x"] + box["width"] / 2, y + 30, steps=4)
    page.mouse.up(button=button)
    page.keyboard.up("Shift")
    settled(page)


def sight(page: Page) -> tuple[float, float]:
    """The stretch in sight, by the address."""
    page.wait_for_timeout(400)
    params = parse_qs(page.url.partition("?")[2])
    return float(params["start"][0]), float(params["end"][0])


def test_dragging_selects_where_one_wants_perfettos_mouse(page: Page, reports: Reports) -> None:
    opened(page, reports(SMALL))
    pressed(page, "x")
    before = sight(page)
    dragged(page)
    assert sight(page) != before
    assert "Slices in the range" not in page.locator(".tv-panel-body").inner_html()
    page.get_by_role("button", name="drag: pan").click()
    before = sight(page)
    dragged(page)
    assert "Slices in the range" in page.locator(".tv-panel-body").inner_html()
    assert sight(page) == before
    dragged(page, shift=True)
    assert (panned := sight(page)) != before
    dragged(page, button="middle")
    assert sight(page) != panned
    opened(page, reports(SMALL))
    assert page.get_by_role("button", name="drag: select").is_visible(), "the choice is kept"
    pressed(page, "v")
    assert page.get_by_role("button", name="drag: pan").is_visible()


@pytest.mark.parametrize(("back", "forward"), [("Control+z", "Control+Shift+Z"), ("Alt+ArrowLeft", "Alt+ArrowRight")])
def test_a_change_of_the_view_is_undone(page: Page, reports: Reports, back: str, forward: str) -> None:
    opened(page, reports(SMALL))
    pressed(page, "0")
    whole = span(page)
    pressed(page, "x")
    step = span(page)
    assert step != whole
    pressed(page, back)
    assert span(page) == whole
    pressed(page, forward)
    assert span(page) == step
    assert "#/trace" in page.url


def test_scrolling_and_the_order_of_tracks_are_undone(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1440, "height": 420})
    opened(page, reports("example"))
    before = heads(page)
    track = page.locator(".tv-heads-inner .tv-head").filter(has=page.locator("[title='Move down']")).first
    track.hover()
    track.get_by_role("button", name="Move down").click()
    settled(page)
    moved = heads(page)
    assert sorted(moved) == sorted(before) != before != moved
    page.wait_for_timeout(700)  # another gesture
    top = page.locator(".tv-heads-inner").evaluate("(one) => one.firstElementChild.getBoundingClientRect().top")
    pressed(page, "ArrowDown")
    scrolled = page.locator(".tv-heads-inner").evaluate("(one) => one.firstElementChild.getBoundingClientRect().top")
    assert scrolled < top
    pressed(page, "Control+z")
    assert page.locator(".tv-heads-inner").evaluate("(one) => one.firstElementChild.getBoundingClientRect().top") == top
    assert heads(page) == moved
    pressed(page, "Control+z")
    assert heads(page) == before
    pressed(page, "Control+Shift+Z")
    assert heads(page) == moved


def touch(page: Page, *moves: list[tuple[float, float]]) -> None:
    """Fingers that go down at the first places, move to the others, and lift."""
    session = page.context.new_cdp_session(page)
    for at, places in enumerate(moves):
        points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
        session.send("Input.dispatchTouchEvent", {"type": "touchMove" if at else "touchStart", "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    settled(page)


def test_fingers_pinch_pan_and_tap(phone: Page, reports: Reports) -> None:
    opened(phone, reports(SMALL))
    pressed(phone, "x")
    box = phone.locator(".tv-stage").bounding_box()
    assert box
    middle, y = box["x"] + box["width"] / 2, box["y"] + 40
    first = sight(phone)
    fingers = [[(middle - by, y), (middle + by, y)] for by in (30, 40, 50, 60)]
    touch(phone, *fingers)
    second = sight(phone)
    assert (second[1] - second[0]) / (first[1] - first[0]) == pytest.approx(0.5, rel=0.02)
    assert sum(second) == pytest.approx(sum(first), rel=0.01), "the middle stays under the fingers"
    touch(phone, *([(middle + by, y)] for by in (0, 20, 40, 60)))
    third = sight(phone)
    moved = (second[0] - third[0]) / (second[1] - second[0])
    assert moved == pytest.approx(60 / box["width"], rel=0.2)
    assert third[1] - third[0] == pytest.approx(second[1] - second[0])
    touch(phone, *fingers[::-1])
    fourth = sight(phone)
    assert (fourth[1] - fourth[0]) / (third[1] - third[0]) == pytest.approx(2, rel=0.02)


def test_tracks_say_what_they_are(page: Page, reports: Reports) -> None:
    opened(page, reports(SMALL))
    stream = page.get_by_role("list", name="Tracks").get_by_role("button", name="stream 7, stream, ")
    assert stream.first.is_visible()
    command(page, "longest idle gap")
    assert ", idle, " in (said := page.locator(".tv-live").inner_text())
    assert ", on " in said


def test_what_is_in_sight_is_a_table(page: Page, reports: Reports) -> None:
    opened(page, reports(SMALL))
    pressed(page, "Escape", "x", "e")
    assert "from" in panel(page)
    rows = page.get_by_role("table", name="Slices in the range").locator("tbody tr")
    assert rows.count() > 5
    assert span(page).split(" in sight")[0] in panel(page)


STREAMS = """
1 char = 10 us
main    |[S                                        ]
main    | abcdef
gpu0/7  |      [a       ]
gpu0/8  |       [b       ]
gpu0/9  |        [c       ]
gpu0/10 |         [d       ]
gpu0/11 |          [e       ]
gpu0/12 |           [f       ]
S = step 5
f = copy HtoD 4096 Pinned
"""


def test_streams_of_one_kind_are_one_row_that_opens_by_click_and_key(
    page: Page, tmp_path: Path, shot: Callable[[Page], None]
) -> None:
    profile = tmp_path / "streams.json"
    profile.write_bytes(write_kineto(draw(STREAMS)))
    report = tmp_path / "streams.html"
    report.write_text(stepscope.open(profile).html(), encoding="utf-8")
    opened(page, report.as_uri(), "trace?start=0&end=430000")
    single = [f"stream {number}" for number in (7, 8, 9, 10, 11)]
    assert "▸ 5 streams" in heads(page)
    assert not set(single) & set(heads(page))
    assert "stream 12" in heads(page)
    fold = page.get_by_role("button", name="5 streams of compute, device 0, folded into one row")
    assert fold.get_attribute("aria-expanded") == "false"
    shot(page)
    row, stage = fold.bounding_box(), page.locator(".tv-stage").bounding_box()
    assert row
    assert stage
    page.mouse.click(stage["x"] + stage["width"] * 195 / 430, row["y"] + row["height"] / 2)
    settled(page)
    assert page.locator(".tv-live").inner_text().startswith("e, kernel, 100000 ns, on stream 11")
    assert "▸ 5 streams" in heads(page)
    fold.click()
    settled(page)
    assert set(single) <= set(heads(page))
    assert "▾ 5 streams" in heads(page)
    pressed(page, "j")
    assert not set(single) & set(heads(page))
    pressed(page, "Control+z")
    assert set(single) <= set(heads(page))
    pressed(page, "Escape", "j")
    assert "stream 8" not in heads(page)
    pressed(page, "t")
    page.keyboard.type("stream 8")
    page.keyboard.press("Enter")
    settled(page)
    assert "stream 8" in heads(page)
