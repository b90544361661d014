"""What is in sight in the trace before anyone does anything, and what goes out of sight again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stepscope
from tests.browser.trace_steps import opened, panel, pressed, settled, span, tab
from tests.support import real_profile

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
Shot = Callable[["Page"], None]


def _late(path: Path) -> str:
    """The report of a profile of ten seconds, all of whose work is in the last two milliseconds."""

    def event(name: str, cat: str, tid: int, at: float, dur: float, **args: Any) -> dict[str, Any]:
        return {"ph": "X", "name": name, "cat": cat, "pid": 0 if cat == "kernel" else 9, "tid": tid, "ts": at,
                "dur": dur, "args": args}  # fmt: skip

    events = [event("aten::empty", "cpu_op", 9, 0, 2)]
    for k in range(200):
        at = 10_000_000 + k * 10
        events += [
            event("cudaLaunchKernel", "cuda_runtime", 9, at, 3, correlation=k + 1),
            event("gemm", "kernel", 7, at + 5, 4, correlation=k + 1, device=0, stream=7),
        ]
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": events}
    profile = path / "late.pt.trace.json"
    profile.write_text(json.dumps(document))
    (path / "late.html").write_text(stepscope.open(profile).html(), encoding="utf-8")
    return (path / "late.html").as_uri()


@pytest.mark.slow
def test_the_first_view_is_of_where_the_work_is(page: Page, tmp_path: Path, shot: Shot) -> None:
    opened(page, _late(tmp_path))
    assert span(page) == "2.49 ms in sight"
    shot(page)
    pressed(page, "0")
    assert span(page).startswith("10.2 s")


@pytest.mark.slow
def test_the_keys_are_shown_from_their_beginning(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1000, "height": 500})
    opened(page, reports("example"))
    pressed(page, "?")
    dialog = page.locator(".tv-dialog")
    assert dialog.evaluate("(one) => one.scrollHeight > one.clientHeight")
    assert dialog.evaluate("(one) => one.scrollTop") == 0
    page.keyboard.press("Escape")


def test_a_kept_note_asks_for_its_name(page: Page, reports: Reports) -> None:
    opened(page, reports("example"))
    page.evaluate("localStorage.clear()")
    opened(page, reports("example"))
    # Also where nothing has the keyboard but the viewer itself: a click on what is no control.
    page.locator(".tv-range").click()
    page.keyboard.press("x")
    page.keyboard.press("Shift+M")
    page.wait_for_selector("[aria-label='Name of the note']:focus")
    page.keyboard.type("slow loader")
    page.keyboard.press("Enter")
    settled(page)
    assert page.get_by_label("Name of the note").input_value() == "slow loader"
    assert page.evaluate("document.activeElement.className") == "tv-stage"


@pytest.mark.slow
def test_a_measure_goes_when_something_is_selected(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports("example"))
    box = page.locator(".tv-ruler").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 8, steps=4)
    page.mouse.up()
    settled(page)
    assert "measured" in panel(page)
    # The label of the measure in the ruler, by its colour.
    accent = """() => { const c = document.querySelector('.tv-ruler'), x = c.getContext('2d');
        const [r, g, b] = getComputedStyle(c).getPropertyValue('--tv-accent').match(/[0-9a-f]{2}/gi)
          .map((one) => parseInt(one, 16));
        const { data } = x.getImageData(0, 0, c.width, c.height); let n = 0;
        for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === g && data[i + 2] === b;
        return n; }"""
    assert page.evaluate(accent) > 100
    pressed(page, "/")
    page.keyboard.type("kind:host_op")
    page.keyboard.press("Enter")
    settled(page)
    pressed(page, "n")
    shot(page)
    assert page.evaluate(accent) == 0


@pytest.mark.real
def test_the_critical_path_is_a_track_and_a_list(page: Page, reports: Reports, shot: Shot) -> None:
    name = "kineto/mi300_vllm_decode.json.gz"
    profile = real_profile(name)
    assert isinstance(profile, stepscope.Profile)
    path = profile.document()["analyses"]["critical_path"]
    opened(page, reports(name))
    assert page.locator(".tv-heads-inner .tv-name").all_inner_texts()[0].endswith("critical path")
    tab(page, "Critical path")
    rows = page.locator(".tv-panel-body tbody tr")
    assert rows.count() == len(path["ops"])
    assert path["ops"][0]["name"][:40] in rows.first.inner_text()
    shot(page)
    rows.first.locator("button").click()
    settled(page)
    assert page.locator(".tv-count").inner_text().startswith(f"{path['ops'][0]['count']} ")
    assert "kind:critical" in page.locator(".tv-search").input_value()
    # Each of its slices stands once more on its own track: sums count no time twice.
    pressed(page, "/")
    page.keyboard.press("Control+a")
    page.keyboard.type(f'name="{path["ops"][0]["name"]}"')
    settled(page)
    slices = profile.query(f"SELECT COUNT(*) AS n FROM ops WHERE name = '{path['ops'][0]['name']}'")
    assert page.locator(".tv-count").inner_text().startswith(f"{slices['n'][0]} ")


@pytest.mark.slow
def test_the_panel_is_a_line_until_something_is_selected(page: Page, reports: Reports, shot: Shot) -> None:
    opened(page, reports("example"))
    settled(page)
    shot(page)
    height = "(one) => one.getBoundingClientRect().height"
    tracks, viewer = page.locator(".tv-stage"), page.locator(".tv-root")
    assert tracks.evaluate(height) >= viewer.evaluate(height) * 2 / 3
    pressed(page, "/")
    page.keyboard.type("kind:host_op")
    page.keyboard.press("Enter")
    tab(page, "Details")
    assert page.locator(".tv-panel").evaluate(height) == 250
    pressed(page, "Escape")
    assert page.locator(".tv-panel").evaluate(height) < 70


@pytest.mark.slow
def test_the_toolbar_is_one_row_on_a_small_laptop(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    opened(page, reports("example"))
    settled(page)
    parts = page.locator(".tv-bar > :visible").evaluate_all(
        "(all) => all.filter((one) => one.offsetHeight).map((one) => one.offsetTop + one.offsetHeight / 2)"
    )
    assert len(parts) > 8
    assert max(parts) - min(parts) < 10
