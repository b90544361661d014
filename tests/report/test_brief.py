"""A short report asks for no table behind it, and says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope import pipeline
from stepscope.report import terminal
from tests.kit.traces import OF_KINDS, REPOSITORY, real_trace

EXAMPLE = REPOSITORY / "examples" / "profiles" / "cpu_input_bound.json.gz"


def same(path: Path) -> None:
    """Whether short texts of a profile are those of its whole document."""
    profile = pipeline.open_profile(path)
    brief = profile.brief()
    text = terminal.render(brief, width=100)
    whole = profile.document()
    assert text == terminal.render(whole, width=100)
    assert {**whole, "analyses": brief["analyses"]} == brief
    assert list(brief["analyses"]) == ["breakdown"]


def test_the_short_texts_of_an_example_are_those_of_its_document():
    same(EXAMPLE)


@pytest.mark.parametrize("name", OF_KINDS)
def test_the_short_texts_of_a_real_trace_are_those_of_its_document(name: str):
    same(real_trace(name))


@pytest.mark.real
def test_several_devices_are_told_apart_in_the_short_text():
    same(real_trace("xplane/tpu_v6e_4_chips.xplane.pb"))


def test_a_short_report_works_no_table_out(monkeypatch, capsys):
    from stepscope import cli
    from stepscope.report import document

    asked = []
    monkeypatch.setattr(document, "whole", lambda *_: asked.append("all") or {})
    assert cli.main(["diagnose", str(EXAMPLE)]) == 0
    assert "step" in capsys.readouterr().out
    assert asked == []
