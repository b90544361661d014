"""The one-file report: everything inside, nothing that a name could break out of."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

import stepscope
from stepscope.cli import stepscope as command
from stepscope.errors import UsageError
from stepscope.report import json_
from stepscope.report.schema import load
from stepscope.units import format_ns
from stepscope.web import pack as packs
from stepscope.web.assemble import ShownRun, html_file, json_text
from tests.web.reports import EXAMPLE, EXAMPLES, hostile_profile

RUN = re.compile(r'<script type="application/json" class="run">(.*?)</script>', re.DOTALL)
PACK = re.compile(r'<script type="application/octet-stream" class="pack" data-run="(\d+)">([^<]*)</script>')
CODE = re.compile(r"<script>(.*?)</script>", re.DOTALL)


@pytest.fixture(scope="module")
def text() -> str:
    return stepscope.open(EXAMPLE).html()


def test_the_report_inside_is_the_json_report(text: str) -> None:
    profile = stepscope.open(EXAMPLE)
    (found,) = RUN.findall(text)
    data = json.loads(found)
    jsonschema.validate(data["report"], load())
    assert data["report"] == json.loads(json_.render(profile.document()))
    mean = profile.document()["summary"]["step_time_ns"]["mean"]
    assert data["words"]["step_time"][:2] == ["step time", format_ns(mean)], "that of the verdict and of the bar"
    assert data["title"] == EXAMPLE.name


def test_the_pack_inside_is_the_pack(text: str) -> None:
    chunks = PACK.findall(text)
    assert {run for run, _ in chunks} == {"0"}
    assert b"".join(base64.b64decode(chunk) for _, chunk in chunks) == packs.pack(stepscope.open(EXAMPLE))


def test_a_large_pack_is_cut_into_pieces_that_join() -> None:
    pack = bytes(range(256)) * 40_000
    document = stepscope.open(EXAMPLE).document()
    chunks = PACK.findall(html_file([ShownRun("a", document, b"one"), ShownRun("b", document, pack)]))
    assert [run for run, _ in chunks] == ["0"] + ["1"] * 4
    assert b"".join(base64.b64decode(chunk) for run, chunk in chunks if run == "1") == pack


def test_the_policy_lets_its_own_script_run_and_nothing_else(text: str) -> None:
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (code,) = CODE.findall(text)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_nothing_is_fetched(text: str) -> None:
    page = RUN.sub("", PACK.sub("", text))
    assert re.findall(r"(?:src|href)=\"(?!#)[^\"]*\"", page) == []
    assert re.findall(r"https?://(?!www\.w3\.org/)[^\s'\"`]+", page) == []


def test_names_cannot_end_their_element(tmp_path: Path) -> None:
    text = stepscope.open(hostile_profile(tmp_path)).html()
    assert text.count("<script") == text.count("</script>")
    assert "window.hacked = 1</script>" not in text
    assert "<title>&lt;b&gt;hostile &amp; &#x27;named&#x27;.json · stepscope</title>" in text
    assert json.loads(json_text(["</script>", "<!--", "\u2028", "\ud800"])) == ["</script>", "<!--", "\u2028", "\ud800"]
    assert "<" not in json_text("</script><!--")


def test_the_command_writes_one_page_of_all_profiles(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    paths = [str(EXAMPLES / name) for name in ("cpu_input_bound.json.gz", "cpu_input_fixed.json.gz")]
    result = CliRunner().invoke(command, ["diagnose", *paths, "--format", "html", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert [json.loads(found)["title"] for found in RUN.findall(out.read_text(encoding="utf-8"))] == [
        "cpu_input_bound.json.gz",
        "cpu_input_fixed.json.gz",
    ]


def test_html_needs_a_file() -> None:
    with pytest.raises(UsageError, match=r"-o report\.html"):
        CliRunner().invoke(command, ["diagnose", str(EXAMPLE), "--format", "html"], catch_exceptions=False)
