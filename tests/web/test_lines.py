"""The lines that the viewer adds to a profile's own: annotations, and work that was not recorded beside the gaps."""

from __future__ import annotations

from stepscope.analysis.analyse import analyse
from stepscope.web.lines import ANNOTATED, CAUSE, IDLE, UNRECORDED, Line, TraceTexts, lines
from tests.analysis.test_annotations import NESTED
from tests.analysis.test_unrecorded import decode
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import draw
from tests.kit.events import Event, Stream
from tests.support import trace_of

US = 1_000


def drawn(events: list[Event]) -> tuple[list[Line], list[str]]:
    trace = trace_of(events)
    texts = TraceTexts(list(trace.strings))
    made = lines(analyse(trace), texts)
    return made, texts.strings


def shown(line: Line, texts: list[str]) -> list[tuple[str, int, int]]:
    """Name, start and end in µs."""
    ends = (line.start + line.dur).tolist()
    return [
        (texts[code], start // US, end // US)
        for code, start, end in zip(line.text.tolist(), line.start.tolist(), ends, strict=True)
    ]


def of(found: list[Line], id: str) -> Line:
    (line,) = [line for line in found if line.id == id]
    return line


def test_annotations_have_a_row_above_the_device_and_one_above_the_threads():
    found, texts = drawn(draw(NESTED))
    device = of(found, "device 0 annotations")
    assert shown(device, texts) == [
        ("forward", 20, 140), ("attention", 50, 140), ("optimizer", 310, 380),
    ]  # fmt: skip
    assert set(device.kind.tolist()) == {ANNOTATED}
    (host,) = [line for line in found if line.type == "annotations" and line.device is None]
    assert shown(host, texts) == [
        ("forward", 0, 150), ("attention", 30, 100), ("optimizer", 170, 360), ("load", 180, 280),
    ]  # fmt: skip
    order = [line.type for line in found if line.device == 0]
    assert order.index("annotations") < order.index("idle") < order.index("stream")


def test_copies_of_no_annotation_do_not_cut_those_of_one_that_runs_beside_them():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.annotation("train", 100, 200)
    drawing.kernel(drawing.launch(110, 5), "gemm", 120, 300)
    drawing.copy(drawing.call("cudaMemcpyAsync", 320, 5), "HtoD", 330, 20, stream=Stream(0, 9))
    drawing.kernel(drawing.launch(130, 5), "gemm", 420, 300)
    found, texts = drawn(drawing.events())
    assert shown(of(found, "device 0 annotations"), texts) == [("train", 120, 720)]


def test_a_profile_without_annotations_has_no_such_row():
    drawing = TraceDrawing()
    drawing.step(1, 0, 1000)
    drawing.kernel(drawing.launch(110, 5), "gemm", 120, 300)
    assert "annotations" not in {line.type for line in drawn(drawing.events())[0]}


def test_work_that_was_not_recorded_is_drawn_beside_the_gaps_as_no_gap():
    found, texts = drawn(decode().events())
    idle = of(found, "device 0 idle")
    assert idle.label == "idle, by cause; work not recorded"
    unseen = idle.kind == UNRECORDED
    assert unseen.sum() == 1
    (span,) = [one for one, kept in zip(shown(idle, texts), unseen.tolist(), strict=True) if kept]
    assert span == ("work not recorded", 0, 463_000)
    assert idle.gap is not None
    assert (idle.gap[unseen] == -1).all()
    assert (idle.gap[idle.kind == IDLE] >= 0).all()


def test_an_idle_device_has_gaps_and_their_causes_alone():
    found, _ = drawn(draw(NESTED))
    idle = of(found, "device 0 idle")
    assert idle.label == "idle, by cause"
    assert set(idle.kind.tolist()) <= {IDLE, CAUSE}
