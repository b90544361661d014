"""What fields hold: the kinds of values, with unit and bounds, and what a field says of itself."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from stepscope.analysis.categories import Category


class ValueKind(NamedTuple):
    """A kind of value: the word for it, its unit for people, its bounds and, where they are few, its values."""

    name: str
    unit: str = ""
    least: float | None = None
    most: float | None = None
    values: tuple[str, ...] = ()


class Field(NamedTuple):
    """What a field means in one sentence, and the title of its column in tables; without one it has none.

    ``view`` names the tables that have the column, where a row is shown in several; ``null`` is what they show where
    there is no value. A column without a title holds the columns of the object or map inside. ``least`` and ``most``
    bound how long a list is; ``keys`` are those that a map has in every document.
    """

    meaning: str
    column: str | None = None
    view: str = ""
    null: str = "–"
    least: int | None = None
    most: int | None = None
    distinct: bool = False
    keys: tuple[str, ...] = ()


Ns = Annotated[int, ValueKind("ns", "ns", least=0)]
SignedNs = Annotated[int, ValueKind("ns", "ns")]
Time = Annotated[int, ValueKind("ns", "ns from the trace's origin")]
Bytes = Annotated[int, ValueKind("bytes", "bytes", least=0)]
SignedBytes = Annotated[int, ValueKind("bytes", "bytes")]
Count = Annotated[int, ValueKind("count", least=0)]
Positive = Annotated[int, ValueKind("count", least=1)]
Index = Annotated[int, ValueKind("index", least=0)]
Share = Annotated[float, ValueKind("share", "share of one", least=0, most=1)]
Ratio = Annotated[float, ValueKind("share", "share of one, may be above it", least=0)]
Percent = Annotated[float, ValueKind("percent", "percent", least=0)]
Rate = Annotated[float, ValueKind("rate", least=0)]
Factor = Annotated[float, ValueKind("rate", least=1)]
FlopRate = Annotated[float, ValueKind("flops_per_s", "FLOP/s", least=0)]
ByteRate = Annotated[float, ValueKind("bytes_per_s", "bytes/s", least=0)]
NonEmpty = Annotated[str, ValueKind("text", least=1)]
Name = Annotated[str, ValueKind("name")]
Path = Annotated[str, ValueKind("path")]
CATEGORY = ValueKind("category", values=tuple(map(str, Category)))
CategoryName = Annotated[str, CATEGORY]
"""Where a nanosecond of a device (or, without a device, of the host) goes."""
Parts = dict[CategoryName, Ns]
"""Nanoseconds by category; a category that is missing took none."""
PartShares = dict[CategoryName, Share]
LateCause = Literal["input", "slow_device", "uneven_work", "host", "link", "unknown"]
