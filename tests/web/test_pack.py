"""The pack of the trace viewer, read by the viewer's own modules in node: it says what the analyses say."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepscope
from stepscope.trace.tables import DEVICE_BUSY_KINDS
from stepscope.web.pack import pack
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.web.reports import EXAMPLE, LONG, hostile_profile

READER = Path(__file__).with_name("trace_region.mjs")
TRACES = ["example", "kineto/v100_two_ranks_rank1.json.gz", "kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz"]
SERVER = "kineto/mi300_vllm_decode.json.gz"
"""Its device works for most of the time on what was not recorded."""


@cache
def profile(name: str) -> stepscope.Profile:
    return opened(EXAMPLE if name == "example" else real_trace(name))


def opened(path: Path) -> stepscope.Profile:
    made = stepscope.open(path)
    assert isinstance(made, stepscope.Profile)
    return made


def read(packed: bytes, folder: Path, begin: int, end: int) -> dict[str, Any]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    path = folder / "pack"
    path.write_bytes(packed)
    done = subprocess.run([node, READER, path, str(begin), str(end)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.real
@pytest.mark.parametrize("name", some(["example", SERVER, *TRACES[1:]], 2))
def test_sums_of_a_range_are_those_of_stepscope_query(name: str, tmp_path: Path) -> None:
    made = profile(name)
    first, last = made.trace.slices.start_ns.min(), (made.trace.slices.start_ns + made.trace.slices.dur_ns).max()
    begin, end = int(first + 0.3 * (last - first)), int(first + 0.61 * (last - first))
    found = read(pack(made), tmp_path, begin, end)
    wanted = made.region(begin, end)

    devices = wanted.filter(wanted["device"].is_not_null() & wanted["name"].is_not_null())
    said = {(f"device {row['device']}", row["name"]): row["self_ns"] for row in devices.to_dicts()}
    assert {(d["group"], p["category"]): p["ns"] for d in found["devices"] for p in d["parts"]} == said

    threads = wanted.filter(wanted["device"].is_null() & wanted["name"].is_not_null())
    by_name: dict[tuple[str, str], int] = {}
    for row in threads.to_dicts():
        by_name[row["name"], row["kind"]] = by_name.get((row["name"], row["kind"]), 0) + row["self_ns"]
    shown: dict[tuple[str, str], int] = {}
    threads_of_pack = {track["id"] for track in found["tracks"] if track["type"] == "thread"}
    for sum_ in found["sums"]:
        for one in sum_["names"] if sum_["track"] in threads_of_pack else []:
            if one["self"] > 0:
                shown[one["name"], one["kind"]] = shown.get((one["name"], one["kind"]), 0) + one["self"]
    # The panel shows the 300 names of a track with most time: of those it leaves out none has more than the last.
    left = sum(sum_["names"][-1]["self"] for sum_ in found["sums"] if len(sum_["names"]) == 300)
    assert bool(shown) == bool(by_name)
    assert all(0 <= by_name[key] - shown[key] <= left for key in shown)
    assert sum(shown.values()) >= 0.99 * sum(by_name.values())


@pytest.mark.real
@pytest.mark.parametrize("name", some(["example", SERVER, *TRACES[1:]], 2))
def test_every_slice_is_drawn_and_every_gap_has_its_cause(name: str, tmp_path: Path) -> None:
    made = profile(name)
    trace, facts = made.trace, made.facts
    found = read(pack(made), tmp_path, 0, 1)
    assert found["ids"] == len(trace.slices)
    busy = np.isin(trace.slices.kind, DEVICE_BUSY_KINDS)
    assert found["found"] == {"count": int(busy.sum()), "total": int(trace.slices.dur_ns[busy].sum())}
    idle = [account.idle for account in facts.accounts if account.idle is not None]
    assert found["gaps"]["count"] == sum(len(one.gaps) for one in idle)
    assert found["gaps"]["total"] == sum(int((one.gaps.end - one.gaps.start).sum()) for one in idle)
    assert found["idle"] == {"count": found["gaps"]["count"], "total": found["gaps"]["total"]}
    if not idle:
        return
    document = made.document()["analyses"]["idle"]["gaps"]
    labels = {part["category"]: part["label"] for one in made.document()["analyses"]["breakdown"]
              for part in one["parts"]}  # fmt: skip
    by_place = {(gap["start_ns"], gap["dur_ns"]): gap for gap in document}
    compared = 0
    for gap in found["gaps"]["listed"]:
        wanted = by_place.get((gap["about"]["start"], gap["about"]["dur"]))
        if wanted is None or not all(category in labels for category in wanted["parts"]):
            continue
        compared += 1
        assert {part["cause"]: part["ns"] for part in gap["parts"]} == {
            labels[category]: ns for category, ns in wanted["parts"].items()
        }
        assert (gap["during"] or {}).get("name") == wanted["blocking"]
        assert gap["op"]["name"] == wanted["op"]
        assert (gap["call"] or {}).get("name") == wanted["launch"]
    assert compared > 5


@pytest.mark.real
def test_details_of_a_kernel(tmp_path: Path) -> None:
    info = read(pack(profile("kineto/h100_bert_small.json.gz")), tmp_path, 0, 1)["info"]
    told = {one["name"]: one["value"] for one in info["arguments"]}
    assert {"grid", "block", "registers", "stream"} <= told.keys()
    assert info["launch"]["kind"] == "runtime_call"
    assert info["within"]


@pytest.mark.real
@pytest.mark.parametrize("name", ["kineto/h100_bert_small.json.gz", "kineto/a100_rank0_of_128.json.gz"])
def test_rates_of_kernels_are_those_of_the_roofline(name: str, tmp_path: Path) -> None:
    """Summed over the calls of an op they are the report's; the A100's profile does not tell which of its peaks."""
    made = profile(name)
    costs = dict(read(pack(made), tmp_path, 0, 1)["costs"])
    known = "h100" in name
    assert any("flops_share" in cost for cost in costs.values() if cost.get("flops")) == known
    for cost in costs.values():
        if cost.get("flops"):
            assert cost["flops_per_s"] == pytest.approx(cost["flops"] / cost["op_kernels_ns"] * 1e9)
    compared = 0
    for work in made.facts.work:
        owners: dict[tuple[str, str | None], dict[int, dict[str, float]]] = {}
        for row in np.flatnonzero(work.used & (work.owner >= 0)).tolist():
            owner, kernel = int(work.owner[row]), int(work.activity.slice[work.rows[row]])
            op = made.trace.strings[made.trace.slices.name[owner]]
            owners.setdefault((op, dims(made, owner)), {})[owner] = costs[kernel]
        for roof in made.document()["analyses"]["roofline"]["ops"]:
            calls = owners[roof["op"], roof["dims"]].values()
            if len(calls) != roof["count"]:
                continue  # Calls of one op with other scalars.
            compared += 1
            ns = sum(call["op_kernels_ns"] for call in calls)
            assert ns == roof["total_ns"]
            for rate in ("flops_per_s", "flops_share", "bytes_per_s", "bandwidth_share"):
                told = [call[rate] * call["op_kernels_ns"] / ns for call in calls if rate in call]
                assert (sum(told) if told else None) == (pytest.approx(roof[rate]) if roof[rate] is not None else None)
    assert compared > 5


def dims(made: stepscope.Profile, op: int) -> str | None:
    ops = made.trace.host_ops
    code = int(ops.input_dims[np.flatnonzero(ops.slice == op)[0]])
    return "".join(made.trace.strings[code].split()) if code >= 0 else None


def test_a_pack_depends_on_its_profile_alone() -> None:
    assert pack(profile("example")) == pack(profile("example"))


@pytest.mark.real
@pytest.mark.slow
def test_order_and_labels(tmp_path: Path) -> None:
    tracks = read(pack(profile(TRACES[1])), tmp_path, 0, 1)["tracks"]
    assert [(track["type"], track["holds"]) for track in tracks[:6]] == [
        ("critical", None), ("steps", None), ("phases", None), ("annotations", None), ("idle", None),
        ("stream", "compute, D2D"),
    ]  # fmt: skip
    assert [track["type"] for track in tracks].index("thread") > 4
    assert [track["holds"] for track in tracks if track["type"] == "thread"][:2] == ["main loop", "backward"]
    numbered = read(pack(profile("kineto/mi300_vllm_decode.json.gz")), tmp_path, 0, 1)["tracks"]
    assert {"stream 0", "thread 851"} <= {track["label"] for track in numbered}


def test_long_names_are_cut_and_attacks_stay_text(tmp_path: Path) -> None:
    packed = pack(opened(hostile_profile(tmp_path)))
    assert len(packed) < 500_000
    found = read(packed, tmp_path, 0, 10**12)
    names = {one["name"] for sum_ in found["sums"] for one in sum_["names"]}
    assert any(name.startswith("<img src=x") for name in names)
    assert f"{LONG[:2000]}… (1000000 characters)" in names


@pytest.mark.real
def test_a_profile_whose_ops_have_no_scope_is_packed():
    """Compiled ops without a name scope: there are layers to ask for, and none of them."""
    assert len(pack(profile("xplane/mi300_jax_conv.xplane.pb"))) > 0
