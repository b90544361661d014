"""The Markdown report: read back with a Markdown parser, so that escaping is judged by what comes out."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from stepscope.report import markdown
from tests.report import documents

_PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
_OWN_HTML = ("<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>", "<!-- -->")


def _tokens(text: str) -> list[Token]:
    return [leaf for token in _PARSER.parse(text) for leaf in (token, *(token.children or []))]


def _said(text: str) -> str:
    """What a reader sees."""
    said = ("text", "code_inline", "fence", "html_inline")
    return "".join(token.content for token in _tokens(text) if token.type in said)


def test_the_report_of_an_input_bound_profile():
    lines = markdown.render(documents.input_bound()).splitlines()
    assert lines[0].startswith("### The device waits for input data 27.7 % of each step: loading data")
    assert lines[2] == "`resnet50.pt.trace.json.gz` · PyTorch 2.4.0 · NVIDIA H100 80GB HBM3 · 6 steps, 4 used"
    assert "| waits | `░` waiting for input data | 55.3 ms | 27.8 % |" in lines
    assert "- step time: 199 ms on the device, median of 4 steps" in lines
    assert "**saves 55.3 ms of 199 ms per step, leaving 144 ms** (first-order, high confidence)" in lines
    assert "- ⚠ Only 4 complete steps: the spread is not known." in lines
    at = lines.index("DataLoader(dataset, num_workers=8, pin_memory=True, persistent_workers=True)")
    assert (lines[at - 1], lines[at + 1]) == ("```", "```")


def test_the_bar_is_as_long_as_it_says():
    lines = markdown.render(documents.healthy()).splitlines()
    assert len(lines[lines.index("```text") + 1]) == 80


def test_details_are_folded_and_only_there_when_asked_for():
    short, long = (markdown.render(documents.input_bound(), verbose=verbose) for verbose in (False, True))
    assert "<details>" not in short
    assert long.count("<details>") == long.count("</details>") == 11
    assert "| `aten::item` | 1 | 61.0 ms | 7.15 ms | `/home/ana/train.py:57` |" in long
    assert "loads in the training process" in long
    assert "loads in the training process" not in short


def test_nothing_found_and_damage_are_said():
    text = markdown.render(documents.damaged())
    assert "Nothing to fix was found: the device's own work sets the step time." in text
    assert "> **Part of this profile could not be read" in text


@pytest.mark.parametrize("verbose", [False, True])
def test_hostile_names_become_neither_html_nor_links_nor_headings(verbose: bool):
    rendered = markdown.render(documents.hostile(), verbose=verbose)
    tokens = _tokens(rendered)
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            rest = token.content
            for own in _OWN_HTML:
                rest = rest.replace(own, "")
            assert "<" not in rest
    kinds = {token.type for token in tokens}
    assert not kinds & {"link_open", "image", "s_open", "em_open"}
    headings = sum(token.type == "heading_open" for token in tokens)
    assert headings == 1 + 4
    assert "\x1b" not in rendered
    assert not any("@everyone" in token.content for token in tokens if token.type == "text")
    assert "[red]x[/red]\\x1b[31m\\u202e|" in _said(rendered)


@pytest.mark.parametrize(
    "name",
    ["a|b", "``` x", "`", "<img src=x>", "*a* _b_ ~~c~~", "[x](http://y)", "1. x", "- x", "a\\|b", "# <b>"],
)
def test_a_name_is_read_back_as_it_was(name: str):
    def content(text: str) -> str:
        shown = "".join(t.content for t in _tokens(text) if t.type in ("text", "code_inline", "text_special"))
        return shown.strip()

    assert content(markdown.text(name)) == name
    assert content(markdown.code(name)) == name
    table = f"| a |\n| --- |\n| {markdown.code(name, in_table=True)} |\n"
    assert content(table).removeprefix("a") == name


def test_code_in_a_fix_cannot_close_its_fence():
    document = documents.healthy()
    document["findings"] = [documents.finding("x", "t", fix="Do:\n    ```\n    # h1\nthen this")]
    tokens = _PARSER.parse(markdown.render(document))
    fences = [token.content for token in tokens if token.type == "fence" and token.info == ""]
    assert fences == ["```\n# h1\n"]
    assert not any(token.type == "heading_open" and token.tag == "h1" for token in tokens)
