"""Valid trace texts of every style that profilers and re-dumping tools write, made by hypothesis."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from stepscope.formats.chrome.dialects import KEYS


@dataclass(frozen=True)
class Raw:
    """JSON text to be written as it is."""

    text: str


_digits = st.integers(0, 2**63).map(str)
numbers = st.one_of(
    st.integers(-10, 10**16).map(str),
    st.builds(lambda whole, part: f"{whole}.{part:03d}", st.integers(0, 2 * 10**15), st.integers(0, 999)),
    st.builds(lambda whole, part: f"{whole}.{part}", st.integers(-5, 10**15), st.integers(0, 10**17)),
    st.builds(lambda whole, power: f"{whole}e{power}", st.integers(-99, 10**6), st.integers(-30, 30)),
    st.builds(lambda whole, part, power: f"{whole}.{part}E{power:+d}", st.integers(0, 9), st.integers(0, 10**16),
              st.integers(-20, 12)),
    st.sampled_from(["0", "-0", "0.0005", "0.00049999", "0.0015", "-0.0005", "9223372036854775.807",
                     "9223372036854775.8075", "9223372036854776", "-9223372036854775.807",
                     "123456789012345678901234567890", "1e-999", "1E+400", "0e999999", "12345678", "87654321.123",
                     "1712195495519689.047", "1.0"]),
).map(Raw)  # fmt: skip
texts = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", "aten::add", "a" * 31, "b" * 32, "c" * 63, "d" * 64, "e" * 200, 'say "hi"', "C:\\temp\\new",
                     "é\n\t",
                     "\\", '\\"', "12", "-7", "007", "1.5", "}{][", "\ud83d\ude00", "\x7f", "\ud800", "null", "]"]),
)  # fmt: skip
scalars = st.one_of(numbers, texts, st.none(), st.booleans(), _digits.map(Raw))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
times = st.one_of(numbers, numbers.map(lambda number: number.text), st.sampled_from(["", " 12.5\t", "x"]), values)
identifiers = st.one_of(st.integers(-1, 9), st.integers(0, 9).map(str), values)

_fields: dict[str, st.SearchStrategy[Any]] = {
    "ph": st.one_of(st.sampled_from("XMifsC"), st.sampled_from(["X"]), values), "cat": st.one_of(texts, values),
    "name": st.one_of(texts, values), "pid": identifiers, "tid": identifiers, "ts": times, "dur": times,
    "id": st.one_of(st.integers(0, 99), values), "id2": values, "bp": st.one_of(st.just("e"), texts, values),
    "args": st.one_of(
        st.dictionaries(st.one_of(st.sampled_from(KEYS), texts), st.one_of(st.integers(0, 9), values),
                        max_size=5), values),
    "s": texts, "Ev Idx": st.integers(0, 9), "\\odd\"key": st.integers(0, 9),
}  # fmt: skip
_usual = [("ph", "cat", "name", "pid", "tid", "ts", "dur", "args"), ("name", "ph", "ts", "pid", "tid", "args"),
          ("ph", "id", "pid", "tid", "ts", "cat", "name"), tuple(_fields), ()]  # fmt: skip
_plain = {
    "ph": st.just("X"),
    "cat": st.just("cpu_op"),
    "name": st.sampled_from(["aten::mm", "aten::add"]),
    "pid": st.just(1),
    "tid": st.sampled_from([1, 2]),
    "ts": st.integers(0, 10**15),
    "args": st.fixed_dictionaries({"External id": st.integers(0, 9), "Input Dims": st.just([[2, 3], []])}),
}


@st.composite
def _event(draw: st.DrawFn) -> dict[str, Any]:
    keys = draw(st.sampled_from(_usual))
    if draw(st.booleans()):
        keys = draw(st.permutations(keys))
    ordinary = draw(st.booleans())
    return {key: draw(_plain[key] if ordinary and key in _plain else _fields[key]) for key in keys}


@dataclass(frozen=True)
class Style:
    """How the text is laid out."""

    item: str
    key: str
    indent: str
    escape: bool
    nested_lines: bool


styles = st.builds(Style, st.sampled_from([", ", ",", ",\n", ",\n  ", "\n  ,\n  ", " ,\t"]),
                   st.sampled_from([": ", ":", " : "]), st.sampled_from(["", "\n", "\n  ", "\n    ", "\r\n"]),
                   st.booleans(), st.booleans())  # fmt: skip


def write(value: Any, style: Style, duplicate: Callable[[], bool] = lambda: False) -> str:
    """``value`` as JSON in that style; ``duplicate`` says where a key is written twice."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        members = []
        for key, item in value.items():
            name = json.dumps(key, ensure_ascii=style.escape) + style.key
            if duplicate():
                members.append(name + "[0]")
            members.append(name + write(item, style, duplicate))
        return "{" + style.indent + style.item.join(members) + style.indent + "}"
    if isinstance(value, list):
        blank = style.indent if style.nested_lines else ""
        return "[" + blank + style.item.join(write(item, style, duplicate) for item in value) + blank + "]"
    return json.dumps(value, ensure_ascii=style.escape)


headers = st.dictionaries(
    st.one_of(st.sampled_from(["schemaVersion", "traceName", "deviceProperties"]), texts).filter(
        lambda key: key != "traceEvents"
    ),
    values,
    max_size=3,
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """A whole valid trace."""
    style = draw(styles)
    events = draw(st.lists(_event(), min_size=1, max_size=12))
    events *= draw(st.sampled_from([1, 1, 4]))
    repeat = draw(st.sampled_from([False, False, True]))
    duplicate = (lambda: draw(st.integers(0, 9)) == 0) if repeat else (lambda: False)
    body = "[" + style.indent + style.item.join(write(event, style, duplicate) for event in events) + style.indent + "]"
    if draw(st.integers(0, 5)) == 0:
        text = body if re.search('"ph"\\s*:\\s*"', body) else '[{"ph":"X"}]'
    else:
        before, after = draw(headers), draw(headers)
        members = [
            *(json.dumps(key) + style.key + write(item, style) for key, item in before.items()),
            '"traceEvents"' + style.key + body,
            *(json.dumps(key) + style.key + write(item, style) for key, item in after.items()),
        ]
        text = "{" + style.indent + style.item.join(members) + style.indent + "}" + style.indent
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
