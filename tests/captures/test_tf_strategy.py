"""MirroredStrategy on two processors, with a checkpoint: what the host does in TensorFlow's own ops."""

from __future__ import annotations

import pytest

from tests.captures.checks import at_least, at_most, opened
from tests.captures.jobs import Captures

pytestmark = pytest.mark.slow


def test_saving_is_a_checkpoint_in_the_step_that_saves(captures: Captures) -> None:
    capture = captures["tf_strategy"]
    rows = opened(capture.file("*.xplane.pb")).document()["accounting"]
    saving = {row["step"]: row["parts"]["checkpoint_io"] for row in rows if row["parts"].get("checkpoint_io")}
    assert list(saving) == [capture.truth["saved"]]
    wrote = capture.truth["wrote_ns"]
    assert at_least(wrote) // 2 <= saving[capture.truth["saved"]] <= at_most(wrote)


def test_the_replicas_exchange_gradients_in_every_step(captures: Captures) -> None:
    capture = captures["tf_strategy"]
    exchanged = opened(capture.file("*.xplane.pb")).facts.collectives
    assert len(exchanged) >= capture.truth["steps"]
