"""Kernels that step over JSON values and read numbers, on raw addresses.

They look only as closely as finding the next value needs: what a string holds is judged once per distinct string,
when it is decoded (``decode``). A negative address means that the bytes make no sense.
"""

# ruff: noqa: SIM109  # `x in (a, b)` makes numba build a tuple

from __future__ import annotations

from stepscope.compiled import inlined, outlined
from stepscope.formats.chrome.scan.interning import FULL, intern_rare
from stepscope.formats.chrome.scan.machine import (
    above_blank_32,
    backslashes_64,
    load_byte,
    load_word,
    quotes_32,
    quotes_64,
    scalar_ends_32,
    shift_right,
    structure_64,
    trailing_zeros,
)

NONSENSE = -1

# What read_time and read_value found.
ABSENT, NUMBER, TEXT, BARE, OUT_OF_RANGE, BAD, TABLE_FULL = range(7)

QUOTE, BACKSLASH, COMMA, COLON, DOT, MINUS, ZERO, NINE = 0x22, 0x5C, 0x2C, 0x3A, 0x2E, 0x2D, 0x30, 0x39
OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE = 0x5B, 0x5D, 0x7B, 0x7D
_LOWER = 0x20
_E, _N, _T, _F, _U = 0x65, 0x6E, 0x74, 0x66, 0x75
_MAX = (1 << 63) - 1
_MAX_NESTED = 1 << 20
_SAFE_DIGITS = 18
_SAFE_MICROSECONDS = _MAX // 1000 - 1

# Eight ASCII digits at once (Langdale, "Quickly parsing eight digits").
_ZEROS = int.from_bytes(b"0" * 8, "little")
_HIGH_BITS = int.from_bytes(b"\x80" * 8, "little", signed=True)
_TO_HIGH = int.from_bytes(b"\x76" * 8, "little")


@outlined
def _string_end_slow(at):
    while True:
        quotes, backslashes = quotes_64(at), backslashes_64(at)
        if backslashes == 0:
            if quotes != 0:
                return at + trailing_zeros(quotes)
            at += 64
        else:
            escape = trailing_zeros(backslashes)
            if quotes != 0:
                quote = trailing_zeros(quotes)
                if quote < escape:
                    return at + quote
            at += escape + 2


@inlined
def string_end(at):
    """The closing quote of the string whose first character is at ``at``."""
    quotes = quotes_64(at)
    if quotes != 0 and backslashes_64(at) == 0:
        return at + trailing_zeros(quotes)
    return _string_end_slow(at)


@inlined
def key_end(at):
    """As :func:`string_end`, for keys, which are short."""
    quotes = quotes_32(at)
    if quotes != 0:
        end = at + trailing_zeros(quotes)
        if load_byte(end - 1) != BACKSLASH:
            return end
    return _string_end_slow(at)


@inlined
def skip_blank(at, end):
    """The next byte that is neither blank nor a control character."""
    mask = above_blank_32(at)
    while mask == 0 and at < end:
        at += 32
        mask = above_blank_32(at)
    return at + trailing_zeros(mask)


@inlined
def scalar_end(at):
    """Past the last byte of a number or word."""
    mask = scalar_ends_32(at)
    while mask == 0:
        at += 32
        mask = scalar_ends_32(at)
    return at + trailing_zeros(mask)


@inlined
def _may_follow_string(byte):
    return byte == COMMA or byte == COLON or byte <= 0x20 or byte | _LOWER == CLOSE_BRACE


@outlined
def nested_end(at, end):
    """Past the bracket that closes the array or object at ``at``; ``end`` where the buffer ends first.

    Brackets must pair (checked to a depth of 62), strings must be followed by punctuation, and the whole may take
    ``_MAX_NESTED`` bytes: a bracket or quote lost by damage is noticed soon, not at the end of the file.
    """
    depth, kinds = 0, 0
    limit = min(end, at + _MAX_NESTED)
    while at < limit:
        mask, step = structure_64(at), 64
        while mask != 0:
            index = trailing_zeros(mask)
            byte = load_byte(at + index)
            if byte == QUOTE:
                past = string_end(at + index + 1) + 1
                if past >= end:
                    return end
                if not _may_follow_string(load_byte(past)):
                    return NONSENSE
                step = past - at
                if step >= 64:
                    break
                mask &= -1 << step
                step = 64
                continue
            mask &= mask - 1
            if byte | _LOWER == OPEN_BRACE:
                depth += 1
                kinds = (kinds << 1) | (byte == OPEN_BRACE)
                if depth > 62:
                    return NONSENSE
            else:
                if kinds & 1 != (byte == CLOSE_BRACE):
                    return NONSENSE
                depth -= 1
                kinds >>= 1
                if depth == 0:
                    return at + index + 1
        at += step
    return end if at >= end else NONSENSE


@inlined
def is_plain_scalar(at, byte):
    """Whether a JSON number or word begins here, judged by its first bytes."""
    if ZERO <= byte <= NINE:
        return True
    if byte == MINUS:
        return ZERO <= load_byte(at + 1) <= NINE
    return byte == _T or byte == _F or (byte == _N and load_byte(at + 1) == _U)


@outlined
def skip_rare(at, end):
    """Step over a value that does not start with a digit: (address past it, ABSENT or BARE or BAD)."""
    byte = load_byte(at)
    if byte == QUOTE:
        return string_end(at + 1) + 1, ABSENT
    if byte | _LOWER == OPEN_BRACE:
        past = nested_end(at, end)
        return past, ABSENT if past >= 0 else BAD
    past = scalar_end(at)
    if past == at or byte == COLON:
        return past, ABSENT if past >= end else BAD
    return past, ABSENT if is_plain_scalar(at, byte) else BARE


@inlined
def read_digits(at):
    """(value, address past the digits); wrong beyond 18 digits, which the caller must check."""
    value = 0
    word = load_word(at) - _ZEROS
    if ((word + _TO_HIGH) | word) & _HIGH_BITS == 0:
        word = word * 10 + shift_right(word, 8)
        value = shift_right(
            (word & 0x000000FF000000FF) * 0x000F424000000064
            + (shift_right(word, 16) & 0x000000FF000000FF) * 0x0000271000000001,
            32,
        )
        at += 8
    digit = load_byte(at) - ZERO
    while 0 <= digit <= 9:
        value = value * 10 + digit
        at += 1
        digit = load_byte(at) - ZERO
    return value, at


@inlined
def read_time(at, end):
    """Decimal microseconds as nanoseconds: (value, address past it, NUMBER or why not)."""
    start = at
    value, at = read_digits(at)
    digits = at - start
    if digits == 0 or digits > _SAFE_DIGITS or value > _SAFE_MICROSECONDS:
        return _read_time_rare(start, end)
    value *= 1000
    byte = load_byte(at)
    if byte == DOT:
        scale, place = 100, 0
        at += 1
        first = at
        byte = load_byte(at)
        while ZERO <= byte <= NINE:
            if place < 3:
                value += (byte - ZERO) * scale
                scale //= 10
            elif place == 3 and byte >= ZERO + 5:
                value += 1
            place += 1
            at += 1
            byte = load_byte(at)
        if at == first:
            return _read_time_rare(start, end)
    if byte | _LOWER == _E:
        return _read_time_rare(start, end)
    return value, at, NUMBER


@outlined
def _read_time_rare(at, end):
    """Signs, exponents, quoted numbers, very long numbers, and values that are no number."""
    byte = load_byte(at)
    quoted = byte == QUOTE
    start = at + 1 if quoted else at
    value, past, form = _decimal(start)
    if past > start:
        if not quoted:
            return value, past, form
        if load_byte(past) == QUOTE:
            return value, past + 1, form
    if quoted:
        return 0, at, BAD  # blanks, escapes, words: the tolerant road decides
    past, form = skip_rare(at, end)
    return 0, past, form


@outlined
def _decimal(at):
    """A JSON number times 1000, rounded half away from zero: (value, address past it or ``at``, what it is)."""
    start = at
    negative = load_byte(at) == MINUS
    if negative:
        at += 1
    whole = at
    while ZERO <= load_byte(at) <= NINE:
        at += 1
    dot = at
    if load_byte(at) == DOT:
        at += 1
        while ZERO <= load_byte(at) <= NINE:
            at += 1
    if dot == whole or at == dot + 1:
        return 0, start, BAD
    last = at
    exponent, at = _exponent(at)
    if at < 0:
        return 0, start, BAD
    value, form = _scaled(whole, dot, last, exponent + 3)
    return -value if negative else value, at, form


@inlined
def _exponent(at):
    """The exponent at ``at``, 0 where there is none: (value, address past it or NONSENSE)."""
    if load_byte(at) | _LOWER != _E:
        return 0, at
    at += 1
    sign = load_byte(at)
    if sign == MINUS or sign == 0x2B:
        at += 1
    first, value = at, 0
    while ZERO <= load_byte(at) <= NINE:
        value = min(value * 10 + load_byte(at) - ZERO, 1 << 40)
        at += 1
    if at == first:
        return 0, NONSENSE
    return -value if sign == MINUS else value, at


@inlined
def _scaled(whole, dot, last, shift):
    """The digits [whole, dot) and (dot, last) as an integer, the point moved ``shift`` places to the right."""
    point = dot - whole + shift
    count = last - whole - (1 if last > dot else 0)
    value = 0
    for place in range(min(point, count)):
        at = whole + place
        digit = load_byte(at if at < dot else at + 1) - ZERO
        if value > (_MAX - digit) // 10:
            return 0, OUT_OF_RANGE
        value = value * 10 + digit
    if value != 0:
        for _ in range(point - count):
            if value > _MAX // 10:
                return 0, OUT_OF_RANGE
            value *= 10
    if 0 <= point < count:
        at = whole + point
        if load_byte(at if at < dot else at + 1) >= ZERO + 5:
            if value == _MAX:
                return 0, OUT_OF_RANGE
            value += 1
    return value, NUMBER


@inlined
def read_value(at, end, raws):
    """An integer, or the number of the value's raw text: (value, address past it, NUMBER or TEXT or why neither)."""
    byte = load_byte(at)
    if ZERO <= byte <= NINE:
        value, past = read_digits(at)
        byte = load_byte(past)
        if past - at <= _SAFE_DIGITS and byte != DOT and byte | _LOWER != _E:
            return value, past, NUMBER
    return _read_value_rare(at, end, raws)


@outlined
def _read_value_rare(at, end, raws):
    byte = load_byte(at)
    quoted = byte == QUOTE
    value, past = _integer(at + 1 if quoted else at)
    if past > 0:
        if quoted and load_byte(past) == QUOTE:
            return value, past + 1, NUMBER
        after = load_byte(past)
        if not quoted and after != DOT and after | _LOWER != _E:
            return value, past, NUMBER
    past, form = skip_rare(at, end)
    if form != ABSENT or past >= end:
        return 0, past, form
    number = intern_rare(at, past - at, raws)
    if number == FULL:
        return 0, past, TABLE_FULL
    return number, past, TEXT


@outlined
def _integer(at):
    """An integer as JSON spells it, within int64: (value, address past it or NONSENSE)."""
    negative = load_byte(at) == MINUS
    if negative:
        at += 1
    first, value = at, 0
    digit = load_byte(at) - ZERO
    while 0 <= digit <= 9:
        if value > (_MAX - digit) // 10 or (at > first and value == 0):
            return 0, NONSENSE
        value = value * 10 + digit
        at += 1
        digit = load_byte(at) - ZERO
    if at == first:
        return 0, NONSENSE
    return -value if negative else value, at
