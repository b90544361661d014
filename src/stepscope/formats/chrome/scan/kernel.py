"""The fast road's loop: from the bytes of ``traceEvents`` to rows, argument streams and interned texts."""

# ruff: noqa: SIM109  # `x in (a, b)` makes numba build a tuple

from __future__ import annotations

import numpy as np

from stepscope.compiled import inlined, native
from stepscope.formats.chrome.scan.gaps import (
    ACTION,
    ACTION_OF,
    ARGS,
    ARGS_OF_BEGUN,
    ARGS_OF_OPEN,
    ARGS_OPEN,
    ARGUMENT,
    ARRAY_END,
    BEGAN,
    BEGAN_AT,
    BINDING,
    CATEGORY,
    COMMA_DUE,
    DEPTH,
    DEPTH_AT,
    DUR,
    ENDED,
    ENDED_AT,
    GOING,
    LEAF,
    LENGTH,
    MASK,
    MAX_TEMPLATES,
    MORE_NEEDED,
    NAME,
    NEXT,
    NOTHING,
    PHASE,
    PID,
    STATUS,
    TEMPLATE_BYTES,
    TID,
    TS,
    key_table,
    learn,
    tokenise,
)
from stepscope.formats.chrome.scan.interning import FULL, LaneTable, StringTable, intern, lane_number
from stepscope.formats.chrome.scan.machine import equal_64, load_byte, load_word
from stepscope.formats.chrome.scan.rows import (
    BARE_NOTE,
    BOUND,
    FIRST_ARGUMENT,
    LANE_ABSENT,
    LANE_INTEGER,
    LANE_TEXT,
    RANGE_NOTE,
    SCRATCH_ROWS,
    Scratch,
    Tables,
)
from stepscope.formats.chrome.scan.tokens import (
    ABSENT,
    BACKSLASH,
    BAD,
    BARE,
    NINE,
    NUMBER,
    QUOTE,
    TABLE_FULL,
    TEXT,
    ZERO,
    read_time,
    read_value,
    scalar_end,
    skip_rare,
    string_end,
)
from stepscope.trace.tables import NULL

# Why the kernel returned.
DONE, AT_LIMIT, ROWS_FULL, NEED_MORE, NEED_HELP, NEED_STRINGS, NEED_RAWS, NEED_LANES = range(8)

_E = ord("e")

# Words of the scanner's state.
COUNT, COMMA, STRINGS, RAWS, LANES, TEMPLATES, KEYS, KEY_COUNT = range(8)


@inlined
def _matches(template, at):
    return template != 0 and (equal_64(template, at) | load_word(template + MASK)) == -1


@inlined
def _follow(previous, at):
    """The template behind ``previous`` that matches the bytes at ``at``; 0 for none."""
    if previous == 0:
        return 0
    template = load_word(previous + NEXT)
    if _matches(template, at):
        return template
    template = load_word(previous + NEXT + 8)
    if _matches(template, at):
        return template
    template = load_word(previous + NEXT + 16)
    if _matches(template, at):
        return template
    template = load_word(previous + NEXT + 24)
    return template if _matches(template, at) else 0


@inlined
def _push(streams, stream, row, value):
    """Append to an argument stream; False where the row already has one."""
    rows, values, counts = streams
    count = counts[stream]
    if count > 0 and rows[stream, count - 1] == row:
        return False
    rows[stream, count] = row
    values[stream, count] = value
    counts[stream] = count + 1
    return True


@inlined
def _push_argument(streams, number, row, value, is_text):
    """Append an argument; False where the event has it already, as a number or as text."""
    rows, _, counts = streams
    own = FIRST_ARGUMENT + 2 * number + is_text
    other = own ^ 1
    count = counts[other]
    if count > 0 and rows[other, count - 1] == row:
        return False
    return _push(streams, own, row, value)


@inlined
def _forget(streams, row):
    """Drop what an unfinished event left in the streams."""
    rows, _, counts = streams
    for stream in range(len(counts)):
        count = counts[stream]
        if count > 0 and rows[stream, count - 1] >= row:
            counts[stream] = count - 1


@inlined
def _clear(rows, row, offset):
    rows[row].ts_ns = NULL
    rows[row].dur_ns = NULL
    rows[row].name = -1
    rows[row].category = -1
    rows[row].offset = offset
    rows[row].phase = 0


@inlined
def _skip(at, end):
    """Step over a value: (address past it, ABSENT or BARE or BAD)."""
    if ZERO <= load_byte(at) <= NINE:
        return scalar_end(at), ABSENT
    return skip_rare(at, end)


@inlined
def _text(at, end, table):
    """Intern a string: (number or -1, address past it, what it was)."""
    if load_byte(at) != QUOTE:
        past, form = skip_rare(at, end)
        return -1, past, form
    quote = string_end(at + 1)
    if quote >= end:
        return -1, quote, ABSENT
    number = intern(at + 1, quote - at - 1, table)
    return number, quote + 1, TABLE_FULL if number == FULL else TEXT


@inlined
def _phase(at, end):
    """``"X"`` as its code: (code, address past it, what it was)."""
    code = load_byte(at + 1)
    if load_byte(at) != QUOTE:
        past, form = skip_rare(at, end)
        return 0, past, form
    if load_byte(at + 2) != QUOTE or code == QUOTE or code == BACKSLASH or code >= 0x80:
        return (0, at, BAD) if at + 3 < end else (0, end, ABSENT)
    return code, at + 3, NUMBER


@inlined
def _lane_kind(form):
    if form == NUMBER:
        return LANE_INTEGER
    return LANE_TEXT if form == TEXT else LANE_ABSENT


@native
def scan(window, start, limit, end, rows, streams, state, counts):  # noqa: C901, PLR0913
    """Scan events from ``start`` until one begins at ``limit`` or later: (position, why it stopped).

    ``window`` is the address of a padded buffer, the other positions are relative to it; ``state`` and ``counts``
    belong to the thread. The position is where to go on: before an event, or before the comma in front of it
    (``state[COMMA]``). Every row before ``state[COUNT]`` is complete.

    One function holds the whole loop on purpose: its many variables must stay in registers. With its values taken in an
    inlined function it took 1.5 times as long, with its gaps passed in one twice.
    """
    stop = window + end
    at = window + start
    row = state[COUNT]
    comma_due = state[COMMA]
    strings, raws, keys = state[STRINGS], state[RAWS], state[KEYS]
    nothing = np.int64(0)  # a literal 0 would make numba compile every callee twice
    depth = template = nothing
    event = at
    seen_args = False
    pid = tid = pid_kind = tid_kind = nothing
    lane_pid = lane_tid = lane_kinds = lane = nothing - 1
    while True:
        gap, previous = at, template
        depth_before = depth
        template = _follow(previous, gap)
        if template != 0:
            at = gap + load_word(template + LENGTH)
            action = load_word(template + ACTION)
            depth = load_word(template + DEPTH)
            ended = load_word(template + ENDED) if at < stop else -1
            began = load_word(template + BEGAN)
            args = load_word(template + ARGS)
            comma_next = 1
            status = GOING if at < stop else MORE_NEEDED
        else:
            found_gap = tokenise(gap, stop, depth, comma_due, keys, state[KEY_COUNT])
            at = found_gap[LEAF]
            action = found_gap[ACTION_OF]
            depth = found_gap[DEPTH_AT]
            ended = found_gap[ENDED_AT]
            began = found_gap[BEGAN_AT]
            args = found_gap[ARGS_OPEN]
            comma_next = found_gap[COMMA_DUE]
            status = found_gap[STATUS]
            if status == GOING and action != NOTHING:
                template = learn(state[TEMPLATES], counts, previous, gap, found_gap)
        # Where to go on if the scan stops here.
        if depth_before == 0:
            resume, resume_comma = gap, comma_due
        else:
            resume, resume_comma = event, 0
        if args & ARGS_OF_OPEN:
            if seen_args:
                why = NEED_HELP
                break
            seen_args = True
        if ended >= 0:
            kinds = pid_kind + 4 * tid_kind
            if pid != lane_pid or tid != lane_tid or kinds != lane_kinds:
                lane = lane_number(state[LANES], pid, tid, kinds)
                if lane == FULL:
                    why = NEED_LANES
                    break
                lane_pid, lane_tid, lane_kinds = pid, tid, kinds
            rows[row].lane = lane
            row += 1
            resume, resume_comma = gap + ended, 1
        if status != GOING:
            if status == ARRAY_END:
                resume, why = at, DONE
            else:
                why = NEED_MORE if status == MORE_NEEDED else NEED_HELP
            break
        if began >= 0:
            event = gap + began
            resume, resume_comma = event, 0
            if event - window >= limit:
                why = AT_LIMIT
                break
            if row >= len(rows):
                why = ROWS_FULL
                break
            _clear(rows, row, event - window)
            pid = tid = pid_kind = tid_kind = nothing
            seen_args = args & ARGS_OF_BEGUN != 0
        comma_due = comma_next
        if action == NOTHING:
            continue
        comma_due = 1
        full = NEED_RAWS
        if action == TS or action == DUR:
            value, at, form = read_time(at, stop)
            if form != NUMBER:
                value = NULL
            if action == TS:
                rows[row].ts_ns = value
            else:
                rows[row].dur_ns = value
        elif action == NAME or action == CATEGORY:
            value, at, form = _text(at, stop, strings)
            if action == NAME:
                rows[row].name = value
            else:
                rows[row].category = value
            full = NEED_STRINGS
        elif action == PHASE:
            value, at, form = _phase(at, stop)
            rows[row].phase = value | (rows[row].phase & BOUND)
        elif action == BINDING:
            value, at, form = _phase(at, stop)
            rows[row].phase = (rows[row].phase & ~BOUND) | (BOUND if value == _E else 0)
        elif action == PID or action == TID or action >= ARGUMENT:
            value, at, form = read_value(at, stop, raws)
            if action == PID:
                pid, pid_kind = value, _lane_kind(form)
            elif action == TID:
                tid, tid_kind = value, _lane_kind(form)
            elif (form == NUMBER or form == TEXT) and not _push_argument(
                streams, action - ARGUMENT, row, value, 1 if form == TEXT else 0
            ):
                form = BAD
        else:
            at, form = _skip(at, stop)
        if at >= stop or form >= BARE:
            resume, resume_comma = event, 0
            if form == TABLE_FULL:
                why = full
                break
            if at >= stop:
                why = NEED_MORE
                break
            if form == BAD:
                why = NEED_HELP
                break
            _push(streams, BARE_NOTE if form == BARE else RANGE_NOTE, row, nothing)
    _forget(streams, row)
    state[COUNT] = row
    state[COMMA] = resume_comma
    return resume - window, why


class Scanner:
    """One thread's kernel state: its tables, templates and scratch rows."""

    def __init__(self, rows: int = SCRATCH_ROWS) -> None:
        self._strings, self._raws, self._lanes = StringTable(), StringTable(), LaneTable()
        self.scratch = Scratch(Tables(self._strings, self._raws, self._lanes), rows)
        self._keys = key_table()
        self._templates = np.zeros(MAX_TEMPLATES * TEMPLATE_BYTES + 64, np.uint8)
        self._counts = np.zeros(2, np.int64)
        self._state = np.zeros(8, np.int64)
        self._state[[STRINGS, RAWS, LANES, TEMPLATES, KEYS, KEY_COUNT]] = (
            self._strings.address,
            self._raws.address,
            self._lanes.address,
            self._templates.ctypes.data,
            self._keys.ctypes.data,
            len(self._keys),
        )

    def scan(self, window: np.ndarray, start: int, limit: int, end: int, comma_due: bool) -> tuple[int, bool, int]:
        """Scan a padded window as :func:`scan` does, growing tables as needed: (position, comma due, why)."""
        scratch, state = self.scratch, self._state
        streams = scratch.argument_rows, scratch.argument_values, scratch.argument_counts
        state[COUNT], state[COMMA] = scratch.count, comma_due
        while True:
            start, why = scan(window.ctypes.data, start, limit, end, scratch.rows, streams, state, self._counts)
            if why == NEED_STRINGS:
                self._strings.grow()
            elif why == NEED_RAWS:
                self._raws.grow()
            elif why == NEED_LANES:
                self._lanes.grow()
            else:
                scratch.count = int(state[COUNT])
                return start, bool(state[COMMA]), why
