"""The terminal report, read as a person would: what it says, where it fits, and what it never does."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from stepscope.report import terminal
from tests.report import documents

WIDTHS = (60, 80, 100, 200)
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def _lines(document: documents.Document, **options: object) -> list[str]:
    return terminal.render(documents.check(document), **options).splitlines()  # type: ignore[arg-type]


def _block(lines: list[str], first: str) -> list[str]:
    """The lines from the one that starts with ``first`` to the next empty one."""
    at = next(at for at, line in enumerate(lines) if line.startswith(first))
    return lines[at : at + lines[at:].index("")] if "" in lines[at:] else lines[at:]


def test_the_top_says_what_was_read_the_verdict_and_the_step_time():
    lines = _lines(documents.input_bound())
    assert lines[:4] == [
        "resnet50.pt.trace.json.gz · PyTorch 2.4.0 · NVIDIA H100 80GB HBM3 · 6 steps, 4 used",
        "The device waits for input data 27.7 % of each step: loading data sets the step time.",
        "",
        "step time       199 ms on the device, median of 4 steps",
    ]


def test_the_bar_and_its_legend():
    lines = _lines(documents.input_bound())
    assert lines[4] == "█" * 59 + "▓▒" + "░" * 28 + "·" * 7 + "---" + "~"
    assert len(lines[4]) == 100
    assert re.search(r"^works ██ computing \(kernels\) +118 ms .*waits ░░ waiting for input data", lines[5])
    assert "~~ other (3 small parts)  1.18 ms  0.6 %" in lines[8]


def test_a_narrow_legend_stands_below_itself():
    lines = _lines(documents.input_bound(), width=80)
    assert lines[7] == "works ██ computing (kernels)       118 ms 59.3 %"
    assert lines[10] == "waits ░░ waiting for input data 55.3 ms 27.8 %"


def test_the_three_headline_numbers():
    lines = _lines(documents.healthy())
    at = lines.index("device busy     97.0 % of the step time (91.0 % without collectives)")
    assert lines[at + 1 : at + 3] == [
        "ops on device   87.5 % by time, 62.0 % by count",
        "16-bit kernels  73.1 % by time, 41.2 % by count",
    ]


def test_absent_numbers_are_not_recorded_never_zero():
    document = documents.no_steps()
    lines = _lines(document)
    assert f"{'step time':<16}not recorded" in lines
    assert not any(line.startswith("device busy") for line in lines)  # The header says that no device was recorded.
    document["profile"]["devices"] = [{"id": 0, "name": None, "kind": "gpu", "memory_bytes": None}]
    lines = _lines(document)
    for name in ("device busy", "ops on device", "16-bit kernels"):
        assert f"{name:<16}not recorded" in lines
    assert not any("0 %" in line or "█" in line for line in lines)


def test_a_finding_says_saving_place_and_remedy():
    assert _block(_lines(documents.input_bound()), "1. ") == [
        "1. The device waits for the DataLoader",
        "   saves 55.3 ms of 199 ms per step, leaving 144 ms (first-order, high confidence)",
        "   where  /home/ana/train.py:42 in train_one_epoch · op",
        "          enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ · annotated load",
        "   fix    Load batches in worker processes, ahead of the step that needs them:",
        "              DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True)",
    ]


def test_findings_keep_their_order_and_the_later_ones_take_a_line():
    lines = _lines(documents.input_bound())
    numbered = [line for line in lines if re.match(r"\d\. ", line)]
    assert [line[:2] for line in numbered] == ["1.", "2.", "3.", "4."]
    assert _block(lines, "3. ") == [
        "3. aten::item makes the host wait for the device, saves 6.90 ms of 199 ms per step, leaving 192 ms",
        "   at /home/ana/train.py:57 in train_one_epoch · op aten::item, and 2 more",
        "4. Copies from pageable memory hold the device up, saves 2.20 ms of 199 ms per step",
    ]


def test_what_could_not_be_told_and_the_notices_are_said():
    lines = _lines(documents.input_bound())
    assert "! Only 4 complete steps: the spread is not known." in lines
    assert "? Not determined: Tensor cores. Record shapes (record_shapes=True)." in lines


def test_what_lacks_the_same_thing_is_said_once():
    untold = [line for line in _lines(documents.sampled()) if line.startswith("?")]
    assert untold == ["? Not determined: Launches; Waits for the device. Record an unsampled profile."]


def test_of_many_that_lack_the_same_thing_some_are_named():
    document = documents.sampled()
    for name in ("Copies", "All-reduces", "Tensor cores"):
        lacking = documents.finding("rule", name, not_determined="Record an unsampled profile.")
        document["findings"].append(lacking | {"id": f"rule.{name}"})
    (untold,) = " ".join(" ".join(_lines(document)).split()).split("? ")[1:]
    assert untold.startswith("Not determined: Launches; Waits for the device; Copies; and 2 more, which -v names.")
    assert "Record an unsampled profile." in untold


def test_the_long_report_has_a_line_for_each_below_the_reason_they_share():
    document = documents.sampled()
    lines = [line.strip() for line in _lines(document, verbose=True)]
    at = lines.index("? Record an unsampled profile.")
    assert lines[at + 1].startswith("Launches (")
    assert lines[at + 2].startswith("Waits for the device (")


def test_no_finding_is_good_news_only_where_the_device_sets_the_pace():
    lines = _lines(documents.sampled())
    assert "No remedy was found: what sets the step time was not recorded." in lines
    assert "Nothing to fix" not in "\n".join(lines)


def test_the_long_report_says_in_which_order_to_work_and_how_good_the_replay_is():
    document = documents.input_bound()
    document["plan"] = [item["id"] for item in document["findings"]]
    document["whatif"] = {
        "replay_error": 0.004, "residual_share": 0.02, "reason": None, "combined_step_ns": 100_000_000,
    }  # fmt: skip
    text = " ".join(terminal.render(document, verbose=True).split())
    first, second = (item["title"] for item in document["findings"][:2])
    assert f"Work in this order, one change at a time, and record again after each: 1) {first}; 2) {second}" in text
    assert "Simulated as it is, a step comes out 0.4 % off what was measured, with 2.0 % of it taken over." in text
    assert "With every finding fixed a step takes 100 ms." in text


def test_a_replayed_prediction_is_told_from_a_first_order_one():
    document = documents.input_bound()
    document["findings"][0]["prediction_basis"] = "replay"
    assert _block(_lines(document), "1. ")[1].endswith("leaving 144 ms (simulated, high confidence)")


def test_a_finding_whose_saving_is_not_known_is_still_a_finding():
    document = documents.healthy()
    document["findings"] = [
        documents.finding(
            "tensor_cores_unused",
            "Matrix work does not use the tensor cores",
            cost_ns_per_step=9_000_000,
            not_determined="the device's peaks are not known to stepscope",
        )
    ]
    lines = _lines(document)
    assert _block(lines, "1. ") == [
        "1. Matrix work does not use the tensor cores",
        "   costs 9.00 ms per step, saving not known: the device's peaks are not known to stepscope (high",
        "   confidence)",
    ]
    assert not any(line.startswith("?") for line in lines)


def test_nothing_found_says_what_bounds_the_step():
    said = "Nothing to fix was found: the device's own work sets the step time."
    assert said in _lines(documents.healthy())
    assert "Nothing to fix" not in "\n".join(_lines(documents.input_bound()))


def test_a_small_part_of_a_step_that_computes_does_not_set_its_time():
    document = documents.healthy()
    document["summary"] |= {"bottleneck": "python", "step_basis": "host"}
    document["summary"]["parts_share"] = {"host_compute": 0.84, "python": 0.16}
    assert "No remedy was found: the host computes 84.0 % of each step." in _lines(document)
    document["summary"]["parts_share"] = {"host_compute": 0.34, "python": 0.66}
    assert "No remedy was found: Python code between ops sets the step time." in _lines(document)


def test_a_damaged_profile_says_so_before_the_verdict_and_what_was_lost():
    lines = _lines(documents.damaged())
    assert lines[1:3] == [
        "! Part of this profile could not be read: this covers the rest, and the notices say what was lost.",
        "The device computes most of the time: nothing holds it up.",
    ]
    text = "\n".join(lines)
    assert "at byte 1,230,001; 1 event and 212 bytes were lost." in text
    assert "A name is not UTF-8, first at byte 991. (3×)" in text


def test_the_short_report_of_a_typical_profile_fits_a_screen():
    document = documents.input_bound()
    document["findings"] = document["findings"][:2]
    document["plan"] = []
    assert len(_lines(document)) <= 30


def test_devices_and_ranks_are_counted():
    first = _lines(documents.many_devices(), width=120)[0]
    assert " · 8 × NVIDIA H100 80GB HBM3 · rank 3 of 8 · 6 steps, 4 used" in first


def test_inferred_steps_and_p95():
    document = documents.base({"compute": 10_000_000}, steps=40)
    document["summary"] |= {"inferred": True, "step_time_ns": {"median": 10_000_000, "p95": 12_000_000}}
    lines = _lines(document)
    assert lines[0].endswith("40 inferred steps, 38 used")
    assert lines[3] == "step time       10.0 ms on the device, median, 95 % of the steps under 12.0 ms (p95)"


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", documents.ALL)
def test_every_line_fits_and_none_ends_in_spaces(name: str, width: int, verbose: bool):
    for line in _lines(documents.ALL[name](), width=width, verbose=verbose):
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", documents.ALL)
def test_without_colour_there_is_not_one_control_character(name: str, verbose: bool):
    text = terminal.render(documents.ALL[name](), verbose=verbose)
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", documents.ALL)
def test_colour_adds_styles_and_changes_nothing_else(name: str, verbose: bool):
    document = documents.ALL[name]()
    coloured = terminal.render(document, color=True, verbose=verbose)
    stripped = "\n".join(line.rstrip() for line in ANSI.sub("", coloured).split("\n"))
    assert stripped == terminal.render(document, verbose=verbose)
    assert ANSI.search(coloured)


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_are_text(width: int):
    text = terminal.render(documents.hostile(), width=width, color=True, verbose=True)
    assert not ANSI.sub("", text).replace("\n", "").count("\x1b")
    assert "\u202e" not in text
    joined = re.sub(r"\s+", "", ANSI.sub("", text))
    assert joined.count("[red]x[/red]\\x1b[31m\\u202e|") > 20


def test_the_long_report_has_every_table_with_its_figures():
    lines = _lines(documents.input_bound(), verbose=True, width=120)
    text = "\n".join(lines)
    for title in (
        "Could not be told from this profile", "Notices", "Little or nothing to gain", "Steps",
        "Device 0, NVIDIA H100 80GB HBM3: where each step's time goes", "Idle time", "Longest idle gaps",
        "Waits of the host for the device (synchronisation), per step", "Copies, per step",
        "From launch to start", "Precision and placement", "Kernels by time", "What was read",
    ):  # fmt: skip
        assert title in lines
    copies = r"Copies from device to host that nothing hides +31\.0 µs +[^ ]+ [^ ]+ +/home/ana/train\.py:70"
    assert re.search(copies, text)
    assert re.search(r"12\+ +401 ms +61\.0 ms +waiting for input data +vectorized_ele", text)
    assert re.search(r"aten::item +1 +61\.0 ms +7\.15 ms +/home/ana/train\.py:57", text)
    assert re.search(r"h2d +pageable → device +aten::copy_ +2 +36\.8 MiB +2\.41 ms +yes", text)
    assert re.search(r"7,224 +8\.40 µs +31\.0 µs +8\.0 %", text)
    assert re.search(r"vectorized_elementwise_kernel<4, CUDAFunctor.*> +90\.0 ms +13\.0 % +964 +fp32", text)
    assert re.search(r"resnet50\.pt\.trace\.json\.gz +1\.18 MiB +40,123", text)


@pytest.mark.parametrize(("saving", "told"), [(31_000, False), (6_000_000, True)])
def test_a_small_finding_that_gains_more_than_its_own_time_says_how(saving: int, told: bool):
    document = documents.input_bound()
    document["analyses"]["minor_findings"][0]["saving_ns_per_step"] = saving
    text = terminal.render(document, verbose=True)
    assert ("a fix saves more than its own time where what comes after can then begin earlier" in text) is told


def test_the_long_report_has_the_reason_evidence_and_id_of_each_finding():
    block = _block(_lines(documents.input_bound(), verbose=True), "1. ")
    assert any("loads in the training" in line for line in block)
    assert any(line.startswith("   seen   61.2 ms enumerate(DataLoader)#") for line in block)
    assert block[-1] == "   finding input_bound.1, measured"


def test_long_tables_are_cut_and_say_so():
    lines = _lines(documents.base({"compute": 5_000_000}, steps=300), verbose=True)
    at = lines.index("Steps")
    assert lines[at + 1] == "the first 20 of 300; --format json has all"
    assert lines[at + 3 : lines.index("", at)][-1].split()[0] == "29"


def test_a_narrow_table_stacks_its_names():
    lines = _lines(documents.input_bound(), verbose=True, width=60)
    at = lines.index("Kernels by time")
    assert lines[at + 4 : at + 7] == [
        "vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array…>",
        "   time 90.0 ms, share 13.0 %, count 964, precision fp32,",
        "   tensor cores no",
    ]


def test_time_outside_the_steps_is_listed():
    document = documents.healthy()
    row = {**document["accounting"][0], "step": None, "phase": "before", "dur_ns": 7_000_000}
    document["accounting"].insert(0, {**row, "parts": {"compute": 7_000_000}})
    block = _block(_lines(document, verbose=True), "Time outside the steps")
    assert re.fullmatch(r"before the first step +0 ns +7\.00 ms", block[2])


@pytest.mark.parametrize(("devices", "told"), [(1, False), (2, True)])
def test_waits_and_copies_say_of_which_of_several_devices_they_are(devices: int, told: bool):
    document = documents.input_bound()
    document["profile"]["devices"] *= devices
    for name in ("syncs", "copies"):
        for row in document["analyses"][name]:
            row["device"] = 0
    lines = _lines(document, verbose=True, width=120)
    for title in ("Waits of the host for the device (synchronisation), per step", "Copies, per step"):
        assert ("device" in lines[lines.index(title) + 1].replace("device idle", "").split()) is told


def test_functions_are_listed_by_their_own_time():
    document = documents.healthy()
    document["analyses"]["functions"] = [{"name": "a.py(3): load", "count": 4, "self_ns": 2_000_000}]
    block = _block(_lines(document, verbose=True), "Functions by the time spent in their own code")
    assert re.fullmatch(r"a\.py\(3\): load +2\.00 ms +4", block[2])
