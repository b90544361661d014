"""``stepscope rules`` tells what rules declare."""

from __future__ import annotations

import json

import pytest

from stepscope import cli
from stepscope.cluster.rules import DECLARED
from stepscope.diagnosis.rule import flowing


def test_every_rule_is_listed_in_the_order_of_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["rules"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == list(DECLARED)
    assert cli.main(["rules", "--format", "json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == list(DECLARED)


@pytest.mark.parametrize("name", ["launch_bound", "launch_bound.2"])
def test_one_is_explained_by_its_name_or_that_of_a_finding(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", name]) == 0
    text = flowing(capsys.readouterr().out)
    rule = DECLARED["launch_bound"]
    for said in (rule.finds, rule.statement, rule.needs, rule.cure, rule.example):
        assert flowing(said) in text
    assert "LAUNCH_SHARE_RECORDED = 10.0 %: `LAUNCH_SHARE` where stacks" in text
    assert "LAUNCH_SHARE = 5.0 %" in text
    assert "LAUNCH_GAP_NS = 1.00 ms" in text


def test_a_rule_that_there_is_not_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "launch"]) == 2
    assert "there is no rule 'launch'; `stepscope rules` lists them" in capsys.readouterr().err
