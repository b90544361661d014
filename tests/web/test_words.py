"""What pages show beside the figures is what the terminal says."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import stepscope
from stepscope import units
from stepscope.analysis.categories import CATEGORIES
from stepscope.report.names import visible
from stepscope.web.assemble import styles
from stepscope.web.words import words
from tests.kit import example_ranks
from tests.web.reports import EXAMPLE

STATIC = Path(stepscope.__file__).parent / "web" / "static"


def test_every_finding_has_its_words() -> None:
    document = stepscope.open(EXAMPLE).document()
    found = words(document)
    listed = document["findings"] + document["analyses"]["minor_findings"]
    assert set(found["findings"]) == {finding["id"] for finding in listed}
    assert found["findings"]["input_bound.1"]["saving"].startswith("saves 36.8 ms to 40.0 ms of 45.0 ms per step")
    assert set(found["told"]) <= set(found["findings"])
    assert found["capture"] == [("capture overhead", "not recorded: no capture manifest beside the file")]


def test_the_step_time_is_the_one_of_verdict_and_bars() -> None:
    eight = stepscope.open(EXAMPLE.parent / "jax_eight_devices.xplane.pb.gz").document()
    _, value, rest = words(eight)["step_time"]
    assert value == units.format_ns(sum(eight["summary"]["parts_ns_per_step"].values()))
    assert f" of {value}, the mean of the devices' own steps)" in eight["summary"]["verdict"]
    (slow,) = (one for one in eight["findings"] if one["rule"] == "slow_steps")
    joint = units.format_ns(eight["summary"]["step_time_ns"]["mean"])
    assert joint != value
    assert slow["why"].startswith(f"A usual step, counted to the end of the last device, takes {joint}; step 103 ")
    assert rest == "on the device, mean of the 3 usual steps of each of 8 devices"
    once = copy.deepcopy(eight)
    once["summary"].update(steps_used=1, steps_slow=0)
    assert words(once)["step_time"][1:] == (value, "on the device, mean of 1 step of each of 8 devices")
    one = stepscope.open(EXAMPLE).document()
    times = one["summary"]["step_time_ns"]
    _, value, rest = words(one)["step_time"]
    assert value == units.format_ns(times["mean"])
    assert rest.startswith(f"on the host, mean of {one['summary']['steps_used']} steps, median ")


def test_the_estimate_for_gradients_is_a_sentence_beside_the_figures() -> None:
    job = stepscope.open(example_ranks.FOLDER)
    job.parameters = 25_000_000
    found = words(job.document())
    assert "gradients" not in [label for label, *_ in found["headlines"]]
    assert found["gradients"].startswith("25,000,000 parameters × ")


def test_the_manifest_beside_a_profile_tells_what_capturing_cost(tmp_path: Path) -> None:
    profile = tmp_path / "a.json.gz"
    profile.write_bytes(EXAMPLE.read_bytes())
    manifest = {
        "schema": "stepscope.capture/1",
        "files": [{"path": "a.json.gz"}],
        "window": {"first_step": 10, "steps": 3},
        "step_ns": {"recorded": 12_000_000, "unrecorded": 10_000_000},
        "overhead": 1.2,
        "command": ["train.py", "--fast"],
    }
    (tmp_path / "a.stepscope.json").write_text(json.dumps(manifest))
    assert words(stepscope.open(profile).document())["capture"] == [
        ("capture overhead", "a step took 12.0 ms while recorded and 10.0 ms otherwise (1.20 ×)"),
        ("steps recorded", "10 to 12"),
        ("command", "train.py --fast"),
    ]


def test_every_category_has_a_colour() -> None:
    sheet, listed = styles(), (STATIC / "core" / "palette.js").read_text(encoding="utf-8")
    assert [str(one) for one in CATEGORIES if listed.count(f" {one}: '#") != 4 or f".cat-{one} {{" not in sheet] == []


def test_no_page_makes_markup_of_text() -> None:
    forbidden = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc",
                 "DOMParser", "createContextualFragment", "http://", "https://")  # fmt: skip
    allowed = {"http://": "http://www.w3.org/2000/svg"}  # The name of SVG's namespace is no address.
    found = [
        (path.relative_to(STATIC).as_posix(), word)
        for path in sorted(STATIC.rglob("*.js"))
        for word in forbidden
        if word in path.read_text(encoding="utf-8").replace(allowed.get(word, "\0"), "")
    ]
    assert found == []


def test_pages_write_times_sizes_and_names_as_the_terminal_does() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    numbers = [0, 1, 12, 999, 1000, 1005, 9994, 9995, 9996, 12_250, 99_949, 99_951, 999_499, 999_500, 1_234_567,
               10_050_000, 99_950_000, 999_499_999, 999_500_000, 61_250_000_000, -5, -123_456]  # fmt: skip
    shares = [0, 0.0004, 0.001, 0.0015, 0.1225, 0.33333, 0.9994, 0.9995, 0.99951, 1, 1.5]
    texts = ["a\tb\n", "\u202ex", "é矩", "\x00\x7f\u00a0\u00ad", "\U000e0001", "x" * 50]
    script = f"""
      import {{ formatBytes, formatNs, formatShare, formatCount }} from '{STATIC.as_uri()}/core/units.js';
      import {{ visible }} from '{STATIC.as_uri()}/core/text.js';
      const [numbers, shares, texts] = {json.dumps([numbers, shares, texts])};
      console.log(JSON.stringify([numbers.map(formatNs), numbers.map(formatBytes), numbers.map(formatCount),
        shares.map(formatShare), texts.map((text) => visible(text))]));
    """
    command = [node, "--input-type=module", "-e", script]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert said == [
        [units.format_ns(number) for number in numbers],
        [units.format_bytes(number) for number in numbers],
        [units.format_count(number) for number in numbers],
        [units.format_share(share) for share in shares],
        [visible(text) for text in texts],
    ]
