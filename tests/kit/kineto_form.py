"""How a Kineto profile is written: which generation and vendor wrote it, and what became of the text since.

Four generations are told apart:

* ``2021``: categories ``Operator``, ``Runtime``, ``Kernel``, ``Memcpy``, ``Memset``; whole epoch
  microseconds; text thread ids (``"4242"``, ``"stream 7"``) that flows repeat as numbers; ``async`` flows;
  Python frames as a ``Call stack`` argument.
* ``2022``: today's categories, ``ac2g`` flows, whole epoch microseconds; a runtime call's ``External id``
  repeats its correlation.
* ``2023``: epoch microseconds with three decimals, 19 digits: more than a double holds.
* ``2025``: microseconds with three decimals relative to ``baseTimeNanoseconds``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Generation = Literal["2021", "2022", "2023", "2025"]
Vendor = Literal["nvidia", "amd"]
Style = Literal["kineto", "head", "line", "indent2", "indent4"]

BASE_NS = 1_759_000_000_000_000_000
"""``baseTimeNanoseconds`` of the 2025 generation."""

ZERO_NS: dict[Generation, int] = {
    "2021": 1_620_000_000_000_000_000,
    "2022": 1_660_000_000_000_000_000,
    "2023": 1_705_000_000_123_456_789,
    "2025": BASE_NS + 1_234_567_890_123,
}
"""Epoch nanoseconds at which the kit's time zero is written."""

WHOLE_MICROSECONDS = ("2021", "2022")
"""Generations that cannot hold a fraction of a microsecond."""


@dataclass(frozen=True, slots=True)
class Form:
    """How a profile is written: who wrote it, when, and what became of the text since.

    ``style`` is the layout of the text: ``kineto`` (several keys a line), ``head`` (one key a line, a lone
    comma before ``args``) or what ``json.dump`` makes of it (``line``, ``indent2``, ``indent4``). ``root`` is
    ``object`` or a bare ``list`` of events.
    """

    generation: Generation = "2025"
    vendor: Vendor = "nvidia"
    style: Style = "kineto"
    root: Literal["object", "list"] = "object"
    gz: bool = False
