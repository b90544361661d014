"""The bytes between two leaf values: a strict tokeniser, and templates of what it has already understood.

Walking an event means finding one leaf value after another. What lies between two of them (closing braces, comma,
blanks, key, colon) is a *gap*. A file holds only a few dozen different gaps, so each is learnt as a template of at most
64 bytes, with what it means; the next time one 64-byte comparison stands for tokenising it. Templates form a graph:
each remembers up to four gaps that followed it.

Strictness: exactly one comma between members and one colon after a key. Anything else is BAD, and the tolerant road
takes the event.
"""

from __future__ import annotations

import numpy as np

from stepscope.compiled import outlined
from stepscope.formats.chrome.dialects import KEYS
from stepscope.formats.chrome.scan.interning import same_bytes
from stepscope.formats.chrome.scan.machine import equal_64, load_byte, load_word, store_byte, store_word
from stepscope.formats.chrome.scan.tokens import (
    BACKSLASH,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    OPEN_BRACE,
    QUOTE,
    key_end,
    skip_blank,
)
from stepscope.trace.tables import U8

# What to do with the leaf after a gap. ARGUMENT + k stores argument k; NOTHING: the gap was cut short, no leaf follows.
# SKIP_ONCE: the gap means this only because of the byte after it, so it cannot be a template.
SKIP, TS, DUR, NAME, CATEGORY, PID, TID, PHASE, SKIP_ONCE, NOTHING, BINDING = range(11)
ARGUMENT = 16

GOING, MORE_NEEDED, MALFORMED, ARRAY_END, ARGS_OPENED = range(5)

# A gap as the tokeniser returns it: the address of the leaf, what to do with it, the depth there (0 between events,
# 1 in one, 2 in its args), whether a comma is due before the next member, where an event ended and one began (relative
# to the gap, -1 for nowhere), whose args opened, and GOING or why the gap ends without a leaf.
LEAF, ACTION_OF, DEPTH_AT, COMMA_DUE, ENDED_AT, BEGAN_AT, ARGS_OPEN, STATUS = range(8)

# Which event an opening ``"args": {`` in a gap belongs to: the one open before the gap, or the one begun in it.
ARGS_OF_OPEN, ARGS_OF_BEGUN = 1, 2

MAX_TEMPLATES = 2048
TEMPLATE_BYTES = 160
# Fields of a template behind its 64 bytes of text, as byte offsets: the mask of the bytes past its length, and what the
# gap means; then the addresses of the templates that followed it.
MASK, LENGTH, ACTION, DEPTH, ENDED, BEGAN, ARGS, NEXT = range(64, 128, 8)
_NEXT_COUNT = 4

_KEY_BYTES = 48


def _word(key: str) -> int:
    return int.from_bytes(key.encode().ljust(8, b"\0"), "little", signed=True)


_PH, _TS, _DUR, _NAME, _CAT = (_word(key) for key in ("ph", "ts", "dur", "name", "cat"))
_PID, _TID, _ARGS = (_word(key) for key in ("pid", "tid", "args"))
_ID, _ID2, _BP = (_word(key) for key in ("id", "id2", "bp"))
_EVENT_KEYS = 2
"""So many argument keys, the first ones, are keys of the event itself: id, id2."""


def key_table() -> U8:
    """The argument keys as rows of a length byte and the key, zero-padded.

    The kernel takes it as data: what it is compiled from must not depend on another package's constants, for only the
    sources of this one tell whether its machine code is still good.
    """
    table = np.zeros((len(KEYS), _KEY_BYTES), np.uint8)
    for row, key in zip(table, KEYS, strict=True):
        row[0] = len(key)
        row[1 : 1 + len(key)] = np.frombuffer(key.encode(), np.uint8)
    return table


@outlined
def _event_key(start, length):
    """The action for a key of the event itself."""
    if length > 4:
        return SKIP
    word = load_word(start) & ~(-1 << (8 * length))
    if word == _PH:
        return PHASE
    if word == _TS:
        return TS
    if word == _DUR:
        return DUR
    if word == _NAME:
        return NAME
    if word == _CAT:
        return CATEGORY
    if word == _PID:
        return PID
    if word == _TID:
        return TID
    if word == _ID:
        return ARGUMENT
    if word == _ID2:
        return ARGUMENT + 1
    return BINDING if word == _BP else SKIP


@outlined
def _argument_key(start, length, keys, key_count):
    """The action for a key of ``args``, of which the first argument keys are none."""
    for number in range(_EVENT_KEYS, key_count):
        entry = keys + _KEY_BYTES * number
        if load_byte(entry) == length and same_bytes(entry + 1, start, length):
            return ARGUMENT + number
    return SKIP


@outlined
def _has_backslash(start, length):
    for index in range(length):  # noqa: SIM110  # numba knows no generator expressions
        if load_byte(start + index) == BACKSLASH:
            return True
    return False


@outlined
def _member(at, end, depth, keys, key_count):
    """Read the key at ``at`` and the colon: (address of the value, action, GOING or why not)."""
    key = at + 1
    at = key_end(key)
    length = at - key
    at = skip_blank(at + 1, end)
    if at < end:
        if load_byte(at) != COLON or _has_backslash(key, length):
            return at, NOTHING, MALFORMED
        at = skip_blank(at + 1, end)
    if at >= end:
        return at, NOTHING, MORE_NEEDED
    if depth == 2:
        return at, _argument_key(key, length, keys, key_count), GOING
    if length == 4 and load_word(key) & 0xFFFFFFFF == _ARGS:
        if load_byte(at) != OPEN_BRACE:
            return at, SKIP_ONCE, GOING
        return at + 1, NOTHING, ARGS_OPENED
    return at, _event_key(key, length), GOING


@outlined
def _mark_args(args, owner, status):
    """Note whose args opened; MALFORMED where they did twice in one event."""
    return args | owner, MALFORMED if args & owner else status


@outlined
def tokenise(start, end, depth, comma_due, keys, key_count):  # a state machine, one branch per byte
    """Tokenise the gap at ``start``, from behind a value to the next leaf value. Returns the eight facts of a gap.

    ``comma_due``: a comma must precede whatever comes, unless a bracket closes.
    """
    at, ended, began, args = start, -1, -1, 0
    dangling = False  # a comma was read and a member must follow
    action, status = NOTHING, GOING
    while True:
        at = skip_blank(at, end)
        byte = load_byte(at)
        if at >= end:
            status = MORE_NEEDED
        elif byte == COMMA and comma_due:
            comma_due, dangling = 0, True
            at += 1
            continue
        elif depth == 0:
            if byte == OPEN_BRACE and not comma_due:
                began, depth, dangling = at - start, 1, False
                at += 1
                continue
            status = ARRAY_END if byte == CLOSE_BRACKET and not dangling else MALFORMED
        elif byte == CLOSE_BRACE and not dangling:
            if depth == 2 or began < 0:  # else: one end and one beginning per gap; the next gap starts at this brace
                depth -= 1
                at += 1
                comma_due = 1
                if depth == 0:
                    ended = at - start
                continue
        elif byte == QUOTE and not comma_due:
            at, action, status = _member(at, end, depth, keys, key_count)
            dangling, comma_due = False, 1
            if status == ARGS_OPENED or action == SKIP_ONCE:
                args, status = _mark_args(args, ARGS_OF_BEGUN if began >= 0 else ARGS_OF_OPEN, status)
            if status == ARGS_OPENED:
                depth, comma_due = 2, 0
                continue
        else:
            status = MALFORMED
        return at, action, depth, comma_due, ended, began, args, status


@outlined
def learn(templates, counts, previous, start, gap):
    """The template of a gap, made or found, linked behind ``previous``; 0 where it cannot be one."""
    length = gap[LEAF] - start
    if length > 64 or gap[ACTION_OF] == SKIP_ONCE:
        return 0
    mask = -1 << length if length < 64 else 0
    template = 0
    for number in range(counts[0]):
        known = templates + TEMPLATE_BYTES * number
        if (
            load_word(known + LENGTH) == length
            and load_word(known + DEPTH) == gap[DEPTH_AT]
            and load_word(known + ACTION) == gap[ACTION_OF]
            and (equal_64(known, start) | mask) == -1
        ):
            template = known
            break
    if template == 0:
        if counts[0] >= MAX_TEMPLATES:
            return 0
        template = templates + TEMPLATE_BYTES * counts[0]
        counts[0] += 1
        for index in range(64):
            store_byte(template + index, load_byte(start + index))
        store_word(template + MASK, mask)
        store_word(template + LENGTH, length)
        store_word(template + ACTION, gap[ACTION_OF])
        store_word(template + DEPTH, gap[DEPTH_AT])
        store_word(template + ENDED, gap[ENDED_AT])
        store_word(template + BEGAN, gap[BEGAN_AT])
        store_word(template + ARGS, gap[ARGS_OPEN])
        for index in range(_NEXT_COUNT):
            store_word(template + NEXT + 8 * index, 0)
    if previous != 0:
        _link(counts, previous, template)
    return template


@outlined
def _link(counts, previous, template):
    for index in range(_NEXT_COUNT):
        known = load_word(previous + NEXT + 8 * index)
        if known == template:
            return
        if known == 0:
            store_word(previous + NEXT + 8 * index, template)
            return
    store_word(previous + NEXT + 8 * (counts[1] & (_NEXT_COUNT - 1)), template)
    counts[1] += 1
