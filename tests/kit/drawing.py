"""A trace drawn as text: what it looks like in a viewer is what it looks like in the test.

::

    1 char = 10 us
    main   |[S                              ]
    main   |[aten::linear   ] [s           ]
    main   |    a  b
    gpu0/7 |     [a    ][b            ]
    gpu0/20|               [c   ]
    S = step 5
    s = sync cudaStreamSynchronize
    b = kernel sgemm
    c = copy HtoD 4096 Pinned

A line is a track, a bar, and the track's slices; the bars of all lines stand in one column, which is time
zero. A slice reaches from its ``[`` to its ``]``, both included; a character outside brackets is a slice one
column wide, and each ``>`` behind it (``a>>``) adds a column. Lines of the same track are drawn over each
other, so slices may nest, cross or overlap. ``gpu<device>/<stream>`` are device tracks, every other name is a
host thread.

What stands in a slice is its label, or a description. Labels are explained below the drawing, ``label =
description``. On a device track a label nobody explains is a kernel of that name. On a host track a label
that also stands on a device track is the call that launched it; where it stands there as often as on the
device, the first launches the first and so on, where it stands once, it launches them all (a graph); where it
stands nowhere, the launch was not recorded. Any other host label is an op of that name.

Descriptions, each may end in ``key=value`` arguments: the values are JSON without blanks, a blank in a key is
``~``. ``dur=`` overrides the duration in ns; ``fwd=3`` and ``bwd=3`` are the two ends of an arrow from
forward to backward.

=========================================  ===============================================================
``step N``                                 ``ProfilerStep#N``
``op NAME`` / ``ann NAME`` / ``py NAME``   host op / user annotation / Python frame (``train.py(12): main``)
``input``                                  the data loader's range
``call NAME`` / ``driver NAME``            runtime or driver call without device work
``launch LABEL NAME``                      the call that launched LABEL, where it is no usual one
``sync NAME``                              a call that waits for the device
``overhead NAME`` / ``memory BYTES``       profiler overhead / an allocation (an instant at the start)
``kernel NAME`` / ``memset BYTES``         device work
``copy HtoD BYTES Pageable``               a copy; the memory of the host side may be left out
``wait NAME``                              a device wait, drawn on the stream
``mark NAME``                              an annotation on the device
=========================================  ===============================================================
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.kit.events import CALLS, DEVICE_WORK, US, Category, Event, FlowEnd, Stream, Thread, Track

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
"""What PyTorch calls the range in which a loop waits for its next batch."""

USUAL_CALLS = {"kernel": "cudaLaunchKernel", "gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync"}

FIRST_CORRELATION = 1

_HOST_KINDS: dict[str, Category] = {
    "op": "cpu_op",
    "ann": "user_annotation",
    "py": "python_function",
    "call": "cuda_runtime",
    "sync": "cuda_runtime",
    "driver": "cuda_driver",
    "overhead": "overhead",
    "memory": "memory",
    "step": "user_annotation",
    "input": "user_annotation",
    "launch": "cuda_runtime",
}
_DEVICE_KINDS: dict[str, Category] = {
    "kernel": "kernel",
    "copy": "gpu_memcpy",
    "memset": "gpu_memset",
    "wait": "cuda_sync",
    "mark": "gpu_user_annotation",
}


class DrawingError(ValueError):
    """The drawing cannot be read, or the events cannot be drawn."""


@dataclass(frozen=True, slots=True)
class _Cell:
    track: Track
    start: int
    end: int
    text: str


@dataclass(slots=True)
class _Drawing:
    cells: list[_Cell] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)
    unit_ns: int = 10 * US

    def meaning(self, cell: _Cell) -> str:
        """The description a cell stands for: its label's, its own, or the usual one of its track."""
        text = self.legend.get(cell.text, cell.text)
        if " " in text or text == "input":
            return text
        return f"op {text}" if isinstance(cell.track, Thread) else f"kernel {text}"

    def launches(self, cell: _Cell) -> str:
        """The label of the device work a host cell may have launched."""
        words = self.legend.get(cell.text, cell.text).split()
        return words[1] if len(words) > 1 and words[0] == "launch" else cell.text


def draw(text: str) -> list[Event]:
    """The events of a drawing, host tracks first, each track in the order of its lines.

    Raises DrawingError where bars do not line up, a bracket is open, or a description is unknown.
    """
    drawing = _read(text)
    numbers = _Numbers(drawing)
    return [_event(cell, drawing, numbers) for cell in drawing.cells]


def _read(text: str) -> _Drawing:
    drawing, bar = _Drawing(), -1
    for line in text.splitlines():
        legend = re.match(r"\s*([^\s|]+) = (.*)", line)
        unit = re.fullmatch(r"\s*1 char = (\d+) (ns|us|ms)\s*", line)
        if unit:
            drawing.unit_ns = int(unit[1]) * {"ns": 1, "us": 1_000, "ms": 1_000_000}[unit[2]]
        elif legend:
            drawing.legend[legend[1]] = legend[2].strip()
        elif "|" in line:
            if bar not in (-1, line.index("|")):
                raise DrawingError(f"the bar of this line is not below the others: {line}")
            bar = line.index("|")
            drawing.cells += _cells(_track(line[:bar].strip()), line[bar + 1 :])
        elif line.strip():
            raise DrawingError(f"neither a track nor a legend: {line}")
    drawing.cells.sort(key=lambda cell: isinstance(cell.track, Stream))
    return drawing


def _track(name: str) -> Track:
    device = re.fullmatch(r"gpu(\d+)/(-?\d+)", name)
    return Stream(int(device[1]), int(device[2])) if device else Thread(name)


_SLICE = re.compile(r"\[([^]]*)\]|(?P<narrow>[^\s\[\]>])>*")


def _cells(track: Track, line: str) -> list[_Cell]:
    cells, column = [], 0
    while line[column:].strip():
        column += len(line[column:]) - len(line[column:].lstrip())
        found = _SLICE.match(line, column)
        if not found:
            raise DrawingError(f"a bracket is open, or closed twice, in: {line}")
        cells.append(_Cell(track, column, found.end(), (found[1] or found["narrow"] or "").strip()))
        column = found.end()
    return cells


class _Numbers:
    """Correlations: which occurrence of a label on the host launched which on the device."""

    def __init__(self, drawing: _Drawing) -> None:
        self.next = FIRST_CORRELATION
        self.work: dict[str, str] = {}
        """What the labels of device work mean."""
        self.given: dict[tuple[str, int], int] = {}
        self.seen: dict[tuple[str, bool], int] = defaultdict(int)
        for cell in drawing.cells:
            meaning = drawing.meaning(cell)
            if isinstance(cell.track, Stream) and meaning.split()[0] in ("kernel", "copy", "memset"):
                self.work[cell.text] = meaning
        self.calls = Counter(drawing.launches(cell) for cell in drawing.cells if isinstance(cell.track, Thread))

    def fresh(self) -> int:
        self.next += 1
        return self.next - 1

    def of(self, label: str, on_host: bool) -> int:
        """The correlation of the next occurrence of a label on the host or on the device."""
        count = self.seen[label, on_host]
        self.seen[label, on_host] += 1
        key = (label, 0 if self.calls[label] == 1 else count)
        if key not in self.given:
            self.given[key] = self.fresh()
        return self.given[key]


def _event(cell: _Cell, drawing: _Drawing, numbers: _Numbers) -> Event:
    unit, on_host = drawing.unit_ns, isinstance(cell.track, Thread)
    label, meaning = drawing.launches(cell) if on_host else cell.text, drawing.meaning(cell)
    if on_host and label in numbers.work:
        usual = USUAL_CALLS[_DEVICE_KINDS[numbers.work[label].split()[0]]]
        name = meaning.removeprefix(f"launch {label}").strip() if meaning.startswith("launch ") else usual
        meaning = f"driver {name}" if re.match("cu[A-Z]", name) else f"call {name}"
    event = _described(meaning, cell.track, cell.start * unit, (cell.end - cell.start) * unit)
    if label in numbers.work:
        return replace(event, correlation=numbers.of(label, on_host))
    return replace(event, correlation=numbers.fresh()) if event.cat in CALLS else event


def _described(description: str, track: Track, start: int, dur: int) -> Event:
    words = description.split(" ")
    args: dict[str, Any] = {}
    while len(words) > 1 and re.fullmatch(r"[A-Za-z][\w.~%()/]*=\S+", words[-1]):
        key, value = words.pop().split("=", 1)
        args = {key.replace("~", " "): _value(value)} | args
    kind, rest = words[0], " ".join(words[1:])
    kinds = _HOST_KINDS if isinstance(track, Thread) else _DEVICE_KINDS
    if kind not in kinds:
        raise DrawingError(f"{kind!r} is not something that can be on {track}: {description}")
    dur = args.pop("dur", dur)
    flows = tuple(FlowEnd(args.pop(end), end == "fwd") for end in ("fwd", "bwd") if end in args)
    if kind == "step":
        rest = f"ProfilerStep#{rest}"
    elif kind == "input":
        rest = rest or LOADER
    elif kind == "memory":
        return Event("memory", "[memory]", track, start, None, args={"Bytes": int(rest)} | args)
    elif kind == "memset":
        rest, args = "Memset (Device)", {"bytes": int(rest)} | args
    elif kind == "copy":
        direction, size, *memory = rest.split()
        args = {"direction": direction, "bytes": int(size)} | ({"memory": memory[0]} if memory else {}) | args
        rest = "copy"
    return Event(kinds[kind], rest, track, start, dur, flows=flows, args=args)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def render(events: Iterable[Event], unit_ns: int = 10 * US) -> str:
    """A drawing of events, to look at a trace that failed a test, and to be read back by :func:`draw`.

    Every event gets a label of its own, explained below. Raises DrawingError where a start or an end lies
    between two columns or two calls share a correlation.
    """
    listed = list(events)
    labels = _labels(listed)
    rows: dict[Track, list[list[str]]] = defaultdict(list)
    for event, label in zip(listed, labels, strict=True):
        _place(rows[event.track], event, label, unit_ns)
    names = {track: _track_name(track) for track in rows}
    width = max(map(len, names.values()), default=0)
    lines = [f"1 char = {unit_ns} ns"]
    for track in sorted(rows, key=lambda track: isinstance(track, Stream)):
        lines += [f"{names[track]:{width}}|{''.join(row).rstrip()}" for row in rows[track]]
    work = {event.correlation: label for event, label in zip(listed, labels, strict=True) if event.cat in DEVICE_WORK}
    calls = Counter(event.correlation for event in listed if event.cat in CALLS)
    if calls and max(calls.values()) > 1:
        raise DrawingError("two calls share a correlation")
    return "\n".join(
        [
            *lines,
            *dict.fromkeys(
                f"{label} = {_description(event, work.get(event.correlation))}"
                for event, label in zip(listed, labels, strict=True)
            ),
        ]
    )


def _labels(events: Sequence[Event]) -> list[str]:
    """Work that one call launched shares a label; everything else has its own."""
    pool = [char for char in map(chr, range(33, 0x3000)) if char.isalnum()]
    shared: dict[int | None, str] = {}
    labels = []
    for event in events:
        same = event.correlation if event.cat in DEVICE_WORK else None
        label = shared.get(same) if same is not None else None
        if label is None:
            if not pool:
                raise DrawingError(f"{len(events)} events are too many to draw")
            label = pool.pop(0)
        if same is not None:
            shared[same] = label
        labels.append(label)
    return labels


def _place(rows: list[list[str]], event: Event, label: str, unit_ns: int) -> None:
    start, rest = divmod(event.start_ns, unit_ns)
    end, over = divmod(event.end_ns, unit_ns)
    if rest or over:
        raise DrawingError(f"{event.name} does not start and end at a column of {unit_ns} ns")
    end = max(end, start + 1)
    drawn = f"{label}>" if end - start == 2 else label if end - start == 1 else f"[{label:{end - start - 2}}]"
    # One line per event keeps the order in which events of a track were given.
    rows.append([" "] * start + list(drawn))


def _track_name(track: Track) -> str:
    return f"gpu{track.device}/{track.stream}" if isinstance(track, Stream) else track.name


def _description(event: Event, work: str | None) -> str:
    args, dur = dict(event.args), "" if event.dur_ns else " dur=0"
    tail = _arguments(args) + "".join(f" {'fwd' if flow.starts else 'bwd'}={flow.id}" for flow in event.flows) + dur
    if event.cat in CALLS and work is not None:
        return f"launch {work} {event.name}{tail}"
    if event.cat == "memory":
        return f"memory {args.pop('Bytes')}{_arguments(args)}"
    if event.cat == "gpu_memcpy":
        memory = f" {args.pop('memory')}" if "memory" in args else ""
        return f"copy {args.pop('direction')} {args.pop('bytes')}{memory}{_arguments(args)}{dur}"
    if event.cat == "gpu_memset":
        return f"memset {args.pop('bytes')}{_arguments(args)}{dur}"
    kinds = {cat: kind for kind, cat in (*reversed(_HOST_KINDS.items()), *_DEVICE_KINDS.items())}
    return f"{kinds[event.cat]} {event.name}{tail}"


def _arguments(args: Any) -> str:
    """Arguments as JSON without blanks."""
    texts = {key: json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020") for key, value in args.items()}
    return "".join(f" {key.replace(' ', '~')}={text}" for key, text in texts.items())
