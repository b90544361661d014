"""The overview answers first: what to change, what it saves, where, how, and how to see and to prove it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import stepscope
from stepscope.report import finding_phrases
from stepscope.web.sources import source_of
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.support import planted_file
from tests.web.reports import EXAMPLE

if TYPE_CHECKING:
    from playwright.sync_api import Page

Reports = Callable[[str], str]
Shot = Callable[["Page"], None]
V100 = "kineto/v100_resnet50_workers0.json.gz"


@pytest.mark.real
@pytest.mark.parametrize("size", some([(1280, 720), (390, 844), (1600, 900)], 1))
def test_the_answer_is_above_the_fold(page: Page, reports: Reports, shot: Shot, size: tuple[int, int]) -> None:
    real_trace(V100)
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{reports(V100)}#/overview")
    answer = page.locator(".answer")
    assert answer.locator("h2").inner_text().startswith("Change this first: ")
    document = stepscope.open(real_trace(V100)).document()
    first, *_ = finding_phrases.told_and_untold(document)[0]
    text = answer.inner_text()
    for said in (first["title"], finding_phrases.saving(first, document["summary"]), "resnet50_profiler_api.py:42",
                 "num_workers=1", "stepscope try --cure workers"):  # fmt: skip
        assert said in text
    for part in ("header", ".cure", ".deeds"):
        box = answer.locator(part).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size[0]
        assert box["y"] + box["height"] <= size[1], part
    shot(page)


@pytest.mark.slow
def test_what_saves_most_is_not_said_to_be_first_where_the_order_of_work_begins_with_another(
    page: Page, tmp_path: Path
) -> None:
    planted, report = tmp_path / "planted.json", tmp_path / "report.html"
    planted.write_bytes(planted_file("input_and_callback"))
    profile = stepscope.open(planted)
    assert profile.document()["plan"][0] != profile.document()["findings"][0]["id"]
    report.write_text(profile.html(), encoding="utf-8")
    page.goto(f"{report.as_uri()}#/overview")
    assert page.locator(".answer h2").inner_text().startswith("Saves most: ")


@pytest.mark.slow
def test_names_of_code_in_the_order_of_work_are_code(page: Page, reports: Reports) -> None:
    page.goto(f"{reports('jax_eight_devices.xplane.pb.gz')}#/overview")
    order = page.get_by_text("Work in this order")
    assert "`" not in order.inner_text()
    assert order.locator("code").count() > 0


@pytest.mark.slow
def test_a_phone_has_its_controls_in_one_row(page: Page, reports: Reports) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{reports('example')}#/overview")
    controls = page.locator(".top button:visible, .top select:visible")
    assert controls.count() == 3
    assert len({round(box["y"]) for box in (one.bounding_box() for one in controls.all()) if box}) == 1
    strip = page.locator(".strip").bounding_box()
    assert strip
    assert strip["height"] < 45
    page.evaluate("location.hash = '#/trace'")
    page.locator("nav a[aria-current]", has_text="Trace").wait_for()
    box = page.locator("nav a[aria-current]").bounding_box()
    assert box
    assert box["x"] + box["width"] <= 390


def test_prove_it_copies_the_command(page: Page, reports: Reports) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{reports('example')}#/overview")
    page.get_by_role("button", name="Prove it").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == (
        "stepscope try --cure workers --cure persistent-workers --cure prefetch COMMAND"
    )


@pytest.mark.slow
def test_the_command_of_the_capture_is_the_one_that_is_tried(page: Page, tmp_path: Path) -> None:
    profile = tmp_path / "a.json.gz"
    profile.write_bytes(EXAMPLE.read_bytes())
    manifest = {"schema": "stepscope.capture/1", "files": [{"path": "a.json.gz"}], "command": ["a.py", "--name=a b"]}
    (tmp_path / "a.stepscope.json").write_text(json.dumps(manifest))
    out = tmp_path / "report.html"
    out.write_text(stepscope.open(profile).html(), encoding="utf-8")
    page.goto(f"{out.as_uri()}#/overview")
    assert page.locator(".proof code").first.inner_text().endswith(" --cure prefetch a.py '--name=a b'")


@pytest.mark.slow
def test_the_users_lines_stand_beside_the_place(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = stepscope.open(EXAMPLE).document()
    place = document["findings"][0]["where"][0]
    source = tmp_path / place["file"]
    source.write_text("".join(f"line_{number} = <b>\n" for number in range(1, 60)))
    out = tmp_path / "report.html"
    recorded = document["profile"]["epoch_ns"]
    os.utime(source, ns=(recorded - 1, recorded - 1))
    out.write_text(stepscope.open(EXAMPLE).html(), encoding="utf-8")
    page.goto(f"{out.as_uri()}#/overview")
    shown = page.locator(".answer .source")
    assert shown.locator(".here").inner_text().strip() == f"{place['line']} line_{place['line']} = <b>"
    assert len(shown.locator("span").all()) == 5
    # Lines that were changed since are not those that ran.
    os.utime(source, ns=(recorded + 10**9, recorded + 10**9))
    assert source_of(place, document) is None


@pytest.mark.parametrize("name", ["../secret.py", "/etc/passwd", "notes.txt", "link.py", "missing.py", "a\0.py", "."])
def test_only_python_files_of_the_project_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (tmp_path / "secret.py").write_text("secret\n")
    (folder / "notes.txt").write_text("secret\n")
    (folder / "own.py").write_text("own\n")
    (folder / "link.py").symlink_to(tmp_path / "secret.py")
    document = {"profile": {"epoch_ns": time.time_ns() + 10**12}}
    place = {"file": name, "line": 1}
    assert source_of(place, document) is None
    assert source_of({"file": "own.py", "line": 1}, document) == {"first": 1, "line": 1, "lines": ["own"]}
