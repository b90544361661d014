"""Kernels, roofline and utilisation as they are reported: figures of the analyses, absent ones absent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.report import document
from stepscope.report.sections import Section, sections
from tests.analysis.test_roofline import HALF_GEMM, RELU, facts_of_ops, product
from tests.report.test_schema import _errors


def made(facts: Facts) -> dict[str, Any]:
    report = json.loads(json.dumps(document.make(facts, diagnose(facts), [document.InputFile("trace.json", 1, 1)])))
    assert _errors(report) == []
    return report


def table(report: dict[str, Any], title: str) -> Section:
    return next(section for section in sections(report) if section.title == title)


def test_what_is_known_is_shown():
    facts = facts_of_ops(product(4096, HALF_GEMM, 2_000), ("aten::relu", [[1024, 1024]], ["float"], RELU, 5))
    report = made(facts)
    row = report["analyses"]["roofline"]["ops"][0]
    assert (row["op"], row["dims"], row["kind"], row["bound"]) == ("aten::mm", "[[4096,4096],[4096,4096]]", "gemm",
                                                                   "compute")  # fmt: skip
    shown = table(report, "Roofline by op and shapes")
    assert shown.rows[0][-5:-3] == ("68.7 TFLOP/s", "55.0 %")
    # More than memory delivers: marked, and the mark explained.
    assert shown.rows[1][-2].endswith("*")
    assert shown.note.startswith("* more than memory delivers")
    (share,) = table(report, "Model FLOPs utilisation (MFU)").rows
    assert share[-1] == "54.7 %"
    assert [row[0] for row in table(report, "Kernels by time").rows] == [HALF_GEMM, RELU]


def test_what_is_not_known_is_not_shown_as_nothing():
    report = made(facts_of_ops(product(4096, HALF_GEMM, 2_000), device="A card of the future"))
    row = report["analyses"]["roofline"]["ops"][0]
    assert (row["flops_share"], row["bound"], row["flops_per_s"]) == (None, None, pytest.approx(2 * 4096**3 / 2e-3))
    (share,) = table(report, "Model FLOPs utilisation (MFU)").rows
    assert share[-1] == "not determined: the device's peaks are not known"
