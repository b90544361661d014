"""Make a large trace out of a real one: its events again and again, later and later.

    python benchmarks/enlarge.py TRACE OUT --size 1000 [--gzip OUT.gz]

TRACE is a Kineto JSON file, plain or gzip; OUT receives a plain file of about SIZE megabytes. Every byte of the text
stays as it was, but in each repetition the times are shifted by the length of the trace, and the numbers that must
not collide (correlation, External id, flow id, Ev Idx, Python ids …) by their largest value. ``--gzip`` writes the
same text compressed as well, at the level torch.profiler uses (9).
"""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

NUMBERS = re.compile(
    rb'"(ts|id|correlation|[Ee]xternal id|Ev Idx|Profiler Event Index|Record function id|Python id|Python parent id|'
    rb'wait_on_cuda_event_record_corr_id)"\s*:\s*"?(-?\d+)'
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, default=1000, help="megabytes to reach")
    parser.add_argument("--gzip", type=Path, help="write the same text compressed here")
    options = parser.parse_args()
    data = options.trace.read_bytes()
    enlarge(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, options.out, options.size * 1_000_000)
    if options.gzip:
        with options.out.open("rb") as plain, gzip.open(options.gzip, "wb", compresslevel=9) as packed:
            shutil.copyfileobj(plain, packed, 1 << 20)


def enlarge(text: bytes, out: Path, size: int) -> None:
    """Write ``text`` with its list of events repeated until about ``size`` bytes are reached."""
    start, stop = events_of(text)
    last = text.rindex(b"}", start, stop) + 1
    events = text[start:last]
    repetition = Repetition(events)
    with out.open("wb") as file:
        file.write(text[:start])
        for number in range(max(1, round(size / len(events)))):
            if number:
                file.write(b",")
            file.writelines(repetition.shifted(number))
        file.write(text[last:])


def events_of(text: bytes) -> tuple[int, int]:
    """Where the inside of the list of events begins, and where its closing bracket stands."""
    found = re.search(rb'"traceEvents"\s*:\s*\[', text)
    if found is None:
        raise SystemExit("no traceEvents in the trace")
    behind = re.search(rb"\}\s*\](?=\s*(?:,\s*\"[^\"\n]+\"\s*:|\}\s*\Z))", text[found.end() :])
    if behind is None:
        raise SystemExit("the list of events does not end")
    return found.end(), found.end() + behind.end() - 1


class Repetition:
    """The text of the events, cut at the numbers to shift."""

    def __init__(self, events: bytes) -> None:
        matches = list(NUMBERS.finditer(events))
        edges = [0, *(edge for match in matches for edge in match.span(2)), len(events)]
        self._constant = [events[first:second] for first, second in zip(edges[::2], edges[1::2], strict=True)]
        self._numbers = [int(match.group(2)) for match in matches]
        self._is_time = [match.group(1) == b"ts" for match in matches]
        times = [value for value, is_time in zip(self._numbers, self._is_time, strict=True) if is_time and value > 0]
        self._length = max(times) - min(times) + 1_000_000
        self._stride = 1 + max(
            (value for value, is_time in zip(self._numbers, self._is_time, strict=True) if not is_time), default=0
        )

    def shifted(self, number: int) -> Iterator[bytes]:
        """The pieces of repetition ``number``."""
        shift, step = number * self._length, number * self._stride
        for constant, value, is_time in zip(self._constant, self._numbers, self._is_time, strict=False):
            yield constant
            yield b"%d" % (value + shift if is_time else value + step if value > 0 else value)
        yield self._constant[-1]


if __name__ == "__main__":
    main()
