"""Ops of modules compiled by XLA: which events they are, and what the file says of each.

What an op is stands in up to three places: the event, its metadata (TPU: the same for every execution), and the
compiled module in ``/host:metadata``. The nearest one counts. The events of a TPU name neither module nor run: those
of the module's event around them on the line of modules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stepscope.formats.xplane.grouping import dense, distinct, grouped
from stepscope.formats.xplane.modules import Modules, module_and_program
from stepscope.formats.xplane.planes import LineRole
from stepscope.formats.xplane.times import EventTimes
from stepscope.formats.xplane.view import View
from stepscope.hlo.instructions import is_collective
from stepscope.hlo.waits import AsyncEnd, Awaited, async_end
from stepscope.names.calls import CallRole, call_role
from stepscope.names.host_callbacks import HOST_CALLBACK, calls_python, is_host_callback
from stepscope.protobuf.columns import decode, texts
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace.codes import used_codes
from stepscope.trace.tables import I32, I64, NULL, U8, Bools, Rows

_OPCODE = regex(r"[\]})] ([a-z][a-z0-9\-]*)\(")
"""The opcode in the text of an instruction: ``%add.1 = f32[8]{0} add(f32[8]{0} %x, …``."""
_BASE = regex(r"%?([a-z][a-z\-]*[a-z])")
_LONGEST = 4_096
_NO_SCOPE = ("", "XlaModule", "(null)")
_NO_RUN = -1
"""What a runtime that numbers no runs writes (TensorFlow's XLA on the CPU)."""
_PJRT_CALL = regex(r"(?:\[\d{1,9}\] )?\w{0,64}PjRt\w{0,64}Executable::Execute")
_MOVES = (Awaited.MEMORY, Awaited.PEER)


class _Op(NamedTuple):
    """What one distinct op is."""

    category: str | None
    scope: str | None
    source: str | None
    replica_groups: str | None
    collective: str | None
    dtype: str | None
    elements: int
    end: AsyncEnd | None
    """What it waits for, where it does nothing else."""


@record
class XlaColumns:
    """One value per op of ``rows`` (events, rising); codes are of the builder's dictionary, -1 or NULL where absent."""

    rows: Rows
    module: I32
    program: I64
    run: I64
    execution: I64
    """Equal for ops of one execution on one device: the event of the module around them, else the run."""
    op: I32
    category: I32
    scope: I32
    source: I32
    replica_groups: I32
    collective: I32
    """Opcode of an exchange between devices."""
    dtype: I32
    """Type of the elements that it takes in."""
    elements: I64
    waiting: Bools
    """Ops in which a device waits for the host or another core: they move nothing."""
    copied: Bools
    """Ops in which it waits until something has been moved."""
    moved: I64
    """Bytes that were."""
    direction: U8
    source_memory: U8
    target_memory: U8


class SpaceXlaOps:
    """The ops of one file."""

    def __init__(self, view: View, times: EventTimes, modules: Modules) -> None:
        self._view, self._times, self._modules = view, times, modules
        kinds = np.array([view.planes[plane].kind in ("tpu", "sparse_core") for plane in view.lines.plane.tolist()])
        self._on_tpu = kinds.astype(np.bool_)

    @cached_property
    def on_processor(self) -> Rows:
        """Host events that are ops of XLA:CPU, on a device that they name or that is the only one."""
        return self._named_on_host[np.flatnonzero(self._ordinals_on_host != NULL)]

    @cached_property
    def ordinals(self) -> I64:
        """The device of each op ``on_processor``."""
        known: I64 = self._ordinals_on_host[self._ordinals_on_host != NULL]
        return known

    @cached_property
    def _ordinals_on_host(self) -> I64:
        stats, rows = self._view.space.stats, self._named_on_host
        named = stats.rows("device_ordinal").size or self._view.is_own
        if rows.size and not named and self._is_one_device(rows):
            return np.zeros(rows.size, np.int64)
        return stats.sizes("device_ordinal", rows)

    def _is_one_device(self, rows: Rows) -> bool:
        """Whether ops that name no device (PyTorch/XLA 2.9) are one's: of a process that has devices, as those that
        run programs through PjRt do, and where no op of a program ever runs twice at a time."""
        if not any(_PJRT_CALL.match(name) for name in self._view.names):
            return False
        program, op = self._view.integers("program_id", rows), self._view.codes("hlo_op", rows)
        start = self._times.start[rows]
        order = np.lexsort((start, op, program))
        again = (np.diff(program[order]) == 0) & (np.diff(op[order]) == 0)
        over = (start + self._times.dur[rows])[order]
        return not (again & (start[order][1:] < over[:-1])).any()

    @cached_property
    def _named_on_host(self) -> Rows:
        """Events on the host that are ops. A runtime call that launched one (ROCm's collector, JAX 0.8) names the op
        as well: its correlation id or its own name tells that it is a call."""
        view = self._view
        rows = view.space.stats.rows("hlo_op").astype(np.intp)
        rows = rows[view.on(LineRole.HOST)[rows]]
        used = used_codes(view.name[rows], len(view.names))
        is_call = np.zeros(len(view.names), np.bool_)
        is_call[used] = [call_role(view.names[code]) is not CallRole.OTHER for code in used.tolist()]
        is_op = ~is_call[view.name[rows]] & (view.space.stats.integers("correlation_id", rows) == NULL)
        return np.asarray(rows[is_op], np.intp)

    @cached_property
    def columns(self) -> XlaColumns:
        """What is known of every op."""
        view, rows = self._view, self._rows
        on_tpu = self._on_tpu[view.events.line[rows]] if rows.size else np.zeros(0, np.bool_)
        name = np.where(on_tpu, view.events.name[rows], np.int32(-1))
        around = self._module_around(rows)
        module, program, run = self._execution(rows, around)
        op = view.codes("hlo_op", rows)
        if on_tpu.any():
            op = np.where((op < 0) & on_tpu, self._coded(view.names)[view.name[rows]], op)
        category = view.codes("hlo_category", rows)
        group, first = dense(module, program, op, category, name)
        told = [
            self._describe(*key)
            for key in zip(*(column[first].tolist() for column in (module, program, op, category, name)), strict=True)
        ]
        of = {field: self._coded([getattr(known, field) for known in told])[group] for field in _Op._fields[:-2]}
        ends = [known.end for known in told]
        moves = [end is not None and end.awaited in _MOVES for end in ends]
        no_end = AsyncEnd(Awaited.MEMORY)
        moved = [end if end is not None and moves[at] else no_end for at, end in enumerate(ends)]
        return XlaColumns(
            rows=rows,
            module=module,
            program=program,
            run=run,
            execution=np.where(around >= 0, around, run),
            op=op,
            category=_first(category, of["category"]),
            scope=_first(self._scope(rows), of["scope"]),
            source=_first(view.codes("source", rows), of["source"]),
            replica_groups=_first(view.codes("replica_groups", rows), of["replica_groups"]),
            collective=of["collective"],
            dtype=of["dtype"],
            elements=np.array([known.elements for known in told] + [NULL], np.int64)[group],
            waiting=np.array([end is not None and end.awaited not in _MOVES for end in ends] + [False])[group],
            copied=np.array([*moves, False])[group],
            moved=np.array([end.bytes for end in moved] + [NULL], np.int64)[group],
            direction=np.array([end.direction for end in moved] + [0], np.uint8)[group],
            source_memory=np.array([end.source for end in moved] + [0], np.uint8)[group],
            target_memory=np.array([end.target for end in moved] + [0], np.uint8)[group],
        )

    @cached_property
    def _rows(self) -> Rows:
        view = self._view
        on_device = view.on(LineRole.STREAM)
        named = on_device & view.of_lines(self._on_tpu) if self._on_tpu.any() else np.zeros_like(on_device)
        for key in ("hlo_op", "hlo_module", "tf_op"):
            rows = view.space.stats.rows(key)
            named[rows[on_device[rows]]] = True
        named[self._named_on_host] = True
        return np.flatnonzero(named)

    def _execution(self, rows: Rows, around: Rows) -> tuple[I32, I64, I64]:
        """Module, program and run of each op."""
        view = self._view
        module, program = view.codes("hlo_module", rows), view.integers("program_id", rows)
        run = view.integers("run_id", rows)
        run[run == _NO_RUN] = NULL
        known = np.flatnonzero(around >= 0)
        if not known.size:
            return module, program, run
        events = around[known]
        parts = [module_and_program(name) for name in view.names]
        written = np.array([NULL if number is None else number for _, number in parts] + [NULL], np.int64)
        codes = self._coded([name for name, _ in parts])
        module[known] = _first(module[known], codes[view.name[events]])
        own = view.integers("program_id", events)
        own = np.where(own == NULL, written[view.name[events]], own)
        program[known] = np.where(program[known] == NULL, own, program[known])
        run[known] = np.where(run[known] == NULL, view.integers("run_id", events), run[known])
        return module, program, run

    def _module_around(self, rows: Rows) -> Rows:
        """The event of the module in which each op of a TPU began, -1 where there is none."""
        view, start = self._view, self._times.start
        plane, line = view.lines.plane, view.events.line
        modules = np.flatnonzero(view.on(LineRole.MODULES))
        modules = modules[np.argsort(start[modules], kind="stable")]
        around = np.full(rows.size, -1, np.intp)
        ops_of = dict(grouped(plane[line[rows]]))
        for p, places in grouped(plane[line[modules]]):
            mine, ops = modules[places], ops_of.get(p, np.empty(0, np.intp))
            at = np.searchsorted(start[mine], start[rows[ops]], "right") - 1
            inside = at >= 0
            inside[inside] = start[rows[ops[inside]]] <= (start + self._times.dur)[mine[at[inside]]]
            around[ops[inside]] = mine[at[inside]]
        return around

    def _describe(self, module: int, program: int, op: int, category: int, name: int) -> _Op:
        """What one op is; ``name`` is the metadata of a TPU's event, whose name may be the whole instruction."""
        words = [None if code < 0 else self._view.builder.string(code) for code in (module, op, category)]
        known = self._modules.op(words[0], None if program == NULL else program, words[1])
        opcode = known.opcode if known else self._written_opcode(name)
        base = _BASE.match(words[1] or "")
        if calls_python((known.target if known else None) or "") or is_host_callback(words[1] or ""):
            opcode = words[2] = HOST_CALLBACK
        forms = [form for form in (opcode, words[2], base[1] if base else None) if form]
        takes = known.takes if known else ()
        dtype = takes[0][0] if len({kind for kind, _ in takes}) == 1 else None
        end = async_end((*forms, words[1] or ""), self._text(name))
        return _Op(
            category=words[2] or opcode,
            scope=known.scope if known else None,
            source=known.source if known else None,
            replica_groups=known.replica_groups if known else None,
            collective=next((form for form in forms if is_collective(form)), None),
            dtype=dtype,
            elements=sum(count for _, count in takes) if dtype else NULL,
            end=AsyncEnd(Awaited.PYTHON) if opcode == HOST_CALLBACK else end,
        )

    def _written_opcode(self, name: int) -> str | None:
        """The written in an instruction's text."""
        written = _OPCODE.search(self._text(name))
        return written[1] if written else None

    def _text(self, name: int) -> str:
        """The text of an instruction, which event metadata of a TPU has as its name."""
        space = self._view.space
        if name < 0:
            return ""
        text = decode(space.data, texts(space.data, space.names.spans[name : name + 1], 2))[0]
        return (text or "")[:_LONGEST]

    def _scope(self, rows: Rows) -> I32:
        """Name scopes: GPU profilers write that of an op of XLA as ``name`` and the framework's op as ``tf_op``."""
        view = self._view
        scope = self._changed(view.codes("tf_op", rows), _scope_text)
        named = view.codes("name", rows)
        named[~view.having("hlo_op")[rows] | ~view.on(LineRole.STREAM)[rows]] = -1
        return _first(scope, named)

    def _changed(self, codes: I32, change: Callable[[str], str | None]) -> I32:
        used, each = distinct(codes)
        text, string = self._view.builder.text, self._view.builder.string
        return np.array([-1 if code < 0 else text(change(string(code))) for code in used.tolist()], np.int32)[each]

    def _coded(self, words: list[str] | list[str | None]) -> I32:
        """Dictionary codes of some words, and -1 behind them."""
        return np.array([self._view.builder.text(word) for word in words] + [-1], np.int32)


def _scope_text(text: str) -> str | None:
    bare = text.removesuffix(":")
    return None if bare in _NO_SCOPE else bare


def _first(codes: I32, otherwise: I32) -> I32:
    return np.where(codes < 0, otherwise, codes).astype(np.int32)
