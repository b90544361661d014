"""Batches made in Python on the launching thread are input; texts and images made of outputs are not."""

from __future__ import annotations

import pytest

from stepscope.analysis.categories import Category
from stepscope.diagnosis.evidence import booked
from tests.diagnosis.loops import CALL, diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event

US = 1_000
STEP = 10_000
FETCH = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def preparing(*frames: str, at_end: bool = False) -> list[Event]:
    """Each step waits 2 ms in nested Python frames: for its batch, or behind its work."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        begin = start + STEP - 2_000 if at_end else start
        for depth, frame in enumerate(frames):
            drawing.python(frame, begin + depth, 2_000 - 2 * depth)
        work = start if at_end else start + 2_000
        copy = drawing.call("cudaMemcpyAsync", work, CALL)
        drawing.copy(copy, "HtoD", work + CALL, 100, 1 << 20, "Pageable")
        drawing.kernel(drawing.launch(work + 10, CALL), "k", work + CALL + 100, 8_000 - CALL - 100)

    return loop(STEP, step)


@pytest.mark.parametrize(
    "frames",
    [
        ("infer.py(20): read_clip", "decord/video_reader.py(160): get_batch"),
        ("infer.py(20): ask", "transformers/tokenization_utils_base.py(2900): __call__"),
        ("infer.py(20): read_clip", "<built-in method read of cv2.VideoCapture object at 0x7f>"),
        ("infer.py(20): read_image", "PIL/Image.py(3200): open"),
        ("train.py(8): collate_fn", "numpy/core/shape_base.py(3): stack"),
    ],
)
def test_what_makes_a_batch_is_input(frames: tuple[str, ...]):
    facts = facts_with(preparing(*frames))
    assert booked(facts, facts.accounts[0], Category.INPUT) == pytest.approx(2_000 * US, rel=0.01)
    finding = next(f for f in diagnosed(preparing(*frames)).findings if f.rule == "input_bound")
    assert (finding.where[0].file, finding.where[0].function) in [
        ("infer.py", frames[0].split(": ")[1]),
        ("train.py", "collate_fn"),
    ]


@pytest.mark.parametrize(
    "frames",
    [
        ("infer.py(20): answer", "transformers/tokenization_utils_base.py(3900): batch_decode"),
        ("infer.py(20): write", "PIL/Image.py(2500): save"),
        ("infer.py(20): write", "torchvision/io/video.py(60): write_video"),
    ],
)
def test_what_is_made_of_outputs_is_no_input(frames: tuple[str, ...]):
    found = diagnosed(preparing(*frames, at_end=True))
    assert [f.rule for f in found.findings if f.rule in ("input_bound", "between_steps")] == ["between_steps"]


def test_reading_beside_a_loader_counts_together_with_it():
    """A loader's range and decoding outside of it: both are the batch's."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.annotation(FETCH, start, 1_500)
        drawing.python("decord/video_reader.py(160): get_batch", start + 1_500, 500)
        drawing.kernel(drawing.launch(start + 2_000, CALL), "k", start + 2_000 + CALL, 8_000 - CALL)

    facts = facts_with(loop(STEP, step))
    assert booked(facts, facts.accounts[0], Category.INPUT) == pytest.approx(2_000 * US, rel=0.01)
