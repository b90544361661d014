"""Whatever stands in a Chrome trace: no dialect fails, and every event is a row or counted."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.chrome.read import DIALECTS
from stepscope.formats.chrome.samples import with_samples
from stepscope.formats.chrome.scan import read_events
from stepscope.formats.chrome.writing import write
from stepscope.inputs.source import Source
from tests.formats.chrome.perfetto import dropped, load

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
numbers = st.integers(-1, 4) | st.integers(0, 4).map(str)
PLANES = ["/host:CPU", "/device:GPU:0", "/device:TPU:1", "Stream #7(Kernel)", "XLA Ops", "Steps"]
args = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(PLANES),
        "step_num": numbers, "_r": numbers, "hlo_op": st.sampled_from(["dot.1", "all-reduce", "infeed", ""]),
        "hlo_module": st.just("m"), "run_id": numbers, "device_ordinal": numbers | st.just(1 << 40),
        "correlation_id": numbers, "correlation": numbers, "memcpy_details": st.sampled_from(["size:4", "", "x"]),
        "kernel_details": st.sampled_from(["grid:1,1,1 regs:-4", "occ_pct:nan"]), "device": numbers, "stream": numbers,
        "stepscope kind": st.sampled_from(["kernel", "step", "x"]), "stepscope launch": numbers,
        "stepscope marker": st.sampled_from(["steps_line", "x"]), "stepscope memory": st.just("(pinned -> device)"),
        "allocator": st.just("a"), "other": anything,
    },
)  # fmt: skip
events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from([*"XXXXBEbenSTFpCiIRstfMNODPvc", ""]),
        "cat": st.sampled_from(["FEE", "a", "Op", "ac2g", "dataflow"]) | anything,
        "name": st.sampled_from(
            ["thread_name", "process_name", "f (a.py:3)", "$a.py:3 f", "train 4", "[memory]", "MemcpyD2H",
             "CommonPjRtLoadedExecutable::Execute (jit_f)", "12"]
        ) | anything,
        "pid": st.sampled_from([1, 2, "2", "host", None, 1.5, -1]),
        "tid": st.sampled_from([1, 2, "main", None, 1 << 62]),
        "ts": st.integers(-5, 50) | st.sampled_from(["7", "x", None, 1e18, 0.0004]),
        "dur": st.integers(-2, 50) | st.sampled_from(["7", "x", None, 1e18, 1e-6]),
        "id": st.integers(0, 2) | anything, "id2": anything, "bp": st.sampled_from(["e", 5, None]),
        "args": args | anything,
    },
)  # fmt: skip
roots = st.fixed_dictionaries(
    {},
    optional={
        "stepscope": anything | st.just({"tracks": [{"kind": "device_stream", "lanes": [[1, 1]], "device": 0}]}),
        "viztracer_metadata": anything, "baseTimeNanoseconds": anything, "deviceProperties": anything,
    },
)  # fmt: skip


@given(st.lists(events, max_size=14), roots, st.sampled_from([None, "cpu_op", "FEE"]))
def test_no_dialect_fails(found: list[dict[str, Any]], root: dict[str, Any], category: str | None) -> None:
    steady = {"ph": "X", "name": "always", "pid": 1, "tid": 1, "ts": 25, "dur": 1, "cat": category}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(json.dumps({**root, "traceEvents": [steady] * 3 + found}))
        source = Source(str(path))
        read = with_samples(read_events(source), source)
        for dialect in DIALECTS:
            trace = dialect.fill(read)()
            said = trace.completeness
            kept = sum(loss.count for loss in said.losses if loss.code in ("flow_open", "event_empty"))
            lost = sum(loss.lost_events for loss in said.losses if not loss.damaged)
            assert sum(said.rows.values()) + lost + kept == said.events, dialect.name
            write(trace, path.with_name("out.json"))
            assert dropped(load(path.with_name("out.json"))) == []
