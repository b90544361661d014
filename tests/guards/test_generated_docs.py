"""The pages that are generated from the code are in step with it, and what they promise of odd files holds."""

from __future__ import annotations

import ast
import json
import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.kit.some import some

import stepscope
from stepscope import cli
from stepscope.analysis.categories import Category
from stepscope.cli import COMMANDS
from stepscope.cluster.rules import DECLARED
from stepscope.formats.find import find
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.report.schema import load
from stepscope.trace.tables import TABLES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def run(script: str) -> dict[str, Any]:
    """The names of a script of docs/, which finds its modules as ``python docs/generate.py`` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        return runpy.run_path(str(DOCS / script))


ODD = run("generator/odd_inputs.py")
CASES = list(ODD["cases"]())
PLACES = run("generator/odd_containers.py")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Page name to text, as docs/generate.py makes them."""
    made: dict[str, str] = run("generate.py")["pages"]()
    return made


def test_generated_pages_are_in_step_with_the_code(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"docs/{name} is stale: run make docs"


# What follows reads the pages back, so that a generator which drops rows is noticed.


def sections(page: str) -> dict[str, str]:
    """Text of each second-level section by its title."""
    return {part.split("\n", 1)[0].strip("` "): part for part in page.split("\n## ")[1:]}


def firsts(text: str) -> list[str]:
    """The first cell of each row whose first cell begins with code."""
    return [line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")]


def test_the_tables_page_has_every_column_or_at_least_the_table(pages: dict[str, str]) -> None:
    parts = sections(pages["tables.md"])
    few = firsts(parts.pop("Of few profiles"))
    assert sorted([*parts, *few]) == sorted(TABLES)
    for name, part in parts.items():
        assert firsts(part) == list(TABLES[name].__dataclass_fields__)


def test_the_categories_page_defines_every_category_once(pages: dict[str, str]) -> None:
    assert sorted(firsts(pages["categories.md"])) == sorted(map(str, Category))
    parts = sections(pages["categories.md"])
    for name in firsts(parts["The device works"]):
        assert LABELS[name].busy
    for name in firsts(parts["The device is idle"]):
        assert not LABELS[name].busy
    for label in LABELS.values():
        assert f"| {label.words} |" in pages["categories.md"]


def test_the_rules_page_has_every_rule_in_a_line_that_leads_to_its_file(pages: dict[str, str]) -> None:
    listed = re.findall(r"^\| \[(\w+)\]\((.+?)\) \| .+\. \|$", pages["rules.md"], re.MULTILINE)
    assert sorted(rule for rule, _ in listed) == sorted(DECLARED)
    assert all((DOCS / file).is_file() for _, file in listed)


def test_every_limit_of_more_than_a_rule_has_its_line(pages: dict[str, str]) -> None:
    from generator.rules import BOUNDS, LIMITS, told_rooms

    own = [limit.name for rule in DECLARED.values() for limit in rule.limits]
    shared, told = (
        [name for room in rooms for name, kind in room.__annotations__.items() if kind == "Final"]
        for rooms in (LIMITS, told_rooms())
    )
    assert len(set(shared + own)) == len(shared + own), "one name of two thresholds"
    assert sorted(firsts(pages["limits.md"])) == sorted(name for name in told if not BOUNDS.search(name))
    assert "|  |" not in pages["limits.md"]


def test_the_command_line_page_has_every_option(pages: dict[str, str]) -> None:
    parts = sections(pages["cli.md"])
    for command in COMMANDS:
        part = parts[f"stepscope {command.name}"]
        for parameter in command.params:
            for name in parameter.opts if parameter.param_type_name == "option" else ():
                assert f"`{name}" in part, f"{command.name} {name}"


def test_the_schema_page_has_every_key_of_what_it_tells(pages: dict[str, str]) -> None:
    schema, parts = load(), sections(pages["report-schema.md"])
    told = {"The document": schema} | {name: of for name, of in schema["$defs"].items() if name in parts}
    assert list(parts) == list(told)
    for name, of in told.items():
        assert re.findall(r"^\| \[?`(\w+)`", parts[name], re.MULTILINE) == list(of["properties"]), name
    assert {"summary", "finding", "step", "accounting_row", "profile", "analyses"} <= set(parts)


def test_the_schema_says_what_every_key_means() -> None:
    objects = [of for of in load()["$defs"].values() if "properties" in of]
    assert len(objects) > 90
    assert all(told["description"].endswith(".") for of in objects for told in of["properties"].values())


def diagnose(
    data: bytes | dict[str, bytes], folder: Path, capsys: pytest.CaptureFixture[str], form: str = "json"
) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the command on a file, or on a folder of files."""
    path = folder / "trace.json"
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        for name, content in data.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
    status = cli.main(["diagnose", str(path), "--format", form])
    return status, *capsys.readouterr()


def codes(document: dict[str, Any]) -> Counter[str]:
    """The codes of the notices."""
    return Counter(notice["code"] for notice in document["profile"]["notices"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the file that odd ones are made of."""
    path = tmp_path_factory.mktemp("whole") / "trace.json"
    path.write_bytes(ODD["TRACE"])
    return stepscope.open(path).document()


@pytest.mark.parametrize("case", some(CASES, 45), ids=lambda case: case.what)
def test_an_odd_file_leads_to_what_the_page_says(
    case: Any, whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = diagnose(case.data, tmp_path, capsys)
    document = json.loads(out)
    short = Counter(["profile_too_short"])  # toy files of other formats are: no oddity
    assert codes(document) - codes(whole) - short == Counter(case.notices)
    assert status == case.status
    assert document["profile"]["complete"] is (status == 0)
    rows = dict(document["profile"]["events"])
    assert rows.pop("total") - sum(rows.values()) == case.lost
    for notice in document["profile"]["notices"]:
        assert not notice["code"].startswith("damaged_") or "first at byte" in notice["text"]


@pytest.mark.parametrize("refused", PLACES["REFUSED"], ids=lambda refused: refused.what)
def test_what_is_no_profile_is_refused(refused: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = diagnose(refused.data, tmp_path, capsys)
    assert (status, out) == (1, "")
    assert refused.words in err
    assert len(err.splitlines()) == 1 or not isinstance(refused.data, bytes)


@pytest.mark.parametrize("place", PLACES["FOLDERS"], ids=lambda place: place.what)
def test_of_a_folder_is_read_what_the_page_says(place: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = diagnose(place.files, tmp_path, capsys, "text")
    assert status == place.status
    found = find(str(tmp_path / "trace.json"))
    assert [str(source.path.relative_to(tmp_path / "trace.json")) for source in found.sources] == list(place.read)
    assert out.count("-v shows everything") == (1 if place.together else len(place.read))
    assert place.says in err
    assert bool(place.says) == bool(err)


def test_the_undamaged_file_is_read_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Else a case that changes nothing would pass."""
    status, out, _ = diagnose(ODD["TRACE"], tmp_path, capsys)
    assert status == 0
    assert json.loads(out)["profile"]["events"]["total"] == len(ODD["events"]())
    assert all(case.data != ODD["TRACE"] for case in CASES)


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in sorted(DOCS.rglob("*.md")):
        for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
            found = (page.parent / target).resolve() if target else page
            if not found.exists() or (anchor and anchor not in anchors(found)):
                broken.append(f"{page.relative_to(DOCS)}: {target}#{anchor}")
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_code_that_needs_pytorch_is_at_least_python() -> None:
    """Blocks fenced as ``py`` in the guides need a framework, so that test_docs_commands.py does not run them."""
    found = 0
    for page in sorted((DOCS / "guides").glob("*.md")):
        for body in re.findall(r"^```py\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            ast.parse(body)
            found += 1
    assert found
