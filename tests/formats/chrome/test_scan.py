"""Both roads against ``json`` on valid texts, and the ways a file reaches them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.scan import bulk, drive, read_events
from stepscope.inputs.source import Source

from . import scan_reference as reference
from .scan_texts import documents


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("texts")


def read(folder: Path, text: bytes, road: Any, name: str = "trace.json") -> RawEvents:
    path = folder / name
    path.write_bytes(text)
    return read_events(Source(path), road=road)


@given(text=documents())
@example(text=b'[{"ph": "X", "pid": 0, "tid": 0, "ts": 0}, {"ph": "X", "pid": 0, "tid": "00", "ts": 0}]')
@pytest.mark.parametrize("road", ["fast", "tolerant"])
def test_both_roads_equal_json(folder: Path, road: str, text: bytes) -> None:
    events = read(folder, text, road)
    assert reference.columns(events) == reference.rows(text)
    assert reference.tidy(events.header) == reference.tidy(reference.header(text))
    assert events.total_bytes == len(text)
    assert [damage.code for damage in events.damages if damage.code not in HARMLESS] == []


HARMLESS = {"time_out_of_range"}  # valid JSON, yet no time of a trace


@given(text=documents(), sizes=st.tuples(st.integers(20, 400), st.integers(8, 100), st.integers(1, 300)))
@pytest.mark.parametrize("container", ["plain", "gzip"])
def test_chunk_and_block_borders_do_not_show(
    folder: Path, container: str, text: bytes, sizes: tuple[int, int, int]
) -> None:
    whole = read(folder, text, "tolerant")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(("CHUNK", "MARGIN", "HEAD_BLOCK"), sizes, strict=True):
            patch.setattr(drive, name, size)
        patch.setattr(drive, "SLACK", sizes[1])
        patch.setattr(bulk, "BLOCK", sizes[0])
        for road in ("fast", "tolerant"):
            pieces = read(folder, text if container == "plain" else gzip.compress(text, 1), road)
            assert reference.same(whole, pieces)
            assert pieces.damages == whole.damages
