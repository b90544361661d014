"""What a rule says of itself, once: the engine, the pages, the docs and ``stepscope rules`` read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stepscope.analysis.categories import Category
from stepscope.record import record
from stepscope.units import format_ns, format_share

Scope = Literal["device", "host", "process", "job"]
Page = Literal["input", "ops", "kernels", "memory", "ranks"]

SCOPES: dict[Scope, str] = {
    "device": "one device",
    "host": "the host's main thread",
    "process": "all devices of a process",
    "job": "all ranks of a job",
}
"""What is looked at for one finding, in words."""


@record
class Limit:
    """A threshold that one rule alone has, and where it comes from."""

    name: str
    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule's declaration: it stands on top of the rule's file, whose function ``find`` makes the findings.

    Texts are Markdown; their line breaks mean nothing.
    """

    id: str
    """The file's name, which is that of its findings too."""
    scope: Scope
    pages: tuple[Page, ...]
    """The pages whose figures its findings are about, the one it belongs to first."""
    panel: Literal["fusion"] | None = None
    """What on that page shows its findings whole, also those that save little."""
    finds: str
    """What it finds, in a sentence."""
    statement: str
    """When exactly it says so, and what it predicts."""
    limits: tuple[Limit, ...] = ()
    shared_limits: tuple[str, ...] = ()
    """Those of its thresholds that it shares with others (``limits.py`` of a room) and that its statement names."""
    needs: str
    """What has to be recorded."""
    cure: str
    """What is different in the step that it predicts."""
    example: str
    """Something that makes it speak."""
    host_bound: bool = False
    """Whether it tells of time that recording itself makes longer on the host."""
    tells: tuple[Category, ...] = ()
    """The causes of idle time that its findings tell of."""
    tells_within: bool = False
    """Whether its findings tell of all the host's time that their change takes away, whatever it is booked to."""
    tells_beside: bool = False
    """Whether other rules' findings may tell of the same time: of such, the one that tells most counts."""
    cures_part_of: tuple[str, ...] = ()
    """More general rules of whose findings it knows the cure of a part: what it finds is told beside theirs."""
    comes_before: tuple[str, ...] = ()
    """More general rules before whose findings its own come where they are nearly all of theirs."""
    makes_late: Literal["input", "host"] | None = None
    """Of which cause of a late rank it tells, where that rank alone has it."""
    is_one: bool = False
    """Whether findings of several devices or ranks are told as one whatever their titles name."""
    holds_waiting: bool = False
    """Whether its cost holds waiting for late ranks, which one rank's profile does not tell from the rest."""
    tried_for: tuple[str, ...] = ()
    """Frameworks, as reports name them, for whose jobs ``stepscope try`` has a cure of it to put in and measure."""
    at_most_its_cost: bool = False
    """Whether a finding counts no more than it costs where findings are ranked: it may be there to time the steps, and
    what it gains beyond is that other causes, whose own cures come first, would be hidden."""


def with_unit(name: str, value: float) -> str:
    """A threshold as one reads it: its name says the unit."""
    if name.endswith("_NS"):
        return format_ns(round(value))
    return format_share(value) if "SHARE" in name else f"{value:g}"


def flowing(text: str) -> str:
    """A declared text on one line."""
    return " ".join(text.split())
