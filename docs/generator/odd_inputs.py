"""Damaged and odd files, each with its stated outcome: ``docs/formats.md`` prints it, a guard test makes the file."""

from __future__ import annotations

import json
from collections.abc import Iterable

from generator.odd_case import Case, odd
from generator.odd_containers import CONTAINERS
from generator.odd_others import OTHERS
from generator.odd_trace import (
    HOST,
    OP,
    START_US,
    TRACE,
    as_text,
    changed,
    cut,
    events,
    is_kernel,
    is_op,
    is_timed,
    renumbered,
    shifted,
    swap,
    trace,
    without,
    worded,
    zeroed,
)

RANGE = {"name": "load", "cat": "user_annotation", **HOST}

TEXT: tuple[Case, ...] = (
    Case(
        "Cut off inside an event",
        cut('"ts"', 12),
        "All whole events are kept; the cut one is dropped, also where only a number touches the end.",
        ("damaged_truncated",),
        1,
        met="trace-viewer#145",
    ),
    Case(
        "Cut off between two events; no `]` or `}` at the end",
        cut("  },\n  {", 3),
        "Nothing but what was cut off is missing.",
        ("damaged_missing_end", "profile_steps_left_out"),
    ),
    Case(
        "Cut off behind the events",
        TRACE[: TRACE.index(b'"traceName"') + 9],
        "All events are kept.",
        ("damaged_truncated_tail",),
    ),
    Case(
        r"Backslashes not escaped (`C:\Users\train.py`)",
        swap(OP, r'"C:\Users\train.py(3): f"'),
        "Kept literally.",
        ("damaged_unescaped_backslash",),
        met="pytorch#98432",
    ),
    Case(
        "Raw control character in a name",
        swap(OP, b'"aten\x01::mm"'),
        "Kept; reports show it escaped.",
        ("damaged_control_characters",),
        met="pytorch#130622",
    ),
    Case(
        "Source text as a name: raw line breaks and quotes",
        swap(OP, '"print("a, b")\n  return"'),
        "Repaired.",
        ("damaged_control_characters", "damaged_unescaped_quote"),
        met="pytorch#113001",
    ),
    Case(
        "Log lines with quotes among the root keys",
        swap('"schemaVersion": 1,', '"INFO": ["loaded "libkineto.so""],\n "schemaVersion": 1,'),
        "Repaired.",
        ("damaged_header_repaired",),
        met="kineto#1336",
    ),
    Case(
        "`inf` or `NaN` as an argument",
        swap('"stream": 7', '"stream": 7, "bandwidth": inf'),
        "The value counts as absent.",
        ("damaged_not_json_value",),
        met="kineto#105",
    ),
    odd(
        "`NaN` inside a list, or in another argument that no table takes",
        swap('"stream": 7', '"stream": 7, "values": [1, NaN]'),
        "Read; asked for, it is null.",
        met="bluepill#437",
    ),
    Case(
        "`NaN` as a time",
        swap('"dur": 280.75', '"dur": NaN'),
        "The event is lost.",
        ("damaged_not_json_value", "profile_duration_missing"),
        1,
    ),
    Case(
        "Bytes that are not UTF-8",
        swap(OP, b'"caf\xe9"'),
        "Replaced by U+FFFD.",
        ("damaged_invalid_utf8",),
        met="kineto#80",
    ),
    Case(
        "A key without its opening quote",
        swap('"tid": 7', 'tid": 7'),
        "Repaired.",
        ("damaged_missing_key_quote",),
        met="pytorch#33961",
    ),
    Case(
        "Two processes wrote into one file",
        swap('"ProfilerStep#7"', b'"Profile, ' + json.dumps(events()[4]).encode() + b', {"ph": "X", "narStep#7"'),
        "The events one text cuts out of the other are lost, the rest is read.",
        ("damaged_lost_event",),
        2,
        met="TensorRT-LLM#13536",
    ),
    Case(
        "A block of zero bytes in the middle",
        zeroed('"ProfilerStep#7"', 100),
        "The event it lies in is lost.",
        ("profile_time_missing",),
        1,
    ),
    Case(
        "A closing bracket too many between events",
        swap("  },\n  {", "  }},\n  {"),
        "Ignored.",
        ("damaged_stray_bracket",),
        met="ClangBuildAnalyzer#1",
    ),
    Case(
        "A closing brace too many at the end",
        TRACE.rstrip() + b"}\n",
        "Ignored.",
        ("damaged_trailing_content",),
        met="ClangBuildAnalyzer#1",
    ),
    Case(
        "A comma too many or too few between events",
        swap("  },\n  {", "  }\n  {"),
        "Repaired.",
        ("damaged_stray_comma",),
    ),
    Case(
        "Elements that are no objects",
        trace([*events()[:9], 7, None, *events()[9:]]),
        "Skipped.",
        ("damaged_not_an_object",),
        2,
    ),  # type: ignore[list-item]
    Case("Text behind the end", TRACE + b"\nDone.\n", "Ignored.", ("damaged_trailing_content",)),
    Case(
        "A second trace behind the first",
        TRACE + TRACE,
        "The first is read, the events of the second are counted as lost.",
        ("damaged_trailing_content",),
        len(events()),
    ),
)

SHAPE: tuple[Case, ...] = (
    odd(
        "The root is a list",
        json.dumps(events()).encode(),
        "Read; without root keys the device has no name.",
        met="kineto#728",
    ),
    Case(
        "`traceEvents` inside `traceEvents`",
        json.dumps({"traceEvents": {"traceEvents": events()}}).encode(),
        "Read as one list.",
        ("damaged_nested_trace_events", "damaged_trailing_content"),
        met="catapult#3006",
    ),
    odd(
        "Large keys before or behind `traceEvents`",
        trace(stackFrames=[{"f": "][}{"} for _ in range(2000)]),
        "Kept as they are.",
        met="perfetto#365",
    ),
    odd("`]` in `traceName`", trace(traceName="a]},{[b.json"), "Read.", met="kineto#888"),
    odd(
        "A key twice in one event",
        swap('"name": "aten::mm"', '"name": "first", "name": "aten::mm"'),
        "The last one counts.",
        met="trace-viewer#1175",
    ),
    odd("`{}` as the last event", trace([*events(), {}]), "Read: so XLA ends its list.", (), 1, met="perfetto#6251"),
    odd("`{}` between events", trace([{}, *events(), {}]), "Counted.", ("profile_event_empty",), 2),
    odd("An empty name", swap(OP, '""'), "Read.", met="perfetto#623"),
    Case("No name", without("name"), "The event is lost.", ("profile_name_missing",), 1),
    Case("No start", without("ts"), "The event is lost.", ("profile_time_missing",), 1),
    Case("No duration", without("dur"), "The event is lost.", ("profile_duration_missing",), 1),
    odd("No process or thread", without("pid", "tid"), "Read; it gets a track of its own."),
    odd(
        "Pairs of begin and end events (`B`, `E`), also in the wrong order or without a name at the end",
        trace([*events(), {"ph": "E", "ts": START_US + 9, **HOST}, {"ph": "B", "ts": START_US + 4, **RANGE}]),
        "Read as one slice.",
        met="perfetto#432",
    ),
    odd(
        "A begin without an end",
        trace([*events(), {"ph": "B", "ts": START_US + 4, **RANGE}]),
        "It lasts until the last event of its thread.",
        ("profile_begin_unclosed",),
        met="omnitrace#311",
    ),
    Case(
        "An end without a begin",
        trace([*events(), {"ph": "E", "ts": START_US + 4, **HOST}]),
        "Lost.",
        ("profile_end_unmatched",),
        1,
        met="perfetto#1159",
    ),
    Case(
        "Objects, samples, memory dumps (`N`, `O`, `D`, `P`, `v`)",
        trace([*events(), {"ph": "O", "ts": START_US + 4, "id": 1, **RANGE}]),
        "Lost.",
        ("profile_phase_unsupported",),
        1,
    ),
    odd("Events in any order", trace(events()[::-1]), "Read.", met="perfetto#371"),
    odd(
        "Times, processes and threads as text",
        trace([as_text(event) for event in events()]),
        "Read.",
        met="Ascend/pytorch#133",
    ),
    odd(
        "Integers beyond 64 bits",
        swap('"External id": 1\n', '"External id": 18446744073709551620\n'),
        "Kept as text; as ids they count as absent.",
        met="HolisticTraceAnalysis#324",
    ),
    odd(
        "A device's number beyond 31 bits",
        swap('"device": 0', '"device": 4294967296'),
        "Counts as absent: the device is that of the event's process id.",
        ("profile_device_out_of_range",),
    ),
    odd(
        "Categories as of 2021 (`Operator`, `Kernel`)",
        TRACE.replace(b'"kernel"', b'"Kernel"').replace(b'"cpu_op"', b'"Operator"'),
        "Read.",
        met="kineto#659",
    ),
    odd(
        "A category nobody knows",
        swap('"cpu_op"', '"quantum_op"'),
        "Kept as kind `other`, counted and named.",
        ("profile_category_unknown",),
    ),
    odd(
        "Process 0 on the host, stream 0 on the device",
        TRACE.replace(b": 100,", b": 0,").replace(b'"stream": 7', b'"stream": 0'),
        "Told apart by category, not by number.",
        met="HolisticTraceAnalysis#219",
    ),
    odd(
        "A thread's number once as text, once as a number",
        trace([event | {"tid": str(event["tid"])} if is_kernel(event) else event for event in events()]),
        "One thread.",
        met="kineto#109",
    ),
    odd(
        "Processes and threads in words (`CPU functions`, `stream 7`)",
        trace([worded(event) for event in events()]),
        "Read; the stream is the one named.",
        met="pytorch#33961",
    ),
    odd(
        "An external id that is no correlation id, or differs between ranks",
        trace([renumbered(event) for event in events()]),
        "Not relied on: launches are matched by correlation id.",
        met="kineto#782",
    ),
    odd(
        "`distributedInfo` without a rank",
        trace(distributedInfo={"backend": "nccl"}),
        "The rank is not recorded.",
        met="HolisticTraceAnalysis#17",
    ),
    odd(
        "An op that ends behind what it lies in",
        changed(is_op, lambda event: event | {"dur": 5000}),
        "Both are kept; it is nobody's part.",
        met="perfetto#928",
    ),
    odd(
        "An event twice; a duration of 0",
        trace([*events(), events()[2], events()[2] | {"dur": 0}]),
        "All are kept.",
        met="torch-spyre#3274",
    ),
    odd(
        "Overlapping kernels on one stream",
        changed(is_kernel, lambda event: event | {"dur": 400}, most=99),
        "All kept; busy time is the union.",
        met="perfetto#4280",
    ),
)

TIME: tuple[Case, ...] = (
    Case(
        "Kernels with `ts` 0 and `dur` 0",
        changed(is_kernel, lambda event: event | {"ts": 0, "dur": 0}),
        "Lost.",
        ("profile_time_out_of_range",),
        1,
        met="pytorch#188481",
    ),
    Case(
        "Most events with `ts` 0 and `dur` 0",
        changed(is_timed, lambda event: event | {"ts": 0, "dur": 0}, most=40),
        "Lost; the rest is read, at its own time.",
        ("profile_time_out_of_range", "profile_few_steps"),
        40,
        met="kineto#109",
    ),
    Case(
        "A start more than a day off",
        changed(is_op, shifted(1e11)),
        "The event is lost.",
        ("profile_time_out_of_range",),
        1,
        met="pytorch#192021",
    ),
    Case(
        "A time beyond 292 years",
        changed(is_op, lambda event: event | {"ts": 1e17}),
        "The event is lost.",
        ("damaged_time_out_of_range", "profile_time_missing"),
        1,
        met="tensorpack#819",
    ),
    Case(
        "Times since the start beside Unix times",
        changed(is_op, lambda event: event | {"ts": event["ts"] - START_US}, most=5),
        "The smaller part is lost.",
        ("profile_time_out_of_range",),
        5,
        met="tensorflow#72156",
    ),
    odd(
        "An end seconds in the future",
        changed(is_op, lambda event: event | {"dur": 9e6}),
        "Kept as recorded.",
        met="torch-spyre#3274",
    ),
    Case(
        "A duration of a day or more",
        changed(is_op, lambda event: event | {"dur": 1e11}),
        "The event is lost.",
        ("profile_time_out_of_range",),
        1,
    ),
    Case(
        "A negative duration",
        changed(is_op, lambda event: event | {"dur": -5}),
        "The event is lost.",
        ("profile_duration_negative",),
        1,
        met="catapult#1506",
    ),
    odd(
        "Unix times in microseconds with three decimals",
        changed(
            is_timed, lambda event: event | {"ts": f"{1_712_345_600_000_000 - START_US + event['ts']}.123"}, most=99
        ),
        "Exact to the nanosecond.",
        met="kineto#919",
    ),
    odd(
        "A kernel that begins before its launch",
        changed(is_kernel, shifted(-30), most=99),
        "Read as recorded: a delay of 0.",
        met="rocprofiler#84",
    ),
)

PARTS: tuple[Case, ...] = (
    odd(
        "No step markers",
        trace([event for event in events() if not event["name"].startswith("ProfilerStep")]),
        "Steps are inferred where launches or optimizer steps repeat; else the profile is one step.",
        ("profile_no_steps",),
    ),
    odd(
        "Launches without kernels",
        trace([event for event in events() if not is_kernel(event)]),
        "Times are the host's; nothing is said of idle devices.",
        ("profile_device_missing", "profile_host_unrecorded"),
    ),
    odd(
        "Every third launch is missing",
        trace([e for i, e in enumerate(events()) if e["name"] != "cudaLaunchKernel" or i % 3 != 1]),
        'Costs per step are "not determined".',
        ("profile_sampled",),
    ),
)

GROUPS: dict[str, tuple[Case, ...]] = {
    "Damaged text": TEXT,
    "Damaged or odd events": SHAPE,
    "Times": TIME,
    "Containers": CONTAINERS,
    "Parts that were not recorded": PARTS,
    "Other formats": OTHERS,
}


def cases() -> Iterable[Case]:
    """Every case."""
    return (case for group in GROUPS.values() for case in group)
