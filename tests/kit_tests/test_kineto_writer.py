"""What the writer writes is JSON, holds every time exactly, and looks like what Kineto writes."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.events import Event, Thread
from tests.kit.kineto_writer import FORMS, Form, representable, write_kineto, zero_ns
from tests.kit.planted import CASES
from tests.kit.random_traces import random_traces
from tests.kit.some import some
from tests.kit.traces import real_trace
from tests.support import planted_case, planted_file

FINE = tuple(form for form in FORMS if form.generation in ("2023", "2025"))


def parsed(data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Root keys and events, decimals kept, by the standard library."""
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    root = json.loads(text, parse_float=Decimal)
    return ({}, root) if isinstance(root, list) else (root, root["traceEvents"])


def times(data: bytes) -> Counter[tuple[Decimal, Decimal | None]]:
    """Epoch start and duration in ns of everything but the profiler's own marks."""
    root, events = parsed(data)
    base = Decimal(root.get("baseTimeNanoseconds", 0))
    return Counter(
        (base + Decimal(event["ts"]) * 1000, Decimal(event["dur"]) * 1000 if "dur" in event else None)
        for event in events
        if event["ph"] in ("X", "i") and event["pid"] not in ("Spans", "Traces", "")
    )


def wanted(events: list[Event], form: Form) -> Counter[tuple[Decimal, Decimal | None]]:
    zero = zero_ns(form)
    return Counter(
        (Decimal(zero + event.start_ns), None if event.dur_ns is None else Decimal(event.dur_ns))
        for event in events
        if representable(event, form)
    )


@given(random_traces(grain_ns=1000), st.sampled_from(FORMS))
def test_times_are_exact_in_every_form(events: list[Event], form: Form) -> None:
    assert times(write_kineto(events, form)) == wanted(events, form)


@given(random_traces(grain_ns=1), st.sampled_from(FINE))
def test_times_are_exact_to_the_nanosecond(events: list[Event], form: Form) -> None:
    assert times(write_kineto(events, form)) == wanted(events, form)


@pytest.mark.parametrize("name", some(CASES, 7))
def test_every_planted_case_can_be_written(name: str) -> None:
    events = list(planted_case(name).events)
    for form in (Form(generation="2021"), Form(vendor="amd")):
        assert times(write_kineto(events, form)) == wanted(events, form)


def test_a_nanosecond_does_not_fit_whole_microseconds() -> None:
    with pytest.raises(ValueError, match="microsecond"):
        write_kineto([Event("cpu_op", "aten::add", Thread(), 1, 1000)], Form(generation="2022"))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_launches_and_arrows_can_be_followed(form: Form) -> None:
    _, events = parsed(write_kineto(CASES["healthy"]().events, form))
    flows: dict[tuple[str, int], list[str]] = defaultdict(list)
    for event in events:
        if event["ph"] in "sf":
            flows[event["name"], event["id"]].append(event["ph"])
    launch, backward = ("launch", "fwd_bwd") if form.generation == "2021" else ("ac2g", "fwdbwd")
    assert Counter(name for name, _ in flows) == {launch: 8 * 14, backward: 8 * 4}
    assert set(map(tuple, map(sorted, flows.values()))) == {("f", "s")}
    ids = {number for name, number in flows if name == launch}
    assert ids == {event["args"]["correlation"] for event in events if event.get("cat", "").lower() == "kernel"}


def test_device_work_names_the_op_that_launched_it() -> None:
    _, events = parsed(planted_file("healthy"))
    ops = {event["args"]["External id"]: event["name"] for event in events if event.get("cat") == "cpu_op"}
    of = {
        event["name"].rsplit("_", 1)[0]: ops[event["args"]["External id"]]
        for event in events
        if event.get("cat") == "kernel"
    }
    assert of == {
        "forward_gemm": "aten::addmm",
        "backward_gemm": "aten::mm",
        "multi_tensor_apply": "aten::_foreach_add_",
    }


def test_frames_know_their_parents() -> None:
    _, events = parsed(planted_file("healthy"))
    frames = {event["args"]["Python id"]: event for event in events if event.get("cat") == "python_function"}
    chains = set()
    for frame in frames.values():
        names = [frame["name"]]
        while frame["args"]["Python parent id"] is not None:
            frame = frames[frame["args"]["Python parent id"]]
            names.append(frame["name"])
        chains.add(tuple(names))
    assert (
        "nn.Module: Net_0",
        "torch/nn/modules/module.py(1773): _call_impl",
        "train.py(40): train_step",
        "train.py(88): main",
        "train.py(120): <module>",
    ) in chains
    assert all(chain[-1] == "train.py(120): <module>" for chain in chains)


def test_in_2021_the_frames_are_call_stacks() -> None:
    _, events = parsed(write_kineto(CASES["healthy"]().events, Form(generation="2021")))
    assert not [event for event in events if event.get("cat") == "python_function"]
    stacks = {event["args"]["Call stack"] for event in events if event["name"] == "aten::addmm"}
    assert stacks == {
        "torch/nn/modules/module.py(1773): _call_impl;train.py(40): train_step;train.py(88): main;"
        "train.py(120): <module>"
    }


LIKE = [
    pytest.param(("v100_resnet50_workers0",), Form(generation="2021"), id="2021", marks=pytest.mark.slow),
    pytest.param(
        ("a100_alexnet_sync", "v100_two_ranks_rank1"), Form(generation="2022"), id="2022", marks=pytest.mark.slow
    ),
    pytest.param(("h100_qwen05b", "mi300_resnet_checkpointing_rank0_of_8"), Form(), id="2025"),
    pytest.param(("mi300_resnet_checkpointing_rank0_of_8",), Form(vendor="amd"), id="amd"),
]
"""Real files that show how a generation writes."""

REWRITTEN = ("h100_qwen05b",)
"""Files some tool wrote anew, with keys in an order of its own."""


@pytest.mark.real
@pytest.mark.parametrize(("names", "form"), LIKE)
def test_keys_and_arguments_are_those_of_real_files(names: tuple[str, ...], form: Form) -> None:
    known_keys: dict[Any, set[tuple[str, ...]]] = defaultdict(set)
    known_args: dict[Any, set[str]] = defaultdict(set)
    for name in names:
        keys, args = _real_shapes(name)
        for kind in keys:
            known_args[kind] |= args[kind]
            known_keys[kind] |= set() if name in REWRITTEN else keys[kind]
    keys, args = _shapes(
        parsed(
            write_kineto(
                [
                    event
                    for case in ("exposed_copy", "sync_bound", "python_between_steps")
                    for event in planted_case(case).events
                ],
                form,
            )
        )[1]
    )
    common = keys.keys() & known_args.keys()
    assert {("X", "Operator"), ("X", "cpu_op")} & common
    assert {("X", "Kernel"), ("X", "kernel")} & common
    for kind in common:
        assert not known_keys[kind] or keys[kind] <= known_keys[kind], kind
        assert args[kind] <= known_args[kind], kind


@cache
def _real_shapes(name: str) -> tuple[dict[Any, set[tuple[str, ...]]], dict[Any, set[str]]]:
    return _shapes(parsed(real_trace(f"kineto/{name}.json.gz").read_bytes())[1])


def _shapes(events: list[dict[str, Any]]) -> tuple[dict[Any, set[tuple[str, ...]]], dict[Any, set[str]]]:
    """Per phase and category, the key sequences and all argument names."""
    keys: dict[Any, set[tuple[str, ...]]] = defaultdict(set)
    args: dict[Any, set[str]] = defaultdict(set)
    for event in events:
        kind = event["ph"], event.get("cat")
        keys[kind].add(tuple(event))
        args[kind] |= event.get("args", {}).keys()
    return keys, args


@pytest.mark.real
def test_the_text_of_a_release_is_laid_out_like_a_real_file() -> None:
    """Where lines break, whatever stands in them."""
    real = gzip.decompress(real_trace("kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz").read_bytes()).decode()
    made = write_kineto(CASES["healthy"]().events, Form(vendor="amd")).decode()
    assert _layout(made) <= _layout(real)


def _layout(text: str) -> set[tuple[int, tuple[str, ...]]]:
    """Indent and keys of the distinct lines of ``traceEvents``, arguments left out."""
    body = text.split('"traceEvents": [', 1)[1].split("\n  ],", 1)[0]
    return {
        (len(line) - len(line.lstrip()), tuple(re.findall(r'"(\w+)":', line)))
        for line in body.splitlines()
        if not line.startswith("      ")
    }
