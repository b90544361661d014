"""Where in the user's program a slice comes from: op, source line, module and annotation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from enum import IntEnum
from functools import cached_property
from pathlib import PurePath

import numpy as np

from stepscope.analysis.backward import differentiated
from stepscope.analysis.code_lines import CodeLines
from stepscope.analysis.frame import Frame, parse_frame, source_frame
from stepscope.compiled import kernel
from stepscope.names.hosts import runs_others, step_marker
from stepscope.record import record
from stepscope.trace.codes import among, grouped, mapped, used_codes
from stepscope.trace.forest import inherit
from stepscope.trace.sparse import ValuesOfFew, told
from stepscope.trace.tables import I16, I32, I64, NULL, Bools, Kind, Rows
from stepscope.trace.trace import Trace

_DEFINITIONS = ("XPlane", "XLA trace JSON", "Kineto JSON")
"""Formats whose Python frames have the line at which the function begins (``co_firstlineno``): the tracer of TSL and,
but for frames that ran when recording began, that of PyTorch."""

_FILES_ALONE = ("XPlane", "XLA trace JSON")
"""Formats whose frames name files without their folders."""


@record
class Where:
    """A place in the user's program; every part is None where it was not recorded."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    op: str | None = None
    module: str | None = None
    annotation: str | None = None
    defined: bool = False
    """The line is where the function begins; which line of it ran was not recorded."""
    ns_per_step: int | None = field(default=None, compare=False)
    """Of a finding's place, the time that passes there."""

    @property
    def at(self) -> str | None:
        """File and line, as far as they are known."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return any((self.file, self.op, self.module, self.annotation))


_MOST_STEPS = 64
"""Steps from slices to what is around them, per slice of the profile. Chosen: three real ones took up to nine."""


class _Says(IntEnum):
    """What a slice says of the place of all that is inside it: bits of its role."""

    USERS = 0
    CHOSEN = 1
    LIBRARY = 2
    MODULE = 3
    ANNOTATION = 4
    STACK = 5
    BACKWARD = 6
    OP = 7
    """From here on the outermost counts, before it the innermost."""
    RUNNER = 8


@record
class _Around:
    """What is around each of some slices; -1 for none."""

    frame: I32
    """A slice."""
    rest: I32
    """Names of op, module and annotation: three columns."""
    stack: I32
    """The recorded stack, as a text."""
    source: I32
    """The recorded source line, as a text."""
    asking: I32
    """The slice whose code asked for it."""


class Locator:
    """Answers where slices come from. What is around a slice is looked up when it is asked for: few of many are."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._lines = CodeLines(trace)

    def where(self, slice_id: int, at: int | None = None) -> Where:
        """The place of a slice: the user's own innermost frame, outermost op, innermost module and annotation.

        A backward op has no frames of its own: the code that ran its forward op is the code that asked for it. An op
        of a module compiled by XLA names its source line and, as its module, the name scope it was traced in. With an
        instant (ns) it is the place of what the slice was at then, and not of the slice as a whole.
        """
        return self.places_of(np.array([slice_id], np.int32), None if at is None else np.array([at], np.int64))[0]

    def places_of(self, slices: I32, times: I64 | None = None) -> list[Where]:
        """The place of each of some slices: asking for many at once takes hardly longer than for one."""
        parts, frames = self.parts(slices, times)
        return [
            self.made(frames[frame] if frame >= 0 else None, map(self._text, texts)) for frame, *texts in parts.tolist()
        ]

    @staticmethod
    def made(frame: Frame | None, texts: Iterable[str | None]) -> Where:
        """A place of its parts: frame, and module, annotation and op in words."""
        module, annotation, op = texts
        return Where(
            file=frame.file if frame else None,
            line=frame.line if frame else None,
            function=(frame.function or None) if frame else None,
            defined=frame.is_definition if frame else False,
            op=op or None,
            module=(module or "").removeprefix("nn.Module: ") or None,
            annotation=annotation or None,
        )

    def frame(self, name: str) -> Frame | None:
        """A Python frame from the name of its slice."""
        parsed = parse_frame(name)
        if parsed is None or self.trace.info.format not in _DEFINITIONS:
            return parsed
        began = name not in self._begun_before
        return replace(parsed, line=parsed.line if began else None, is_definition=began)

    def group(self, slices: I32) -> Rows:
        """Numbers that are equal for slices of equal place (-1: none): to group by before asking ``where``."""
        around = self._around(slices)
        asked, stacks = self._asked(slices, around, None)
        return grouped(*asked.T, *stacks.T, *around.rest.T)[1]

    def parts(self, slices: I32, times: I64 | None = None) -> tuple[I32, tuple[Frame | None, ...]]:
        """Per slice (at an instant) its frame (a place in the second value), module, annotation and op as codes of
        strings, -1 for none: what a place is put together of."""
        around = self._around(slices)
        asked, stacks = self._asked(slices, around, times)
        first, at = grouped(*asked.T, *stacks.T)
        told = zip(asked[first].tolist(), stacks[first].tolist(), strict=True)
        known = [self._frame_of(*frame, *stack) for frame, stack in told]
        numbers = {frame: number for number, frame in enumerate(dict.fromkeys(known))}
        numbered = np.array([-1 if frame is None else numbers[frame] for frame in known], np.int32)
        ops, modules, annotations = around.rest.T
        return np.stack((numbered[at], modules, annotations, ops), axis=1).astype(np.int32), tuple(numbers)

    def outermost_op(self, slice_id: int) -> str | None:
        """The name of the outermost host op around a slice that is not autograd's own wrapper."""
        return self._text(int(self._around(np.array([slice_id], np.int32)).rest[0, 0]))

    @cached_property
    def functions(self) -> I32:
        """Per slice, the name of the innermost function around it that is the user's or of a library that the user
        chose; -1 for none."""
        slices, strings = self.trace.slices, self.trace.strings
        is_frame = slices.kind == Kind.PYTHON_FRAME
        codes = used_codes(slices.name[is_frame], len(strings)).tolist()
        known = ((code, parse_frame(strings[code])) for code in codes)
        told = [code for code, frame in known if frame and (frame.is_users or frame.is_of_a_chosen_library)]
        return self._nearest(is_frame & among(slices.name, told))

    def enclosing(self, slice_id: int) -> list[int]:
        """The slice and all that enclose it, innermost first."""
        chain = []
        while slice_id >= 0:
            chain.append(slice_id)
            slice_id = int(self.trace.slices.parent[slice_id])
        return chain

    def _around(self, slices: I32) -> _Around:
        own = self._climbed(slices)
        frame, stack, forward = _frame_of_all(own), self._stacks[own[_Says.STACK]], self._forward[own[_Says.BACKWARD]]
        bare = np.flatnonzero((frame < 0) & (stack < 0) & (forward >= 0))
        if bare.size:
            asked = self._climbed(forward[bare])
            frame[bare], stack[bare] = _frame_of_all(asked), self._stacks[asked[_Says.STACK]]
            for says in (_Says.MODULE, _Says.ANNOTATION):
                own[says, bare] = np.where(own[says, bare] >= 0, own[says, bare], asked[says])
        asking = slices.astype(np.int32)
        asking[bare] = forward[bare]
        op = np.where(own[_Says.OP] >= 0, own[_Says.OP], own[_Says.RUNNER])
        rest = np.stack([self._name(each) for each in (op, own[_Says.MODULE], own[_Says.ANNOTATION])], axis=1)
        scope = self._scopes[slices]
        rest[:, 1] = np.where(scope >= 0, scope, rest[:, 1])
        return _Around(frame, rest, stack, self._sources[slices], asking)

    def _climbed(self, slices: I32) -> I32:
        every, bits = self.trace.slices, (len(_Says), int(_Says.OP))
        # Stacks that nest without end are walked once for all slices, not once for each.
        if int(every.depth[slices].sum(dtype=np.int64)) > _MOST_STEPS * len(every):
            return np.where(slices >= 0, _around_all(self._roles, every.parent, *bits)[:, slices], np.int32(-1))
        return np.asarray(_climbed(slices, self._roles, every.parent, *bits), np.int32)

    @cached_property
    def _stacks(self) -> ValuesOfFew:
        return told(self.trace.host_ops.slice, self.trace.host_ops.call_stack)

    @cached_property
    def _scopes(self) -> ValuesOfFew:
        return told(self.trace.xla_ops.slice, self.trace.xla_ops.scope)

    @cached_property
    def _sources(self) -> ValuesOfFew:
        return told(self.trace.xla_ops.slice, self.trace.xla_ops.source)

    @cached_property
    def _forward(self) -> ValuesOfFew:
        return told(*differentiated(self.trace))

    @cached_property
    def _roles(self) -> I16:
        """Per slice the bits of what it says."""
        slices, strings = self.trace.slices, self.trace.strings
        roles = np.zeros(len(slices), np.int16)
        is_frame, is_op = slices.kind == Kind.PYTHON_FRAME, slices.kind == Kind.HOST_OP
        roles[is_frame] = self._frame_roles(used_codes(slices.name[is_frame], len(strings)))[slices.name[is_frame]]
        roles[slices.kind == Kind.MODULE] |= 1 << _Says.MODULE
        roles[self._is_annotation()] |= 1 << _Says.ANNOTATION
        for says, passed in ((_Says.OP, runs_others), (_Says.RUNNER, _is_the_engines)):
            roles[is_op & ~mapped(slices.name, strings, passed, np.bool_)] |= 1 << says
        roles[self._stacks.slices] |= 1 << _Says.STACK
        roles[self._forward.slices] |= 1 << _Says.BACKWARD
        return roles

    def _frame_roles(self, names: Rows) -> I16:
        """Per text, whether it is a frame of the user's own code, or of a library whose path tells which: one that the
        user chose, or the framework's own or the standard library's."""
        roles = np.zeros(len(self.trace.strings), np.int16)
        for code in names.tolist():
            frame = parse_frame(self.trace.strings[code])
            if frame is not None and frame.is_users:
                roles[code] = 1 << _Says.USERS
            elif frame is not None and frame.tells_library:
                roles[code] = 1 << (_Says.CHOSEN if frame.is_of_a_chosen_library else _Says.LIBRARY)
        return roles

    def _is_annotation(self) -> Bools:
        """Annotations, and ranges that could mark the end of a step (``Optimizer.step#...``): they too say where."""
        slices = self.trace.slices
        ends = [code for code, name in enumerate(self.trace.strings) if (m := step_marker(name)) and m.ends_step]
        is_annotation: Bools = (slices.kind == Kind.ANNOTATION) | (
            (slices.kind == Kind.STEP) & among(slices.name, ends)
        )
        return is_annotation

    def _nearest(self, chosen: Bools) -> I32:
        """Per slice, the name of the innermost chosen slice around it."""
        return inherit(np.where(chosen, self.trace.slices.name, np.int32(-1)), self.trace.slices.parent)

    @cached_property
    def _is_users(self) -> Bools:
        """Per text, whether it names a function of the user's own."""
        known = [bool((frame := parse_frame(text)) and frame.is_users) for text in self.trace.strings]
        return np.array([*known, False])

    @cached_property
    def _begun_before(self) -> frozenset[str]:
        """Names of functions that ran when recording began."""
        codes = used_codes(self.trace.slices.name[self._lines.before], len(self.trace.strings)).tolist()
        return frozenset(self.trace.strings[code] for code in codes)

    def _asked(self, slices: I32, around: _Around, times: I64 | None) -> tuple[I64, I32]:
        """Per slice (at an instant) the name of its frame, the line in it, whether that ran when recording began and
        the look that tells more (a row of the table); and its recorded stack and source line. -1 for none."""
        frames, stacks, sources, asking = around.frame, around.stack, around.source, around.asking
        start, dur = self.trace.slices.start_ns, self.trace.slices.dur_ns
        at = start[asking] + dur[asking] // 2 if len(start) else np.zeros(slices.size, np.int64)
        whole = (frames == asking) & (frames >= 0)
        if times is not None:
            own = asking == slices
            at, whole = np.where(own, times, at), whole & ~own
        line = self._lines.lines(np.where(whole | (asking < 0), np.int32(-1), frames), asking, at)
        names = self._name(frames)
        look = np.full(slices.size, -1, np.int32)
        bare = np.flatnonzero((asking >= 0) & (stacks < 0) & (sources < 0) & ~self._is_users[names])
        look[bare] = self._lines.places(asking[bare], at[bare])
        look = np.where(look >= 0, self._lines.same_place[look], -1)
        before = self._lines.before[frames] & (frames >= 0) if len(start) else np.zeros(slices.size, np.bool_)
        told = np.stack((names, np.where(line == NULL, -1, line), before, look), axis=1).astype(np.int64)
        return told, np.stack((stacks, sources), axis=1)

    def _frame_of(self, name: int, line: int, before: int, look: int, stack: int, source: int) -> Frame | None:
        if look >= 0:
            return self._seen(look)
        if name < 0:
            return self._of_stack(stack) or source_frame(self._text(source))
        frame = self.frame(self.trace.strings[name])
        if frame is None or (line < 0 and not before):
            return frame
        return replace(frame, line=line if line >= 0 else None, is_definition=False)

    def _seen(self, look: int) -> Frame:
        looks, strings = self.trace.looks, self.trace.strings
        file = strings[int(looks.file[look])]
        if self.trace.info.format in _FILES_ALONE:
            file = PurePath(file).name
        return Frame(file, int(looks.line[look]), strings[int(looks.function[look])])

    def _of_stack(self, stack: int) -> Frame | None:
        if stack < 0:
            return None
        frames = [parse_frame(text.strip()) for text in self.trace.strings[stack].split(";")]
        known = [frame for frame in frames if frame is not None]
        told = [frame for frame in known if not frame.is_generated]
        users = next((frame for frame in told if frame.is_users), None)
        return users or next((frame for frame in told if frame.is_of_a_chosen_library), told[0] if told else None)

    def _name(self, slices: I32) -> I32:
        return np.where(slices >= 0, self.trace.slices.name[slices], np.int32(-1)).astype(np.int32)

    def _text(self, code: int) -> str | None:
        return (self.trace.strings[code] or None) if code >= 0 else None


def _is_the_engines(op: str) -> bool:
    return op.startswith("autograd::engine")


def _frame_of_all(around: I32) -> I32:
    """The innermost frame of the user's own code, else that of a library."""
    users, chosen, library = around[[_Says.USERS, _Says.CHOSEN, _Says.LIBRARY]]
    innermost: I32 = np.where(users >= 0, users, np.where(chosen >= 0, chosen, library))
    return innermost


@kernel
def _climbed(rows: I32, roles: I16, parent: I32, bits: int, outer: int) -> I32:
    """Per bit and slice, what has the bit around it, or itself: the innermost, from the bit ``outer`` on the outermost;
    -1 for none."""
    made = np.full((bits, rows.size), -1, np.int32)
    for i in range(rows.size):
        j = rows[i]
        while j >= 0:
            if roles[j] != 0:
                for bit in range(bits):
                    if roles[j] >> bit & 1 and (bit >= outer or made[bit, i] < 0):
                        made[bit, i] = j
            j = parent[j]
    return made


@kernel
def _around_all(roles: I16, parent: I32, bits: int, outer: int) -> I32:
    """The same of all slices: a parent's row comes before its children's."""
    made = np.full((bits, roles.size), -1, np.int32)
    for i in range(roles.size):
        for bit in range(bits):
            if parent[i] >= 0:
                made[bit, i] = made[bit, parent[i]]
            if roles[i] >> bit & 1 and (bit < outer or made[bit, i] < 0):
                made[bit, i] = i
    return made
