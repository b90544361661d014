"""Too little work, copies of one size again and again, where to work on a batch, and graphs that are cut early."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.limits import REPEATED_COPIES
from stepscope.trace.tables import Kind
from tests.diagnosis import loops
from tests.diagnosis.loops import CALL, diagnosed, loop, work
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event
from tests.kit.xla import HostRange, Job, Op, build

US = 1_000
STEP = 4_000


def every(events: list[Event], rule: str):
    found = diagnosed(events)
    return [f for f in (*found.findings, *found.minor) if f.rule == rule]


def test_a_step_takes_no_less_than_the_copies_that_run_beside_it():
    """Of 4 ms the link is busy for 3: nothing hides them all behind 1 ms of kernels."""
    (finding,) = (one for one in diagnosed(loops.copying(STEP, 3_000)).findings if one.rule == "exposed_copy")
    assert finding.cost_ns_per_step == 3_000 * US
    assert finding.predicted_step_ns == pytest.approx(3_000 * US, rel=0.001)


def launched(compute_us: int, launch_us: int) -> list[Event]:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::add", start, launch_us)
        work(drawing, start + launch_us - CALL, start + launch_us + compute_us)

    return loop(launch_us + compute_us, step)


def test_a_step_that_launches_more_than_it_computes_has_too_little_to_do():
    (finding,) = every(launched(300, 700), "too_little_work")
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (700 * US, None)
    assert (finding.basis, finding.confidence) == ("heuristic", "low")
    assert "time both" in finding.not_determined
    assert "a larger batch" in finding.fix


def test_one_long_launch_is_told_elsewhere_and_counts_for_nothing_here():
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for at, launch_us in ((start, 700), (start + 800, 3_000)):
            drawing.host("aten::add", at, launch_us)
            work(drawing, at + launch_us - CALL, at + launch_us + 100)

    (finding,) = every(loop(3_900, step), "too_little_work")
    assert finding.cost_ns_per_step == 700 * US
    assert every(launched(300, 3_000), "too_little_work") == []


@pytest.mark.parametrize(("compute_us", "launch_us"), [(500, 500), (1_001, 5_000)])
def test_enough_work_is_not_said_to_be_too_little(compute_us: int, launch_us: int):
    assert every(launched(compute_us, launch_us), "too_little_work") == []


def copying(count: int, sizes: tuple[int, ...] = (4096,)) -> list[Event]:
    """So many exposed copies of 20 µs within the device per step, from one op."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        work(drawing, start, start + 1_000)
        drawing.host("aten::clone", start + 10, CALL * count + CALL)
        for k in range(count):
            call = drawing.call("cudaMemcpyAsync", start + 10 + CALL * k, CALL)
            drawing.copy(call, "DtoD", start + 1_000 + 20 * k, 20, sizes[k % len(sizes)])
        at = start + 1_000 + 20 * count
        drawing.kernel(drawing.launch(start + 500, CALL), "k", at, start + STEP - at)

    return loop(STEP, step)


def test_many_copies_of_one_size_could_be_one():
    (finding,) = every(copying(10), "repeated_copies")
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (200 * US, 180 * US)
    assert "10 copies of 4.00 KiB each per step come from `aten::clone`" in finding.why
    assert finding.basis == "heuristic"


@pytest.mark.parametrize(
    ("direction", "cure"), [("HtoD", "Copy once"), ("DtoH", "Read all values"), ("PtoP", "Copy once")]
)
@pytest.mark.parametrize(("count", "many"), [(REPEATED_COPIES, True), (REPEATED_COPIES - 1, False)])
def test_many_copies_between_host_and_devices_are_told_once(direction: str, cure: str, count: int, many: bool):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host("aten::to", start, CALL * count + CALL)
        for k in range(count):
            copied = drawing.call("cudaMemcpyAsync", start + CALL * k, CALL)
            drawing.copy(copied, direction, start + 100 + 20 * k, 20, 4096)  # type: ignore[arg-type]
        at = start + 100 + 20 * count
        drawing.kernel(drawing.launch(start + 90, CALL), "k", at, start + STEP - at)

    events = loop(STEP, step)
    assert every(events, "repeated_copies") == []
    (finding,) = every(events, "exposed_copy")
    assert (f"{count} of 4.00 KiB each come from `aten::to`" in finding.why) is many
    assert finding.fix.startswith(cure) is many


@pytest.mark.parametrize("events", [copying(REPEATED_COPIES - 1), copying(10, (4096, 8192))], ids=["few", "two sizes"])
def test_few_copies_and_copies_of_several_sizes_are_not(events: list[Event]):
    assert every(events, "repeated_copies") == []


@pytest.mark.parametrize(
    ("input_us", "copy_us", "words"), [(500, 900, "smaller on the CPU first"), (900, 500, "takes work from the host")]
)
def test_sending_a_batch_is_weighed_against_waiting_for_it(input_us: int, copy_us: int, words: str):
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.input_wait(start, input_us)
        call = drawing.call("cudaMemcpyAsync", start + input_us, CALL)
        drawing.copy(call, "HtoD", start + input_us + CALL, copy_us)
        at = start + input_us + copy_us + CALL
        drawing.kernel(drawing.launch(start + input_us + CALL, CALL), "k", at, start + STEP - at)

    (finding,) = every(loop(STEP, step), "exposed_copy")
    assert words in finding.why


def cut(read: str | None, *, framework: str = "PyTorch/XLA", inside: str | None = None) -> Job:
    """Two programs per step of 1,000 µs; between them a value is read, and the device is idle for 200 µs."""
    host: list[HostRange] = []
    ops: list[Op] = []
    for k in range(6):
        at = 1_000 * k
        host.append(HostRange("train", at, 1_000, Kind.STEP, step=k))
        for part, begin in enumerate((0, 600)):
            host.append(HostRange("PjRtComputationClient::ExecuteComputation", at + begin, 50, Kind.RUNTIME_CALL))
            ops.append(Op("fusion.1", at + begin + 50, 350, execute=len(host) - 1, run=2 * k + part))
        if read:
            host.append(HostRange(read, at + 100, 310))
        if inside:
            host.append(HostRange(inside, at + 90, 330, Kind.PYTHON_FRAME))
    return Job(host, ops, framework=framework)


def cuts(job: Job):
    found = diagnose(analyse(build(job)))
    return [f for f in (*found.findings, *found.minor) if f.rule == "graph_cut_early"]


def test_a_value_read_between_two_programs_of_a_step_cuts_its_graph():
    (finding,) = cuts(cut("PjRtComputationClient::TransferFromDevice"))
    assert finding.cost_ns_per_step == 250 * US
    assert finding.why.startswith("Once per step")
    assert "add_step_closure" in finding.fix


@pytest.mark.parametrize(("function", "count"), [("save_checkpoint", 0), ("evaluate", 1)])
def test_a_checkpoint_has_to_read_and_cuts_nothing(function: str, count: int):
    read = "PjRtComputationClient::TransferFromDevice"
    assert len(cuts(cut(read, inside=f"train.py(31): {function}"))) == count


@pytest.mark.parametrize("read", [None, "train/metrics"])
def test_programs_without_a_read_between_them_are_no_cut(read: str | None):
    assert cuts(cut(read)) == []


@pytest.mark.parametrize(("op", "told"), [("aten::_foreach_add_", True), ("ExecutorState::Process", False)])
def test_a_long_launch_names_an_op_by_the_many_it_runs_unless_it_is_what_runs_all_of_them(op: str, told: bool):
    """Of what a framework runs everything in, nobody can make fewer."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.host(op, start, 3_000)
        for k in range(30):
            drawing.host("aten::add", start + 90 * k, 90)
        work(drawing, start + 3_000 - CALL, start + STEP)

    (finding,) = every(loop(STEP, step), "long_launch")
    assert (f"`{op}` runs 30 other ops inside of it" in finding.fix) is told
    assert ("Look at what runs there" in finding.fix) is not told
