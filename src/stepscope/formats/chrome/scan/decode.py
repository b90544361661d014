"""From raw JSON bytes to Python values, forgiving, once per distinct text."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from stepscope.regex import regex

_ESCAPE = regex(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4}))')
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CONTROL = regex(r"[\x00-\x1f]")
_SURROGATE = regex(r"[\ud800-\udfff]")
_TOKEN = regex(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?Infinity|NaN', re.DOTALL)
_ANY_ESCAPE = regex(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\(u[dD][89a-fA-F])..|\\.", re.DOTALL)
_INTEGER = regex(rb"-?(?:0|[1-9][0-9]{0,18})")
_NUMBER = regex(rb"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_INT64 = 1 << 63
_SAFE_DIGITS = 16
_PLAIN_SCALAR = regex(rb"-?[0-9]|[tf]|nu")

check_json = msgspec.json.Decoder(msgspec.Raw).decode
"""Raises unless the bytes are one JSON value."""


def string(body: bytes) -> tuple[str, list[str]]:
    """The text of a JSON string without its quotes, and the codes of the damage in it.

    A string with any invalid escape was written by a producer that escapes nothing (Windows paths): all its
    backslashes are kept. A surrogate without its partner becomes U+FFFD.

    >>> string(rb"caf\\u00e9"), string(rb"C:\\Users\\new")
    (('café', []), ('C:\\\\Users\\\\new', ['unescaped_backslash']))
    """
    text, damage = _decoded(body)
    if _CONTROL.search(text):
        damage.append("control_characters")
    if "\\" not in text:
        return text, damage
    if "\\" in _ESCAPE.sub("", text):
        return text, [*damage, "unescaped_backslash"]
    return _without_surrogates(_ESCAPE.sub(_unescape, text)), damage


def _without_surrogates(text: str) -> str:
    """Surrogate pairs as the characters they stand for, single ones as U+FFFD."""
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded(data: bytes) -> tuple[str, list[str]]:
    try:
        return data.decode(), []
    except UnicodeDecodeError:
        return data.decode(errors="replace"), ["invalid_utf8"]


def _unescape(match: re.Match[str]) -> str:
    short, code = match.groups()
    return _SHORT[short] if short else chr(int(code, 16))


def raw(value: bytes) -> tuple[str, list[str]]:
    """Raw JSON text as valid JSON text, and the codes of the damage in it."""
    try:
        check_json(value)
        return value.decode(), []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    if value.startswith(b'"'):
        text, damage = string(value[1:-1])
        return json.dumps(text, ensure_ascii=False), damage
    text, damage = _decoded(value)
    for strict, notes in ((True, damage), (False, [*damage, "control_characters"])):
        try:
            loads(text, strict=strict)
        except (ValueError, RecursionError):
            continue
        return _TOKEN.sub(_tidy_token, text), notes
    return json.dumps(text, ensure_ascii=False), [*damage, "broken_argument"]


def _tidy_token(match: re.Match[str]) -> str:
    """A string without control characters and single surrogates; null for NaN and Infinity."""
    token = match.group()
    if not token.startswith('"'):
        return "null"
    token = _CONTROL.sub(lambda part: f"\\u{ord(part.group()):04x}", token)
    return _ANY_ESCAPE.sub(lambda part: "\\ufffd" if part.group(1) else part.group(), token)


def loads(text: str, *, strict: bool = False) -> Any:
    """JSON with NaN or Infinity as None and, unless strict, raw control characters allowed.

    Raises ValueError or RecursionError.
    """
    return json.loads(text, strict=strict, parse_constant=lambda name: None)


def is_plain_scalar(token: bytes) -> bool:
    """Whether a token can be a JSON number or word, judged by its first bytes."""
    return _PLAIN_SCALAR.match(token) is not None


def integer(token: bytes) -> int | None:
    """A plain or quoted integer within int64.

    >>> integer(b"7"), integer(b'"-12"'), integer(b'"007"'), integer(b"1.0")
    (7, -12, None, None)
    """
    if token.isdigit() and len(token) < 19:
        return int(token)
    if token.startswith(b'"'):
        token = token[1:-1]
    if not _INTEGER.fullmatch(token):
        return None
    value = int(token)
    return value if -_INT64 < value < _INT64 else None


def nanoseconds(token: bytes) -> int | None:
    """Decimal microseconds as nanoseconds, rounded half away from zero; None for what is no number.

    Raises OverflowError beyond int64.

    >>> nanoseconds(b"1712195495519689.047"), nanoseconds(b'"2.0005"'), nanoseconds(b"1e-4"), nanoseconds(b"null")
    (1712195495519689047, 2001, 0, None)
    """
    if token.isdigit() and len(token) < _SAFE_DIGITS:
        return int(token) * 1000
    whole, _, fraction = token.partition(b".")
    if len(fraction) == 3 and fraction.isdigit() and whole.isdigit() and len(whole) < _SAFE_DIGITS:
        return int(whole + fraction)
    if token.startswith(b'"'):
        token = string(token[1:-1])[0].strip().encode()
    match = _NUMBER.fullmatch(token)
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    digits = (whole + (fraction or b"")).lstrip(b"0")
    dropped = len(whole) + len(fraction or b"") - len(digits)
    point = len(whole) - dropped + 3 + _clipped(exponent)
    if not digits or point < 0:
        return 0
    if point > 20:
        raise OverflowError
    value = int(digits[:point].ljust(point, b"0") or b"0") + (digits[point : point + 1] >= b"5")
    if value >= _INT64:
        raise OverflowError
    return -value if sign else value


def _clipped(exponent: bytes | None) -> int:
    """The exponent; a huge one as large enough to be beyond int64, or below a nanosecond, in any file that fits."""
    if exponent is None:
        return 0
    digits = exponent.lstrip(b"+-0") or b"0"
    size = int(digits) if len(digits) < 12 else 1 << 40
    return -size if exponent.startswith(b"-") else size


def identifier(token: bytes) -> int | str | None:
    """A pid or tid: numbers and text of digits up to 64 bits as int, null as None, anything else as it is.

    >>> identifier(b'"7"'), identifier(b'"07"'), identifier(b'"\\u0037"')
    (7, '07', 7)
    """
    if token == b"null":
        return None
    if (value := integer(token)) is not None:
        return value
    if token.startswith(b'"'):
        text = string(token[1:-1])[0]
        value = integer(b'"%b"' % text.encode("utf-8", "replace"))
        return text if value is None else value
    return _number(token)


def _number(token: bytes) -> int | str:
    text = token.decode(errors="replace")
    try:
        number = loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(number, float) and number.is_integer() and abs(number) < 1 << 53:
        return int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) and abs(number) < _INT64 else text


def value(token: bytes) -> Any:
    """Any JSON value, forgivingly: what is no JSON (NaN, N/A) is None, what is broken is its text."""
    if not token.startswith((b'"', b"{", b"[")) and not is_plain_scalar(token):
        return None
    try:
        return loads(raw(token)[0])
    except (ValueError, RecursionError):
        return token.decode(errors="replace")
