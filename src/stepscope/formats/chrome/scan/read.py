"""The entry: choose a road, read the list of events and what stands around it, make the columns."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from stepscope import compiled, kept_code
from stepscope.formats.chrome.events import RawEvents
from stepscope.formats.chrome.scan import drive
from stepscope.formats.chrome.scan.damage import Tally
from stepscope.formats.chrome.scan.drive import (
    Feed,
    Listing,
    Progress,
    read_chunks,
    read_stream,
    thread_count,
)
from stepscope.formats.chrome.scan.header import Root
from stepscope.formats.chrome.scan.merge import merge
from stepscope.formats.chrome.scan.roads import Road, TolerantRoad
from stepscope.inputs.inflate import Stream
from stepscope.inputs.source import Source

RoadType = type[Road]

_SMALL = 1 << 17
"""Below this size the tolerant road is done before numba is even imported."""


def read_events(
    source: Source, progress: Progress | None = None, *, road: Literal["auto", "fast", "tolerant"] = "auto"
) -> RawEvents:
    """Read every event of a trace.

    ``progress`` is called with (bytes of the file done, bytes of the file). ``road`` "auto" takes the fast road, but
    the tolerant one for small files and where numba cannot be used; the latter is said in ``RawEvents.notices``.

    Raises :class:`~stepscope.errors.InputError` where the input cannot be read or is no trace; damage that can be
    repaired or skipped is listed in ``RawEvents.damages`` instead.
    """
    report = progress or (lambda done, total: None)
    tally = Tally()
    with source.stream() as stream:
        feed = Feed(stream)
        feed.more()
        root = Root(source.path, tally)
        opening = root.open(feed.data, feed.more)
        make_road, notices = _choose(road, small=feed.ended and len(feed.data) < _SMALL, size=source.inflated)
        listing = _list(source, stream, feed, opening.start, make_road, report)
        if stream.fault is not None:
            tally.note(stream.fault.code, stream.fault.offset, size=stream.fault.lost_bytes)
    tally.add(listing.tally)
    header = opening.header
    if listing.tail.strip() or not tally.entries.keys() & {"missing_end", "truncated"}:
        header |= root.close(listing.tail, 0, listing.end, opening.bare)
    events = merge(listing.parts, header, listing.total_bytes, tally)
    events.notices.extend(notices)
    report(source.size, source.size)
    return events


def _list(source: Source, stream: Stream, feed: Feed, start: int, make_road: RoadType, report: Progress) -> Listing:
    if source.container == "plain" and source.size - start > 2 * drive.CHUNK and make_road.parallel:
        return read_chunks(source, start, make_road, thread_count(), lambda done: report(done, source.size))
    return read_stream(source, feed, stream, start, make_road(), lambda: report(stream.consumed, source.size))


def _choose(road: str, small: bool, size: int) -> tuple[RoadType, list[str]]:
    """The road to take, and what to say about it."""
    if road == "tolerant" or (road == "auto" and (small or _is_little(size))):
        return TolerantRoad, []
    compiled.compiler()  # Loaded there first: not as a file where one stands would have it.
    try:
        from stepscope.formats.chrome.scan import fast
    except (ImportError, OSError) as error:
        if road == "fast":
            raise
        return TolerantRoad, [f"numba cannot be used here ({error}); reading without it is some forty times slower"]
    if compiled.disabled():
        return TolerantRoad, ["NUMBA_DISABLE_JIT is set; reading without numba is some forty times slower"]
    if kept_code.cache_folder(Path(__file__).parent) is None:
        return fast.FastRoad, [
            "no folder for compiled kernels is writable; they are compiled anew each time (set STEPSCOPE_CACHE)"
        ]
    return fast.FastRoad, []


def _is_little(size: int) -> bool:
    """Whether the tolerant road has read so much before the fast one could begin."""
    if not compiled.available() or compiled.disabled() or not compiled.JSON.takes(size, _is_kept):
        return False
    compiled.JSON.done += size
    return True


def _is_kept() -> bool:
    return not compiled.must_compile(Path(__file__).parent, "kernel.scan")
