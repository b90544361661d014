"""What went wrong in an input, counted by kind, in words for a person."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope.formats.chrome.events import Damage

TEXTS = {
    "truncated": "the file is cut off; the event at the cut was dropped",
    "truncated_tail": "the file is cut off behind its last event",
    "gzip_truncated": "the compressed file is cut off; what decompressed was used",
    "gzip_corrupt": "the compressed data is corrupt; what decompressed before the fault was used",
    "gzip_trailing": "bytes that are not gzip follow the compressed data and were ignored",
    "zip_truncated": "the zip archive is cut off; what decompressed was used",
    "zip_corrupt": "the data in the zip archive is corrupt; what decompressed before the fault was used",
    "missing_end": "the closing bracket of traceEvents is missing",
    "control_characters": "raw control characters in texts were kept as they are",
    "invalid_utf8": "bytes that are not UTF-8 were replaced by U+FFFD",
    "unescaped_backslash": "backslashes that escape nothing were kept literally",
    "unescaped_quote": "unescaped quotes inside texts were repaired",
    "not_json_value": "values that are no JSON (NaN, Infinity, N/A) count as absent",
    "time_out_of_range": "times beyond 292 years count as absent",
    "missing_key_quote": "keys without their opening quote were repaired",
    "stray_bracket": "extra closing brackets were ignored",
    "stray_comma": "extra or missing commas between events were repaired",
    "member_comma": "extra or missing commas inside events were repaired",
    "broken_event": "events with damaged arguments were kept without them",
    "lost_event": "damaged events could not be read",
    "garbage": "bytes between events that are no JSON were skipped",
    "not_an_object": "elements of traceEvents that are not objects were skipped",
    "oversized_event": "events larger than 16 MiB were skipped",
    "broken_argument": "arguments that are no valid JSON were kept as text",
    "header_damaged": "damaged keys outside traceEvents were dropped",
    "header_repaired": "unescaped quotes in texts outside traceEvents were repaired",
    "nested_trace_events": "traceEvents inside traceEvents was read as one list",
    "trailing_content": "content behind the end of the trace was ignored",
}


@dataclass(slots=True)
class _Entry:
    count: int = 0
    first_offset: int | None = None
    lost_events: int = 0
    lost_bytes: int = 0


@dataclass(slots=True)
class Tally:
    """Damage met so far; one per thread, added up at the end."""

    entries: dict[str, _Entry] = field(default_factory=dict)

    def note(self, code: str, offset: int | None, *, count: int = 1, events: int = 0, size: int = 0) -> None:
        """Count damage ``code`` at ``offset``, with what it lost."""
        if code not in TEXTS:
            raise KeyError(code)
        entry = self.entries.setdefault(code, _Entry())
        entry.count += count
        entry.lost_events += events
        entry.lost_bytes += size
        if offset is not None and (entry.first_offset is None or offset < entry.first_offset):
            entry.first_offset = offset

    def add(self, other: Tally) -> None:
        """Take over another tally."""
        for code, entry in other.entries.items():
            self.note(code, entry.first_offset, count=entry.count, events=entry.lost_events, size=entry.lost_bytes)

    def damages(self) -> list[Damage]:
        """One entry per kind, by first offset."""
        every = [
            Damage(code, entry.count, entry.first_offset, TEXTS[code], entry.lost_events, entry.lost_bytes)
            for code, entry in self.entries.items()
        ]
        return sorted(every, key=lambda damage: (damage.first_offset or 0, damage.code))
