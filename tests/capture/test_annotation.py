"""Named ranges: what they cost while nothing records, and what half-imported frameworks do to them."""

from __future__ import annotations

import gc
import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stepscope.capture import annotate, annotation


class Ranges:
    """A pretended PyTorch that keeps the ranges it was asked for."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.recording = False
        self.opened: list[tuple[str, str | None]] = []
        module: Any = ModuleType("torch")
        module.autograd = SimpleNamespace(
            _profiler_enabled=self.is_recording, profiler=SimpleNamespace(record_function=self.record_function)
        )
        patch.setattr(annotation, "_modules", {"torch": module, "jax": ModuleType("jax")})
        patch.setattr(annotation, "_imported", annotation._Imported())

    def is_recording(self) -> bool:
        return self.recording

    def record_function(self, name: str, text: str | None) -> Any:
        self.opened.append((name, text))
        return nullcontext()


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> Ranges:
    return Ranges(monkeypatch)


def test_ranges_open_while_the_profiler_records(ranges: Ranges) -> None:
    """JAX is half-imported here: it has no profiler yet."""
    with annotate("before"):
        ranges.recording = True
    with annotate("load", rows=32):
        ranges.recording = False
    with annotate("after"):
        pass
    assert ranges.opened == [("load", "rows=32")]


def test_nothing_is_looked_up_again_while_nothing_records(ranges: Ranges, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three calls of ours, and the framework's own answer: half a microsecond."""
    del annotation._modules["jax"]
    with annotate("first"):
        pass
    calls: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    gc.disable()  # Libraries that other tests import have callbacks of it.
    sys.setprofile(note)
    try:
        with annotate("x", rows=32):
            pass
    finally:
        sys.setprofile(None)
        gc.enable()
    assert calls == ["__init__", "__enter__", "is_recording", "__exit__"]


def test_what_an_annotated_function_raises_passes() -> None:
    @annotate("fails")
    def fails() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
