"""Each part of a bar leads to what it is made of; several devices are seen together; prints and colours are whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stepscope
from stepscope.units import format_ns, format_share
from stepscope.web.assemble import ShownRun, html_file
from tests.kit.traces import real_trace
from tests.support import real_profile
from tests.web.reports import EXAMPLES

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
Shot = Callable[["Page"], None]
V100, QWEN = "kineto/v100_resnet50_workers0.json.gz", "kineto/h100_qwen05b.json.gz"
JAX = "jax_eight_devices.xplane.pb.gz"


def open_page(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}#/{name}")
    page.wait_for_selector("main .page")


@pytest.mark.real
def test_a_waiting_part_leads_to_its_gaps_by_mouse_and_keyboard(page: Page, reports: Reports) -> None:
    real_trace(V100)
    address = reports(V100)
    for way in ("mouse", "keyboard"):
        open_page(page, address, "overview")
        if way == "mouse":
            page.locator(".hbar .cat-input").click()
        else:
            page.locator(".legend").get_by_role("link", name="waiting for input data").focus()
            page.keyboard.press("Enter")
        section = page.locator("section:has(h2:text-is('Longest idle gaps'))")
        section.wait_for()
        assert {row.strip() for row in section.locator("tbody td:nth-child(4)").all_inner_texts()} == {
            "waiting for input data"
        }
        box = section.bounding_box()
        assert box is not None
        assert 0 <= box["y"] < 600, way


def test_every_entry_of_a_legend_leads_somewhere(page: Page, reports: Reports) -> None:
    for name in ("example", JAX):
        open_page(page, reports(name), "overview")
        entries = page.locator("main .legend td:first-child")
        assert entries.count() > 2
        assert entries.count() == page.locator("main .legend td:first-child a[href^='#/']").count(), name


def test_of_several_devices_the_mean_is_the_verdicts(page: Page, reports: Reports, shot: Shot) -> None:
    document = stepscope.open(EXAMPLES / JAX).document()
    parts = document["summary"]["parts_ns_per_step"]
    open_page(page, reports(JAX), "overview")
    section = page.locator('section:has(h2:text-is("Where each step\'s time goes (mean of 8 devices)"))')
    text = section.inner_text()
    assert format_ns(sum(parts.values())) + " per step" in text
    assert format_ns(sum(parts.values())) in document["summary"]["verdict"]
    for ns in (parts["sync"], parts["compute"], parts["collective"]):
        assert format_ns(ns) in text
    each = page.locator('section:has(h2:text-is("Where each device\'s time goes"))').inner_text()
    for entry in document["analyses"]["breakdown"]:
        assert format_ns(entry["step_ns"]) in each
    tile = page.locator(".tiles > div:has(dt:text-is('step time'))").inner_text()
    assert tile.split("\n")[1] == format_ns(sum(parts.values()))
    waited = format_share(document["summary"]["launch_wait_share"])
    assert f"together, the wait for launches, {waited}" in text
    shot(page)


def test_a_kernel_of_eight_devices_is_a_row_that_opens(page: Page, reports: Reports) -> None:
    rows = stepscope.open(EXAMPLES / JAX).document()["analyses"]["kernels"]
    longest = max({row["name"] for row in rows}, key=lambda name: sum(
        row["total_ns"] for row in rows if row["name"] == name))  # fmt: skip
    same = [row for row in rows if row["name"] == longest]
    open_page(page, reports(JAX), "kernels")
    table = page.get_by_role("table", name="Kernels", exact=True)
    first = table.locator("tbody tr").first
    assert format_ns(sum(row["total_ns"] for row in same)) in first.inner_text()
    toggle = first.get_by_role("button", name=f"× {len(same)}")
    assert not table.locator("tr.inner").first.is_visible()
    toggle.focus()
    page.keyboard.press("Enter")
    shown = [row.inner_text() for row in table.locator("tr.inner:visible").all()]
    assert len(shown) == len(same)
    for row, text in zip(same, shown, strict=True):
        assert format_ns(row["total_ns"]) in text


def test_eight_devices_are_one_chart_of_each_kind_with_a_choice(page: Page, reports: Reports, shot: Shot) -> None:
    address = reports(JAX)
    for name, title in (
        ("input", "Waiting for input in each step, mean of all devices"),
        ("ranks", "Collectives that nothing hides in each step, mean of all devices"),
        ("ops", "Layers by the time of their kernels, device 0"),
        ("kernels", "Idle time by cause, per step, device 0"),
    ):
        open_page(page, address, name)
        panels = page.locator("h2").filter(has_text=re.compile(title.partition(", ")[0]))
        assert panels.all_inner_texts() == [title]
        shot(page)
        page.get_by_label(re.compile("^Device: ")).first.select_option("5")
        page.wait_for_selector(f"h2:has-text('{title.partition(', ')[0]}'):has-text('device 5')")
        assert panels.count() == 1
    duty = page.locator(".tiles > div", has_text="duty cycle")
    assert "mean of 8 devices; 40.5 % (device " in duty.inner_text()


@pytest.mark.real
def test_copies_alone_are_no_input_pipeline(page: Page, reports: Reports) -> None:
    server = "kineto/mi300_vllm_prefilldecode.json.gz"
    real_trace(server)
    open_page(page, reports(server), "overview")
    assert "Input" not in page.locator("nav").inner_text()


@pytest.mark.real
def test_layers_that_repeat_are_a_row_that_opens(page: Page, reports: Reports, shot: Shot) -> None:
    real_trace(QWEN)
    (layers,) = real_profile(QWEN).document()["analyses"]["layers"]
    open_page(page, reports(QWEN), "ops")
    panel = page.locator("section", has=page.locator("h2", has_text="Layers by the time"))
    assert "Qwen2DecoderLayer_* × 24" in panel.locator(".flame").inner_text()
    shot(page)
    panel.get_by_role("button", name="Table", exact=True).click()
    first, one = panel.locator("tbody tr").first, layers["alike"][0]
    assert "Qwen2Model_0/Qwen2DecoderLayer_*/Qwen2Attention_*" in first.inner_text()
    assert format_ns(one["whole"]["forward_ns_per_step"]) in first.inner_text()
    first.get_by_role("button", name="× 24").click()
    opened = panel.locator("tr.inner").all_inner_texts()
    assert ["Qwen2Attention_" in text for text in opened] == [True] * 16


@pytest.mark.real
@pytest.mark.parametrize("width", [1440, 390])
def test_names_that_begin_alike_differ_in_what_is_seen_of_them(page: Page, reports: Reports, width: int) -> None:
    real_trace(QWEN)
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, reports(QWEN), "kernels")
    names = page.get_by_role("table", name="Kernels", exact=True).locator("tbody td:first-child .name")
    seen = names.evaluate_all("""(all) => all.map((one) => {
        const width = one.getBoundingClientRect().width;
        const range = document.createRange();
        let fits = one.textContent.length;
        do range.setStart(one.firstChild, 0), range.setEnd(one.firstChild, fits);
        while (range.getBoundingClientRect().width > width && fits--);
        return one.textContent.slice(0, fits);
    })""")
    long = [one for one in seen if one.startswith("at::native::")]
    assert len(long) > 10
    assert len(set(long)) > 0.8 * len(long)


def test_steps_set_apart_do_not_flatten_the_others(page: Page, reports: Reports) -> None:
    """One of them takes 537 ms, the others 15 ms."""
    open_page(page, reports(JAX), "overview")
    chart = page.locator("section:has(h2:text-is('Each step')) .chart")
    assert "▲ 537 ms" in chart.locator(".labels").inner_text()
    most = page.evaluate("document.querySelector('.chart .tick:last-child').textContent")
    assert float(most.removesuffix(" ms")) < 40


def printed(page: Page) -> bytes:
    found: bytes = page.pdf(print_background=True)
    return found


def test_a_print_is_complete(page: Page, reports: Reports) -> None:
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed (pip install pypdf)")
    import io

    address = reports("example")
    open_page(page, address, "overview")
    page.get_by_label("Theme").select_option("dark")
    text = " ".join(one.extract_text() for one in pypdf.PdfReader(io.BytesIO(printed(page))).pages)
    flat = re.sub(r"\s+", "", text)
    for finding in stepscope.open(EXAMPLES / "cpu_input_bound.json.gz").document()["findings"]:
        if finding["cost_ns_per_step"] is not None:
            assert re.sub(r"[\s`]+", "", finding["fix"].splitlines()[0]) in flat
    for control in ("Showintrace", "CopyCSV", "Systemtheme", "Allsteps"):
        assert control not in flat
    # The page is as it was.
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.locator("main details[open]").count() < page.locator("main details").count()


def test_bars_have_their_colours_in_print(page: Page, reports: Reports) -> None:
    open_page(page, reports("example"), "overview")
    page.emulate_media(media="print")
    exact = page.evaluate("getComputedStyle(document.querySelector('.hbar .swatch')).printColorAdjust")
    assert exact == "exact"
    page.emulate_media(media="screen")


@pytest.mark.real
@pytest.mark.parametrize("palette", ["standard", "blind"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_waiting_for_input_has_one_colour_on_pages_and_in_the_trace(
    page: Page, reports: Reports, theme: str, palette: str
) -> None:
    real_trace(V100)
    open_page(page, reports(V100), "overview")
    page.get_by_label("Theme").select_option(theme)
    page.get_by_label("Colours").select_option(palette)
    colour = page.evaluate("getComputedStyle(document.querySelector('.hbar .cat-input')).backgroundColor")
    page.get_by_role("link", name="Trace").click()
    page.wait_for_selector(".trace-host canvas")
    wanted = [int(one) for one in re.findall(r"\d+", colour)[:3]]
    page.wait_for_function(
        """(wanted) => [...document.querySelectorAll('.trace-host canvas')].some((canvas) => {
            const copy = document.createElement('canvas');
            [copy.width, copy.height] = [canvas.width, canvas.height];
            const context = copy.getContext('2d');
            if (!canvas.width || !canvas.height) return false;
            context.drawImage(canvas, 0, 0);
            const {data} = context.getImageData(0, 0, copy.width, copy.height);
            for (let at = 0; at < data.length; at += 4) {
                if (wanted.every((one, k) => data[at + k] === one)) return true;
            }
            return false;
        })""",
        arg=wanted,
    )


def test_the_way_back_leads_to_where_one_was(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 1280, "height": 500})
    open_page(page, reports("example"), "overview")
    page.evaluate("document.querySelector('main').scrollTop = 321")
    page.wait_for_timeout(100)
    page.get_by_role("link", name="Ops").first.click()
    page.wait_for_selector("h1:text-is('Ops')")
    assert page.evaluate("document.querySelector('main').scrollTop") == 0
    page.go_back()
    page.wait_for_selector("h1:text-is('Overview')")
    assert page.evaluate("document.querySelector('main').scrollTop") == 321


def test_help_opens_at_its_beginning(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 900, "height": 260})
    open_page(page, reports("example"), "overview")
    page.keyboard.press("?")
    assert page.evaluate("document.querySelector('dialog.help').scrollTop") == 0


def test_no_one_is_sent_to_xla_who_came_from_there(page: Page, tmp_path: Path) -> None:
    document = stepscope.open(EXAMPLES / JAX).document()
    document = {**document, "analyses": {**document["analyses"], "roofline": {"ops": [], "kernels": []}}}
    out = tmp_path / "report.html"
    out.write_text(html_file([ShownRun("a", document, None)]), encoding="utf-8")
    open_page(page, out.as_uri(), "kernels")
    text = page.locator("section:has(h2:text-is('Roofline of ops by shape'))").inner_text()
    assert "record_shapes" not in text
    assert "XLA wrote no costs of its ops into this profile." in text


def test_a_wide_table_keeps_its_names_in_sight_and_the_page_its_width(page: Page, reports: Reports, shot: Shot) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for name in ("overview", "input", "ops", "kernels", "memory"):
        open_page(page, reports(JAX), name)
        assert page.evaluate("(main => main.scrollWidth - main.clientWidth)(document.querySelector('main'))") == 0
        inner = page.evaluate(
            "[...document.querySelectorAll('.scroll')].map(one => one.scrollHeight - one.clientHeight)"
        )
        assert set(inner) <= {0}  # What is on a page scrolls with it.
    open_page(page, reports(JAX), "kernels")
    frame = page.locator(".scroll.sideways").first
    frame.evaluate("one => { one.scrollLeft = one.scrollWidth; }")
    shot(page)
    left, name = frame.bounding_box(), frame.locator("tbody td").first.bounding_box()
    assert left is not None
    assert name is not None
    assert name["x"] == pytest.approx(left["x"] + 1, abs=1)
    assert name["width"] < 300


def test_a_name_without_blanks_stays_in_its_tile(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    open_page(page, reports(JAX), "overview")
    tiles = page.locator(".tiles > div:has(dd.rest)")
    tiles.first.locator("dd.rest").evaluate("(one) => { one.textContent = 'unbroken_'.repeat(40); }")
    inside = tiles.evaluate_all("(all) => all.map((one) => one.scrollWidth <= one.clientWidth)")
    assert inside == [True] * len(inside) != []
    assert page.evaluate("(main => main.scrollWidth - main.clientWidth)(document.querySelector('main'))") == 0


def test_an_op_of_several_devices_is_one_row_which_opens(page: Page, reports: Reports) -> None:
    open_page(page, reports(JAX), "ops")
    rows = page.get_by_role("table", name="Ops by shape").locator("tbody tr")
    ops = stepscope.open(EXAMPLES / JAX).document()["analyses"]["roofline"]["ops"]
    assert rows.count() == len({(one["op"], one["dims"], one["kernel"]) for one in ops if one["dims"]}) < len(ops)
    rows.first.get_by_role("button", name="× 8").click()
    assert page.locator("tr.inner").count() == 8
