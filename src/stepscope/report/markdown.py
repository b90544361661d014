"""A report for a pull request or an issue, in GitHub's Markdown.

Names of a profile are untrusted: outside code everything that Markdown, HTML or GitHub (mentions, issue
numbers, links) would act on is escaped, and code fences are always longer than any run of backticks within.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from stepscope.regex import regex
from stepscope.report import bar, finding_phrases, gradients, phrases, proof
from stepscope.report.names import code_spans, shorten, visible
from stepscope.report.section import Section
from stepscope.units import format_ns, format_share

if TYPE_CHECKING:
    from stepscope.document.findings import FindingEntry
    from stepscope.document.profile import NoticeEntry
    from stepscope.document.report import Report as Document
    from stepscope.document.steps import SummaryEntry

_BAR_WIDTH = 80
_NAME_WIDTH = 100
_BREAK = "<!-- -->"
"""Invisible; keeps GitHub from seeing a mention, an issue number or a link."""
_ACTIVE = regex(r"([\\`*_\[\]<>&|~$])")
_REFERENCE = regex(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=www)(?=\.)")
_LINE_START = regex(r"^(\s*\d+(?=[.)](?:\s|$))|\s*(?=[#=+\-]))")


def render(document: Document, *, verbose: bool = False) -> str:
    """The report as Markdown; ``verbose`` adds the reasons, the evidence and every table, folded away."""
    lines = list(_top(document))
    told, untold = finding_phrases.told_and_untold(document)
    if not told:
        lines += [text(phrases.without_findings(document["summary"])), ""]
    for number, finding in enumerate(told, 1):
        lines += _finding(number, finding, document["summary"], verbose=verbose)
    if tried := proof.of_report(document):
        lines += [prose(tried.sentence) + (f" {code(tried.line)}" if tried.line else ""), ""]
    if verbose and told:
        lines += [
            *filter(None, [prose(finding_phrases.plan(document)), text(finding_phrases.replayed(document["whatif"]))]),
            "",
        ]
    lines += _notices(document["profile"]["notices"], finding_phrases.reasons(untold, all_titles=verbose))
    if verbose:
        from stepscope.report.sections import sections  # Declarations that a short report needs none of.

        for section in sections(document):
            lines += _folded(section)
    version = document["tool"]["version"]
    lines.append(f"<sub>stepscope {text(version)}</sub>")
    doubled = [line == "" == before for before, line in pairwise(["", *lines])]
    return "\n".join(line for line, again in zip(lines, doubled, strict=True) if not again) + "\n"


def text(raw: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return _LINE_START.sub(r"\1\\", _REFERENCE.sub(_BREAK, _ACTIVE.sub(r"\\\1", visible(raw))))


def code(raw: str, *, in_table: bool = False) -> str:
    """A code span; in a table a bar needs a backslash even inside code."""
    shown = visible(raw)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if shown[:1] in "` " or shown[-1:] in "` " else ""
    span = f"{fence}{pad}{shown}{pad}{fence}"
    return span.replace("|", "\\|") if in_table else span


def prose(line: str) -> str:
    """A line of prose whose `backticks` mark code."""
    return "".join(code(piece) if is_code else text(piece) for piece, is_code in code_spans(line))


def _top(document: Document) -> Iterator[str]:
    summary = document["summary"]
    first, *rest = phrases.header(document)
    yield f"### {prose(summary['verdict'])}"
    yield ""
    damage = phrases.damage(document)
    if damage:
        yield f"> **{text(damage)}**"
        yield ""
    yield " · ".join([code(first), *map(text, rest)])
    yield ""
    parts = bar.parts_of(summary)
    if parts and not phrases.is_partial(summary):
        widths = bar.cells([part.ns for part in parts], _BAR_WIDTH)
        of = "profile" if phrases.is_capture(summary) else "step"
        drawn = "".join(part.glyph * count for part, count in zip(parts, widths, strict=True))
        yield from ["```text", drawn, "```", ""]
        yield from [f"|   | part of the {of} | time | share |", "| --- | --- | ---: | ---: |"]
        for part in parts:
            side = "works" if part.busy else "waits"
            words = f"{code(part.glyph)} {text(part.words)}"
            yield f"| {side} | {words} | {format_ns(part.ns)} | {format_share(part.share)} |"
        yield ""
        if note := phrases.bar_note(document):
            yield from [text(note[0].upper() + note[1:] + "."), ""]
    figures = [(one.name, one.text) for one in (phrases.step_time(summary), *phrases.headlines(document))]
    for name, value in [*figures, *gradients.headlines(document)]:
        yield f"- {name}: {text(value)}"
    yield ""


def _finding(number: int, finding: FindingEntry, summary: SummaryEntry, *, verbose: bool) -> list[str]:
    lines = [f"#### {number}. {prose(finding['title'])}", ""]
    lines += [f"**{text(finding_phrases.saving(finding, summary))}** ({text(finding_phrases.trust(finding))})", ""]
    if verbose:
        lines += [*map(prose, finding["why"].splitlines()), ""]
    places = phrases.places(finding["where"])
    sites = finding_phrases.fix_set(finding)
    if sites:
        lines += ["Fix together:", "", *(f"- {prose(site)}" for site in sites)]
        places = []
    lines += [f"- {code(place)}" for place in places[: None if verbose else 3]]
    if len(places) > 3 and not verbose:
        lines.append(f"- and {len(places) - 3} more places")
    lines += ["", *_fix(finding["fix"]), ""]
    if verbose and finding["evidence"]:
        lines.append("Seen:")
        lines.append("")
        for item in finding["evidence"]:
            name = code(shorten(item["name"], _NAME_WIDTH))
            lines.append(f"- {format_ns(item['dur_ns'])} {name} at {format_ns(item['start_ns'])}")
        lines.append("")
    return lines


def _fix(fix: str) -> list[str]:
    """The remedy; runs of lines that start with four spaces become fenced code."""
    out: list[str] = []
    block: list[str] = []
    for line in [*fix.rstrip().splitlines(), ""]:
        if line.startswith("    "):
            block.append(visible(line[4:]))
            continue
        if block:
            runs = (len(run) for run in re.findall("`+", "\n".join(block)))
            fence = "`" * max(3, 1 + max(runs, default=0))
            out += ["", "\n".join([fence, *block, fence]), ""]
            block = []
        out.append(prose(line))
    return out[:-1]


def _notices(notices: list[NoticeEntry], untold: list[str]) -> list[str]:
    lines = [f"- ⚠ {prose(phrases.notice(item))}" for item in notices]
    lines += [f"- ? {prose(reason)}" for reason in untold]
    return [*lines, ""] if lines else []


def _folded(section: Section) -> list[str]:
    title = _REFERENCE.sub(_BREAK, html.escape(visible(section.title), quote=False))
    lines = ["<details>", f"<summary>{title}</summary>", ""]
    if section.note:
        lines += [text(section.note), ""]
    lines.append("| " + " | ".join(text(column.title) or " " for column in section.columns) + " |")
    lines.append("| " + " | ".join("---:" if column.numeric else "---" for column in section.columns) + " |")
    for row in section.rows:
        cells = (
            code(shorten(value, _NAME_WIDTH), in_table=True) if column.name else text(value)
            for column, value in zip(section.columns, row, strict=True)
        )
        lines.append("| " + " | ".join(cells) + " |")
    return [*lines, "", "</details>", ""]
