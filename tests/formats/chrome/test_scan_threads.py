"""What several threads read of one file is put together as if one had read it."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.merge import merge
from stepscope.formats.chrome.scan.roads import TolerantRoad
from stepscope.formats.chrome.scan.rows import RowsPart
from stepscope.formats.chrome.scan.window import window_of


def event(name: str, tid: int, text: str) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": f"of {name}", "pid": 1, "tid": tid, "args": {"Input type": text}}


EVENTS = [event("first", 7, "a"), event("second", 8, "b"), event("third", 9, "c"), event("second", 7, "c")]


def parts(threads: str) -> deque[RowsPart]:
    """An event a part; ``threads`` says which thread reads each, and they read from the last to the first."""
    roads = {thread: TolerantRoad() for thread in threads}
    made: deque[RowsPart] = deque()
    for place in reversed(range(len(EVENTS))):
        road = roads[threads[place]]
        road.advance(window_of(json.dumps(EVENTS[place]).encode() + b"]", 1000 * place, True), 0, 1 << 62, False)
        made.extendleft(reversed(road.take()[0]))
    return made


def test_texts_and_threads_are_numbered_by_their_first_use() -> None:
    for threads in ("abba", "abab", "abcd", "aabb"):
        events = merge(parts(threads), {}, 0, Tally())
        assert events.strings[:3] == ["first", "second", "third"]
        assert events.lanes == [(1, 7), (1, 8), (1, 9)]
        assert events.raws == ['"a"', '"b"', '"c"']
        assert [events.strings[code] for code in events.name] == [one["name"] for one in EVENTS]
        assert [events.strings[code] for code in events.category] == [one["cat"] for one in EVENTS]
        assert [events.lanes[lane][1] for lane in events.lane] == [one["tid"] for one in EVENTS]
        assert [events.raws[code] for code in events.argument("Input type").texts] == ['"a"', '"b"', '"c"', '"c"']
