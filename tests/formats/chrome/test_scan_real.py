"""Every column of every real trace, against a reading with ``json`` and ``Decimal``."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from stepscope.formats.chrome.scan import read_arguments, read_events
from stepscope.inputs.source import Source
from tests.kit.some import some

from . import scan_reference as reference

TRACES = Path(os.environ.get("STEPSCOPE_TRACES", Path(__file__).parents[4] / "shared" / "traces"))
FILES = sorted([*TRACES.glob("kineto/*.json.gz"), *TRACES.glob("xplane/*/*.json.gz"), *TRACES.glob("timeline/*.json")])
SMALL = [path for path in FILES if path.stat().st_size < 500_000]
EACH = some(sorted(FILES, key=lambda path: path.stat().st_size), 8)

pytestmark = pytest.mark.real
needs_files = pytest.mark.skipif(not FILES, reason=f"no real traces under {TRACES}")


def text_of(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@needs_files
@pytest.mark.parametrize("path", EACH, ids=lambda path: path.name)
def test_fast_road_equals_json(path: Path) -> None:
    events = read_events(Source(path), road="fast")
    text = text_of(path)
    assert reference.columns(events) == reference.rows(text)
    assert events.header == reference.header(text)
    assert events.total_bytes == len(text)
    assert events.damages == []
    assert {text[offset] for offset in events.offset.tolist()} <= {ord("{")}


@needs_files
@pytest.mark.parametrize("path", some(SMALL, 3), ids=lambda path: path.name)
def test_tolerant_road_equals_fast_road(path: Path) -> None:
    tolerant, fast = (read_events(Source(path), road=road) for road in ("tolerant", "fast"))
    assert reference.same(tolerant, fast)
    assert tolerant.damages == []


@needs_files
@pytest.mark.parametrize("path", some(SMALL, 3), ids=lambda path: path.name)
def test_arguments_are_read_again_at_their_offsets(path: Path, tmp_path: Path) -> None:
    text = text_of(path)
    plain = tmp_path / "plain.json"
    plain.write_bytes(text)
    events = read_events(Source(path), road="fast")
    chosen = np.linspace(0, len(events) - 1, 50).astype(int)
    document = reference.load(text)
    expected = [document["traceEvents"][row].get("args", {}) for row in chosen]
    for source in (Source(path), Source(plain)):
        found = read_arguments(source, events.offset[chosen].tolist())
        assert [list(args) for args in found] == [list(args) for args in expected]
        assert [reference._plain(reference.load(repr_json(args))) for args in found] == [
            reference._plain(args) for args in expected
        ]


def repr_json(value: object) -> bytes:
    import json

    return json.dumps(value).encode()
