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


def making(
    *frames: str, range_: str = "", sent: int = 1 << 20, loader: str = "", at: int = 0, marked: bool = True
) -> list[Event]:
    """Each step waits 4 ms in nested Python frames (or a range) of which nothing says that they make a batch but what
    comes next: a copy of ``sent`` bytes. A ``loader`` is asked before or behind them; ``at`` they begin, behind a
    kernel where that is later than the step."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.python("train.py(50): step", start, STEP - 10)
        if at:
            drawing.kernel(drawing.launch(start + 10, CALL), "k", start + 10 + CALL, 500)
        if loader == "before":
            drawing.annotation(FETCH, start + at + 10, 300)
        if loader == "behind":
            drawing.annotation(FETCH, start + at + 4_200, 300)
        for depth, frame in enumerate(frames):
            drawing.python(frame, start + at + 400 + depth, 3_700 - 2 * depth)
        if range_:
            drawing.annotation(range_, start + at + 400, 3_700)
        work = start + at + 4_600
        drawing.copy(drawing.call("cudaMemcpyAsync", work, CALL), "HtoD", work + CALL, 100, sent, "Pinned")
        drawing.kernel(drawing.launch(work + 10, CALL), "k", work + CALL + 100, 5_400 - at)

    events = loop(STEP, step)
    return events if marked else [event for event in events if not event.name.startswith("ProfilerStep")]


MAKES = ("pipeline.py(20): following", "<built-in function asarray>")


@pytest.mark.parametrize(
    ("events", "place"),
    [
        (making(*MAKES), ("pipeline.py", 20)),
        (making("pipeline.py(20): parse", "json/decoder.py(330): decode"), ("pipeline.py", 20)),
        (making("numpy/_core/shape_base.py(380): stack"), ("train.py", 50)),
        (making(*MAKES, loader="before"), ("pipeline.py", 20)),
        # The second of two small batches of a step: only its name says what it is.
        (making("train.py(8): make_batch", at=600), ("train.py", 8)),
    ],
)
def test_what_is_made_right_before_it_is_sent_is_input(events: list[Event], place: tuple[str, int]):
    facts = facts_with(events)
    assert booked(facts, facts.accounts[0], Category.INPUT) >= 3_600 * US
    found = diagnosed(events)
    finding = next(f for f in found.findings if f.rule == "input_bound")
    assert (finding.where[0].file, finding.where[0].line) == place
    assert "thread or process" in finding.fix
    assert "a copy to the device follows" in finding.why
    assert not any("Run it every N steps" in f.fix for f in found.findings)


def test_a_range_right_before_a_copy_is_input():
    found = diagnosed(making(range_="next examples"))
    finding = next(f for f in found.findings if f.rule == "input_bound")
    assert "`next examples`" in finding.why
    assert finding.cost_ns_per_step == pytest.approx(3_700 * US, rel=0.01)


@pytest.mark.parametrize(
    "events",
    [
        making("train.py(9): log_metrics", "json/encoder.py(200): encode"),
        making("train.py(9): after", "wandb/sdk/run.py(200): log"),
        making(*MAKES, sent=8),  # a learning rate
        making(*MAKES, loader="behind"),  # the batch is the loader's
        making(*MAKES, at=600),  # in the middle of the step, under a name that says nothing
    ],
)
def test_what_is_not_known_to_be_sent_is_no_input(events: list[Event]):
    facts = facts_with(events)
    assert booked(facts, facts.accounts[0], Category.INPUT) <= 400 * US
    assert "between_steps" in [f.rule for f in diagnosed(events).findings]


@pytest.mark.parametrize("events", [making(*MAKES, at=600), making(*MAKES, marked=False)])
def test_what_may_be_sent_is_not_told_to_run_every_few_steps(events: list[Event]):
    finding = next(f for f in diagnosed(events).findings if f.rule == "between_steps")
    assert finding.fix.startswith("What makes the batch that the next copy sends belongs in a thread or process")
