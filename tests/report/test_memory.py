"""Memory in the report: the figures, true to the schema, and the tables of the long report."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.report import document, schema
from stepscope.report.memory_sections import memory
from stepscope.report.section import Section
from tests.kit.builder import TraceDrawing
from tests.kit.events import US
from tests.kit.ledger import Ledger
from tests.support import facts_of

MIB = 1 << 20


def using() -> Facts:
    drawing = TraceDrawing()
    ledger = Ledger(drawing, in_use=100 * MIB, reserved=200 * MIB)
    drawing.step(7, 0, 1_000)
    drawing.annotation("forward", 0, 500)
    drawing.python("train.py(31): forward", 10, 400)
    drawing.host("aten::linear", 20, 100)
    block = ledger.take(30, 60 * MIB)
    ledger.give(40, ledger.take(35, 40 * MIB))
    ledger.give(700, block)
    drawing.kernel(drawing.launch(100), "k", 110, 800)
    return facts_of(drawing.events())


def reported(facts: Facts) -> dict[str, Any]:
    made = json.loads(json.dumps(document.make(facts, diagnose(facts), [document.InputFile("profile", None, None)])))
    jsonschema.Draft202012Validator(schema.load()).validate(made)
    found: dict[str, Any] = made["analyses"]["memory"]
    return found


def test_the_figures_of_one_device():
    (pool,) = reported(using())["pools"]
    assert (pool["device"], pool["on_host"], pool["basis"], pool["events"], pool["blocks"]) == (
        0,
        False,
        "recorded",
        4,
        2,
    )
    peak = pool["peak"]
    assert (peak["time_ns"], peak["step"], peak["allocated_bytes"]) == (35 * US, 0, 200 * MIB)
    assert peak["by_category"] == {
        "before_profile": 100 * MIB,
        "activation": 60 * MIB,
        "gradient": 0,
        "optimizer_state": 0,
        "temporary": 40 * MIB,
        "unknown": 0,
    }
    assert [(place["category"], place["bytes"], place["where"]["line"]) for place in peak["places"]] == [
        ("activation", 60 * MIB, 31),
        ("temporary", 40 * MIB, 31),
    ]
    line = pool["timeline"]
    assert line["time_ns"] == [30 * US, 35 * US, 40 * US, 700 * US]
    assert line["allocated_bytes"] == [160 * MIB, 200 * MIB, 160 * MIB, 100 * MIB]
    assert line["by_category"]["temporary"] == [0, 40 * MIB, 0, 0]
    assert line["reserved_bytes"] == [200 * MIB] * 4
    assert (pool["growth"], pool["fragmentation"]["free_bytes"]) == (None, 0)


@pytest.mark.parametrize(("header", "said"), [("PyTorch", "profile_memory=True"), (None, "Record allocations")])
def test_where_memory_was_not_recorded_it_is_said_what_records_it(header: str | None, said: str):
    drawing = TraceDrawing()
    drawing.kernel(drawing.launch(0), "k", 10, 10)
    facts = facts_of(drawing.events())
    facts = replace(facts, trace=replace(facts.trace, info=replace(facts.trace.info, framework=header)))
    found = reported(facts)
    assert said in found["not_recorded"]
    assert (found["pools"], found["allocator_calls"]) == ([], None)
    assert not any(section.rows for section in memory(found, {}))


def tables(found: dict[str, Any]) -> dict[str, Section]:
    return {section.title: section for section in memory(found, {0: "7"})}


def test_the_tables():
    found = tables(reported(using()))
    assert found["Memory"].rows == [
        ("device 0", "200 MiB", "35.0 µs", "7", "200 MiB", "0 %", "–", "79.8 GiB", "80.0 GiB", "–"),
    ]
    assert found["Memory in use at the peak"].rows == [
        ("device 0", "from before the profile", "100 MiB", "50.0 %"),
        ("device 0", "activations", "60.0 MiB", "30.0 %"),
        ("device 0", "temporaries", "40.0 MiB", "20.0 %"),
    ]
    places = found["What was allocated inside the profile and in use at the peak"].rows
    assert places == [
        ("device 0", "activations", "60.0 MiB", "1", "aten::linear", "–", "–", "train.py:31+"),
        ("device 0", "temporaries", "40.0 MiB", "1", "aten::linear", "–", "–", "train.py:31+"),
    ]


def test_what_a_host_holds_is_told_only_where_there_is_no_device():
    found = reported(using())
    host = found["pools"][0] | {"device": None, "on_host": True, "basis": "at_least", "allocator": "cpu"}
    both = tables(found | {"pools": [*found["pools"], host]})
    assert [row[0] for row in both["Memory"].rows] == ["device 0"]
    assert both["Memory"].note == ""
    alone = tables(found | {"pools": [host]})
    assert [row[:2] for row in alone["Memory"].rows] == [("the host (cpu)", "≥ 200 MiB")]
    assert alone["Memory"].note == "≥: without what was allocated before the profile"
