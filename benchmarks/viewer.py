"""How fast the trace viewer of a report opens and moves, in headless Chromium.

    python benchmarks/viewer.py 1 5 [--ranks 500] [--folder DIR]

makes a profile of so many million slices (16 GPU streams and 16 host threads; log-normal durations of kernels, their
launches and the ops around them, names in a repeating pattern with noise), writes its HTML report, opens it from disk
and measures: bytes of the report, time from the navigation to the first frame of the trace, time between frames while
zooming and panning, and the memory of the page. ``--ranks`` makes a job of so many ranks too (``many_ranks.py``) and
measures how long each of its pages takes, from disk and from another page. Needs the packages ``playwright`` and
``numpy``, and ``chromium``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page, sync_playwright

import stepscope
from stepscope import cli

STREAMS, NAMES, PATTERN, NOISE = 16, 2_000, 120, 0.03

# Zooms in and out about a third of the way, panning meanwhile; one wheel event per frame, as a hand makes them.
MOVE = """async (seconds) => {
  const stage = document.querySelector('.tv-stage');
  const box = stage.getBoundingClientRect();
  const began = performance.now();
  const painted = Number(stage.dataset.frames);
  const times = [];
  let last = began;
  while (performance.now() - began < seconds * 1000) {
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
    const phase = ((now - began) / 1000) % 4;
    const zooms = Math.floor(phase) % 2 === 0;
    stage.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, ctrlKey: zooms, shiftKey: !zooms,
      deltaY: phase < 2 ? -60 : 60, clientX: box.left + box.width * 0.37, clientY: box.top + 200 }));
  }
  return { times: times.slice(1), painted: Number(stage.dataset.frames) - painted };
}"""


JOB_PAGES = ("overview", "input", "ops", "kernels", "memory", "ranks", "trace")
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
TURN = """(name) => new Promise((done) => {
  const began = performance.now();
  location.hash = `#/${name}`;
  const look = () => requestAnimationFrame(() => {
    const there = document.querySelector('main h1')?.textContent.toLowerCase() === name;
    if (there) setTimeout(() => done(performance.now() - began));
    else look();
  });
  look();
})"""


def profile(slices: int, path: Path) -> None:
    """Write a Chrome trace as PyTorch's profiler does: per stream a host thread with ops, launches, and kernels."""
    random = np.random.default_rng(7)
    each = slices // STREAMS // 3
    with path.open("w", encoding="ascii") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": [\n')
        correlation = 0
        for stream in range(STREAMS):
            dur = np.maximum(random.lognormal(9.2, 1.2, each), 300.0) / 1000
            gap = np.maximum(random.lognormal(7.0, 1.5, each), 100.0) / 1000
            gap[random.random(each) < 0.002] += 5_000
            start = 100_000 + np.cumsum(dur + gap) - dur
            name = np.resize(random.integers(0, NAMES, PATTERN), each)
            noise = random.random(each) < NOISE
            name[noise] = random.integers(0, NAMES, int(noise.sum()))
            lines = []
            for s, d, n in zip(start.tolist(), dur.tolist(), name.tolist(), strict=True):
                correlation += 1
                lines.append(
                    f'{{"ph":"X","cat":"kernel","name":"void cutlass::Kernel_{n}<bf16_16816>","pid":0,'
                    f'"tid":{stream + 7},"ts":{s:.3f},"dur":{d:.3f},'
                    f'"args":{{"device":0,"stream":{stream + 7},"correlation":{correlation}}}}},\n'
                    f'{{"ph":"X","cat":"cpu_op","name":"aten::op_{n % 300}","pid":9,"tid":{stream + 50},'
                    f'"ts":{s - 3000:.3f},"dur":{d:.3f}}},\n'
                    f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":{stream + 50},'
                    f'"ts":{s - 3000 + d / 4:.3f},"dur":{d / 2:.3f},"args":{{"correlation":{correlation}}}}},\n'
                )
            file.write("".join(lines))
        file.write('{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":9,"tid":50,"ts":0,"dur":1}]}\n')


def measure(page: Page, report: Path, seconds: float) -> dict[str, float]:
    """Open a report at its trace and move in it."""
    page.goto(f"{report.as_uri()}#/trace")
    stage = page.locator(".tv-stage[data-first-ms]")
    stage.wait_for(timeout=60_000)
    first, spent = float(stage.get_attribute("data-first-ms") or "nan"), _renderer(page)[1]
    page.wait_for_timeout(1_500)
    moved = page.evaluate(MOVE, seconds)
    times = sorted(moved["times"])
    return {
        "report_mb": report.stat().st_size / 1e6,
        "first_frame_s": first / 1000,
        "first_frame_cpu_s": spent,
        "frames_under_33ms": sum(t < 33.4 for t in times) / len(times),
        "frame_median_ms": statistics.median(times),
        "frame_p95_ms": times[int(0.95 * len(times))],
        "redraws_per_s": moved["painted"] / seconds,
        "page_mb": _renderer(page)[0],
    }


def job(ranks: int, report: Path) -> None:
    """Write the pages of a job of so many ranks."""
    from many_ranks import write

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), ranks)
        if cli.main(["diagnose", folder, "--format", "html", "-o", str(report)]):
            raise SystemExit("the job could not be diagnosed")


def pages_of(browser: Browser, report: Path) -> dict[str, float]:
    """The slowest page of a report: opened from disk, and come to from another."""
    opened, turned = {}, {}
    for name in JOB_PAGES:
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.goto(f"{report.as_uri()}#/{name}", wait_until="commit")
        page.wait_for_selector("main .page")
        opened[name] = page.evaluate(PAINTED)
        page.close()
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.goto(f"{report.as_uri()}#/{JOB_PAGES[-1]}")
    page.wait_for_selector("main .page")
    for name in JOB_PAGES:
        turned[name] = page.evaluate(TURN, name)
    return {"report_mb": report.stat().st_size / 1e6, "opened_s": max(opened.values()) / 1e3,
            "turned_s": max(turned.values()) / 1e3}  # fmt: skip


def _renderer(page: Page) -> tuple[float, float]:
    """Resident memory (MB) of the page's process, and the processor time (s) it took so far."""
    browser = page.context.browser
    assert browser is not None
    listing = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    folders = [Path(f"/proc/{one['id']}") for one in listing if one["type"] == "renderer"]
    sizes = [int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") for folder in folders]
    size, folder = max(zip(sizes, folders, strict=True))
    ticks = (folder / "stat").read_text().rpartition(")")[2].split()[11:13]
    return size / 1e6, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("millions", type=float, nargs="*")
    parser.add_argument("--ranks", type=int, default=0, help="measure the pages of a job of so many")
    parser.add_argument("--folder", type=Path, help="keep the profiles and reports there")
    parser.add_argument("--seconds", type=float, default=8.0, help="how long to move")
    args = parser.parse_args()
    folder = args.folder or Path(tempfile.mkdtemp())
    for millions in args.millions:
        report = folder / f"viewer_{millions:g}.html"
        if not report.exists():
            trace = folder / f"viewer_{millions:g}.json"
            profile(int(millions * 1e6), trace)
            began = time.perf_counter()
            opened = stepscope.open(trace)
            if not isinstance(opened, stepscope.Profile):
                raise SystemExit(f"{trace}: is not one profile")
            report.write_text(opened.html(), encoding="utf-8")
            print(f"{len(opened.trace.slices)} slices written in {time.perf_counter() - began:.1f} s")
            trace.unlink()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            found = measure(browser.new_page(viewport={"width": 1600, "height": 900}), report, args.seconds)
            browser.close()
        print(json.dumps({"millions": millions, **{key: round(value, 3) for key, value in found.items()}}))
    if args.ranks:
        report = folder / f"viewer_{args.ranks}_ranks.html"
        if not report.exists():
            job(args.ranks, report)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            found = pages_of(browser, report)
            browser.close()
        print(json.dumps({"ranks": args.ranks, **{key: round(value, 3) for key, value in found.items()}}))
    if args.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
