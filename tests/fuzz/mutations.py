"""Ways to damage a file: blindly, or knowing what its bytes mean, so that the damage gets past the first checks.

A mutation is a function of a random source, the bytes to damage and those of another seed to borrow from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz import messages, records

Mutation = Callable[[Random, bytes, bytes], bytes]

LARGEST = 1 << 20
"""A mutation may grow a file up to here."""

NUMBERS = (
    0, 1, -1, 2, 7, 127, 128, 255, 256, 999, 1 << 15, 1 << 16, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 32) - 1,
    1 << 32, 1 << 40, 1 << 53, (1 << 61) + 1, 1 << 62, (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1, 10**18,
)  # fmt: skip
_RAW = (
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "0.1", "1e18", "9" * 40, "-" + "9" * 25, "1E+2",
    "0x10", "01", "null", "true", "[]", "{}", "[[[[[]]]]]", "12345678901234567890.5", "0.0000000001", "nul", "-",
)  # fmt: skip
_TEXTS = (
    "", "\x00", "\ud800", "é" * 9, "\U0001f600", "a" * 70_000, "\\", '"', "\x1b[2J", "%s%n", "/device:GPU:0", "-1",
    "1e9", "/job:x/replica:0/task:0/device:GPU:99999999999999999999", "stream 7", "ProfilerStep#99999999999999999999",
    "X", "\n", "²", "٣", "--5", "stream ²", "stream " + "9" * 30, f"train.py({'9' * 5000}): main", "x:²", "9" * 5000,
    "mul:9", "stream", "Memcpy HtoD (Pageable -> Device)", "ncclDevKernel_AllReduce", "cudaGraphLaunch", "[memory]",
)  # fmt: skip


def anyhow(random: Random, data: bytes, other: bytes) -> bytes:
    """Bytes flipped, put in, taken out, moved, repeated, cut off, overwritten by a number, or taken from elsewhere."""
    at = random.randrange(len(data) + 1)
    size = min(random.choice((1, 1, 2, 4, 16, 64, 512)), len(data))
    to = random.randrange(len(data) + 1)
    block = data[at : at + size]
    match random.randrange(10):
        case 0:
            return _flipped(random, data)
        case 1:
            return data[:at] + random.randbytes(size) + data[at + size :]
        case 2:
            return data[:at] + random.randbytes(size) + data[at:]
        case 3:
            return data[:at] + data[at + size :]
        case 4:
            return data[:to] + block * random.choice((1, 1, 2, 100)) + data[to:]
        case 5:
            low, high = sorted((at, to))
            return (
                data[:low]
                + data[high : high + size]
                + data[low + size : high]
                + data[low : low + size]
                + data[high + size :]
            )
        case 6:
            return data[:at]
        case 7:
            return data[:at] + bytes(size) + data[at + size :]
        case 8:
            number = number_bytes(random)
            return data[:at] + number + data[at + len(number) :]
        case _:
            begin = random.randrange(len(other) + 1)
            return data[:at] + other[begin:]


def _flipped(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def number_bytes(random: Random) -> bytes:
    width = random.choice((1, 2, 4, 8))
    return (random.choice(NUMBERS) % (1 << 8 * width)).to_bytes(width, random.choice(("little", "big")))


# --- text -------------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|[\[\]{},:]|[A-Za-z]+')
_OBJECT = re.compile(rb"\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}")


def tokens(random: Random, data: bytes, other: bytes) -> bytes:
    """Tokens of JSON replaced, dropped, repeated or swapped: the text is often no JSON any more."""
    found = list(_TOKEN.finditer(data))
    if not found:
        return anyhow(random, data, other)
    one, two = random.choice(found), random.choice(found)
    match random.randrange(6):
        case 0:
            return _with(data, one.span(), random.choice(_RAW).encode())
        case 1:
            return _with(data, one.span(), two.group())
        case 2:
            return _with(data, one.span(), b"")
        case 3:
            return _with(data, one.span(), one.group() * random.choice((2, 3, 500)))
        case 4:
            strings = [token for token in found if token.group().startswith(b'"')] or found
            text = json.dumps(random.choice(_TEXTS), ensure_ascii=random.random() < 0.5)
            return _with(data, random.choice(strings).span(), text.encode("utf-8", "surrogatepass"))
        case _:
            objects = [token.span() for token in _OBJECT.finditer(data)] or [one.span()]
            source, target = random.choice(objects), random.choice(objects)
            block = data[slice(*source)] + b","
            return data[: target[0]] + block * random.choice((1, 2, 50)) + data[target[0] :]


def _with(data: bytes, span: tuple[int, int], replacement: bytes) -> bytes:
    return data[: span[0]] + replacement + data[span[1] :]


def tree(random: Random, data: bytes, other: bytes) -> bytes:
    """Values of a JSON document replaced, moved, repeated or left out: the text stays JSON, or nearly so."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return tokens(random, data, other)
    for _ in range(random.choice((1, 1, 2, 4))):
        change(random, document)
    return written(document, indent=random.choice((None, None, 1)), ensure_ascii=random.random() < 0.5)


def written(document: Any, **options: Any) -> bytes:
    """A document as JSON, with what ``change`` put into it that is none."""
    return re.sub(r'"raw:([^"]*)"', r"\1", json.dumps(document, **options)).encode("utf-8", "surrogatepass")


def change(random: Random, document: Any) -> None:
    """Change one value somewhere in a JSON document."""
    places = list(_places(document))
    if not places:
        return
    holder, key = random.choice(places)
    match random.randrange(8):
        case 0:
            holder[key] = random.choice(NUMBERS)
        case 1:
            holder[key] = "raw:" + random.choice(_RAW)
        case 2:
            holder[key] = random.choice(_TEXTS)
        case 3:
            source, name = random.choice(places)
            holder[key] = json.loads(json.dumps(source[name]))
        case 4:
            del holder[key]
        case 5 if isinstance(holder, list):
            holder[key:key] = [holder[key]] * random.choice((1, 3, 50))
        case 6 if isinstance(holder[key], int | float):
            holder[key] += random.choice((-1, 1, 1000, -1000, 1e-3, 1 << 40))
        case _:
            if isinstance(holder, dict):
                holder[random.choice([name for at, name in places if isinstance(at, dict)])] = holder.pop(key)
            else:
                holder[key] = random.choice((None, True, False, 0.5, [], {}, [[]], str(holder[key])))


def _places(value: Any) -> Any:
    """Every (holder, key) of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key
        yield from _places(inner)


# --- protocol buffers, and the records of event files -----------------------------------------------------------------


def message(random: Random, data: bytes, other: bytes) -> bytes:
    """Fields of a protocol-buffer message changed at any depth; lengths are put right, or lie."""
    fields = messages.parse(data)
    if not fields:
        return anyhow(random, data, other)
    for _ in range(random.choice((1, 1, 2, 4))):
        messages.change(random, fields, messages.parse(other) or fields) if fields else None
    return messages.write(fields)


def event_files(random: Random, data: bytes, other: bytes) -> bytes:
    """A record of an event file changed, or its length made to lie, the checksums put right."""
    found = records.split(data)
    if not found:
        return anyhow(random, data, other)
    made = [records.record(one) for one in found]
    at = random.randrange(len(found))
    if random.random() < 0.2:
        made[at] = records.record(found[at], random.choice(NUMBERS) % (1 << 64))
    else:
        made[at] = records.record(message(random, found[at], found[at]))
    return b"".join(made)
