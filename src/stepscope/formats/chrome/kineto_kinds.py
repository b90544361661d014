"""What kind of slice each Kineto event is: from its category, refined by its name and arguments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stepscope.formats.chrome import kineto_schema as schema
from stepscope.formats.chrome import own
from stepscope.formats.chrome.arguments import ArgumentColumns
from stepscope.formats.chrome.events import RawEvents
from stepscope.names.calls import CallRole, call_role
from stepscope.names.hosts import step_marker
from stepscope.names.kernels import describe
from stepscope.trace import tables as t
from stepscope.trace.codes import mapped, marked


def kinds_of(events: RawEvents, columns: ArgumentColumns) -> t.U8:
    """The kind of every event, were it a slice."""
    return _Kinds(events, columns).all()


class _Kinds:
    def __init__(self, events: RawEvents, columns: ArgumentColumns) -> None:
        self.events = events
        self.columns = columns

    def all(self) -> t.U8:
        """The kind of every event, were it a slice: from its category, refined by its name."""
        e = self.events
        categories = [s.lower() for s in e.strings]
        base = np.array([schema.CATEGORIES.get(c, t.Kind.OTHER) for c in categories] + [t.Kind.OTHER], np.uint8)
        kinds = base[e.category]
        for kind, refine in _REFINED.items():
            self._refine(kinds, kind, refine)
        self._refine_mtia(kinds, categories)
        self._refine_old_annotations(kinds, categories)
        collective = self.columns.rows("Collective name")
        kinds[collective[kinds[collective] == t.Kind.KERNEL]] = t.Kind.COLLECTIVE
        own.restate_kinds(self.events, kinds)
        return kinds

    def _refine(self, kinds: t.U8, kind: t.Kind, refine: Callable[[str], t.Kind]) -> None:
        rows = np.flatnonzero((kinds == kind) & (self.events.name >= 0))
        kinds[rows] = mapped(self.events.name[rows], self.events.strings, refine, np.uint8)

    def _refine_mtia(self, kinds: t.U8, categories: list[str]) -> None:
        if "mtia_ccp_events" not in categories:
            return
        rows = np.flatnonzero((self.events.category == categories.index("mtia_ccp_events")) & (self.events.name >= 0))
        for name in np.unique(self.events.name[rows]).tolist():
            of_name = rows[self.events.name[rows] == name]
            kinds[of_name] = schema.device_kind(t.Kind.KERNEL, "mtia_ccp_events", self.events.strings[name])

    def _refine_old_annotations(self, kinds: t.U8, categories: list[str]) -> None:
        """In 2021 ranges were written as operators; unlike operators they have no inputs, and torch's own have a #."""
        old = np.isin(self.events.category, [i for i, c in enumerate(categories) if c == "operator"])
        if not old.any():
            return
        has_inputs = marked(self.columns.rows("Input Dims"), len(self.events))
        rows = np.flatnonzero(old & ~has_inputs & (self.events.name >= 0))
        for name in np.unique(self.events.name[rows]).tolist():
            text = self.events.strings[name]
            if "#" in text or step_marker(text) is not None or (has_inputs.any() and "::" not in text):
                kinds[rows[self.events.name[rows] == name]] = annotation_kind(text)


def call_kind(name: str) -> t.Kind:
    """What a runtime or driver call of this name is."""
    role = call_role(name)
    return {
        CallRole.SYNC: t.Kind.SYNC,
        CallRole.ALLOCATION: t.Kind.ALLOCATION,
        CallRole.FREE: t.Kind.ALLOCATION,
        CallRole.MODULE_LOAD: t.Kind.COMPILE,
        CallRole.GRAPH_INSTANTIATE: t.Kind.COMPILE,
    }.get(role, t.Kind.RUNTIME_CALL)


def _frame_kind(name: str) -> t.Kind:
    return t.Kind.MODULE if name.startswith("nn.Module: ") else t.Kind.PYTHON_FRAME


def annotation_kind(name: str) -> t.Kind:
    """Whether a range of this name marks a step."""
    return t.Kind.STEP if step_marker(name) is not None else t.Kind.ANNOTATION


def kernel_kind(name: str) -> t.Kind:
    """Whether a kernel of this name is a collective."""
    return t.Kind.KERNEL if describe(name).collective is None else t.Kind.COLLECTIVE


_REFINED: dict[t.Kind, Callable[[str], t.Kind]] = {
    t.Kind.RUNTIME_CALL: call_kind,
    t.Kind.PYTHON_FRAME: _frame_kind,
    t.Kind.ANNOTATION: annotation_kind,
    t.Kind.KERNEL: kernel_kind,
}
"""Kinds that a category stands for and a name refines."""


def kind_of(category: str | None, name: str) -> t.Kind | None:
    """The kind that category and name alone give an event; None where more must be known."""
    lower = (category or "").lower()
    if lower == "operator":
        return None
    kind = schema.device_kind(schema.CATEGORIES.get(lower, t.Kind.OTHER), lower, name)
    return _REFINED[kind](name) if kind in _REFINED and lower != "mtia_ccp_events" else kind
