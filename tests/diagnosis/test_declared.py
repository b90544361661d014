"""What rules declare of themselves is true: their files, thresholds and pages."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import stepscope
from stepscope.cluster.rules import DECLARED, JOB_RULES, SHARED_LIMITS
from stepscope.diagnosis import untold
from stepscope.diagnosis.rule import SCOPES
from stepscope.diagnosis.rules import RULES

PACKAGE = Path(stepscope.__file__).parent
STATIC = PACKAGE / "web/static"
FILES: dict[str, ModuleType] = {file.RULE.id: file for file in (*RULES, *JOB_RULES)}  # type: ignore[misc]


def source(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def test_every_file_of_a_rule_is_listed_under_its_name() -> None:
    folders = [PACKAGE / "diagnosis/rules", PACKAGE / "cluster/rules"]
    names = {file.stem for folder in folders for file in folder.glob("*.py") if "\nRULE = " in source(file)}
    others = {file.stem for folder in folders for file in folder.glob("*.py")} - names
    assert names == set(DECLARED)
    assert others == {"__init__"}
    for rule_id, file in FILES.items():
        assert file.__name__.rpartition(".")[2] == rule_id
        assert not re.search(r'rule="', source(Path(str(file.__file__)))), f"{rule_id} gives findings another name"


@pytest.mark.parametrize("rule", DECLARED.values(), ids=DECLARED)
def test_what_a_rule_declares_is_whole_and_names_what_there_is(rule) -> None:
    for text in (rule.finds, rule.statement, rule.needs, rule.cure, rule.example):
        assert text[0].isupper() or text[0] in "`0123456789" or text.startswith("fp16"), text
        assert text.endswith("."), text
    assert rule.scope in SCOPES
    assert rule.pages
    assert set(rule.cures_part_of) <= set(DECLARED)
    assert set(rule.comes_before) <= set(DECLARED)
    assert (rule.scope == "job") == (rule.id in {file.RULE.id for file in JOB_RULES})
    for limit in rule.limits:
        assert getattr(FILES[rule.id], limit.name) == limit.value
        assert limit.name not in SHARED_LIMITS
    own = {limit.name for limit in rule.limits}
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+|TURNS)`", rule.statement))
    assert named <= own | set(rule.shared_limits)
    assert set(rule.shared_limits) <= SHARED_LIMITS.keys()


def test_idle_time_that_rules_tell_of_is_looked_for_where_no_rule_does() -> None:
    looked_for = {cause for kind in (*untold.KINDS, *untold.ON_HOST) for cause in kind.causes}
    assert {cause for rule in DECLARED.values() for cause in rule.tells} <= looked_for
    assert all(rule.tells for rule in DECLARED.values() if rule.tells_beside)


def test_findings_are_on_the_pages_that_their_rules_name() -> None:
    """Pages ask which findings are theirs by the names of pages and panels, and know no rule by its id."""
    asked = {
        file.stem: set(re.findall(r"related\(context, '(\w+)'\)", source(file))) for file in STATIC.glob("pages/*.js")
    }
    pages = {page for rule in DECLARED.values() for page in rule.pages}
    for page in pages:
        assert page in asked[page]
    assert set().union(*asked.values()) == pages
    texts = [source(file) for file in STATIC.rglob("*.js")]
    panels = {panel for text in texts for panel in re.findall(r"\.panel === '(\w+)'", text)}
    assert panels == {rule.panel for rule in DECLARED.values() if rule.panel}
    assert not [rule for rule in DECLARED if "_" in rule and any(f"'{rule}'" in text for text in texts)]
