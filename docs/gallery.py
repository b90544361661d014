"""Take the pictures of docs/gallery/ from the examples' reports: ``make gallery`` (needs Playwright and Chromium)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from stepscope import cli

ROOT = Path(__file__).resolve().parents[1]
PROFILES, GALLERY = Path("examples/profiles"), ROOT / "docs" / "gallery"

REPORTS: dict[str, tuple[str, ...]] = {
    "training": ("diagnose", str(PROFILES / "simulated_masked_loss_before.json.gz")),
    "devices": ("diagnose", str(PROFILES / "jax_eight_devices.xplane.pb.gz")),
    "job": ("diagnose", "examples/ranks"),
    "compared": ("compare", *(str(PROFILES / f"simulated_masked_loss_{one}.json.gz") for one in ("before", "after"))),
}
SHOTS = (
    ("overview", "training", "overview", "light", (1280, 720)),
    ("overview-dark", "training", "overview", "dark", (1280, 720)),
    ("phone", "training", "overview", "light", (390, 844)),
    ("devices", "devices", "overview", "light", (1280, 720)),
    ("ranks", "job", "ranks", "light", (1280, 720)),
    ("compare", "compared", "compare", "light", (1280, 720)),
    ("trace", "training", "trace", "dark", (1280, 720)),
)
"""Name of the picture, report, page, theme and size."""


def main() -> None:
    """Make the reports in a folder that does not stay, and a picture of each page."""
    GALLERY.mkdir(exist_ok=True)
    os.chdir(ROOT)  # Pages show where profiles lie.
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name, command in REPORTS.items():
            cli.main([*command, "--format", "html", "-o", f"{folder}/{name}.html"])
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for picture, report, page, theme, size in SHOTS:
            address = f"{(Path(folder) / f'{report}.html').as_uri()}#/{page}"
            take(browser, address, theme, size, GALLERY / f"{picture}.png")
        browser.close()


def take(browser: Browser, address: str, theme: str, size: tuple[int, int], out: Path) -> None:
    """One picture, once everything of the page stands."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height}, reduced_motion="reduce",
        color_scheme="dark" if theme == "dark" else "light",
    )  # fmt: skip
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector(".trace-host canvas" if address.endswith("trace") else "main .page")
    page.wait_for_timeout(1500 if address.endswith("trace") else 300)
    page.screenshot(path=out)
    context.close()


if __name__ == "__main__":
    main()
