"""A report for a terminal: the diagnosis on one screen, or with every table behind it.

Nothing is computed here beyond the bar's cells. Names of a profile are untrusted: they only ever become
``rich.text.Text`` after :func:`names.visible`, never markup.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stepscope.report import bar, finding_phrases, gradients, phrases, proof
from stepscope.report.columns import folded, laid_out
from stepscope.report.names import code_spans, shorten, shorten_path, visible
from stepscope.report.section import Section
from stepscope.units import format_ns, format_share

if TYPE_CHECKING:
    from stepscope.document.findings import EvidenceEntry, FindingEntry, WhereEntry
    from stepscope.document.profile import NoticeEntry
    from stepscope.document.report import Report as Document
    from stepscope.document.steps import SummaryEntry

_NOTICES_SHORT = 4
_FIX_LINES_SHORT = (4, 1)
"""Lines of the remedy shown of each finding that is told in full."""
_WIDEST_TEXT = 110
"""Sentences wrap here on very wide terminals: longer lines are hard to read."""
_TWO_COLUMNS = 92
"""From this width on the bar's legend puts working and waiting side by side."""


def render(document: Document, *, width: int = 100, color: bool = False, verbose: bool = False) -> str:
    """The report as text ``width`` cells wide, with ANSI styles only where ``color`` is set."""
    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=max(width, 40),
        force_terminal=color,
        color_system="standard" if color else None,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    parts = _verbose(document, console.width) if verbose else _short(document, console.width)
    for part in parts:
        console.print(part, crop=False)
    # rich fills cells up with spaces, which are a nuisance in a file or a pasted log.
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _short(document: Document, width: int) -> Iterator[RenderableType]:
    yield from _top(document, width, verbose=False)
    told, untold = finding_phrases.told_and_untold(document)
    if not told:
        yield Text("")
        good = phrases.is_healthy(document["summary"]) and document["profile"]["complete"]
        yield _paragraph(phrases.without_findings(document["summary"]), "green" if good else "")
    full = len(_FIX_LINES_SHORT)
    for number, finding in enumerate(told[:full], 1):
        yield Text("")
        yield _finding(number, finding, document, verbose=False)
    yield from _more_findings(told[full:], full + 1, document["summary"])
    yield from _short_notices(document["profile"]["notices"], untold)
    yield Text("")
    yield from _proof(document)
    yield Text("-v shows everything behind this; --format json or markdown writes it down", style="dim")


def _verbose(document: Document, width: int) -> Iterator[RenderableType]:
    yield from _top(document, width, verbose=True)
    told, untold = finding_phrases.told_and_untold(document)
    if not told:
        yield Text("")
        yield _paragraph(phrases.without_findings(document["summary"]))
    for number, finding in enumerate(told, 1):
        yield Text("")
        yield _finding(number, finding, document, verbose=True)
    if told:
        yield Text("")
        yield from map(_paragraph, filter(None, [finding_phrases.plan(document)]))
        yield from _proof(document)
        yield _paragraph(finding_phrases.replayed(document["whatif"]), "dim")
    if untold:
        yield _heading("Could not be told from this profile")
        for reason, alike in finding_phrases.alike(untold).items():
            if len(alike) == 1:
                yield _untold(alike[0])
                continue
            yield _marked("?", _Narrow(_prose(reason)))
            for finding in alike:
                yield _coded(" ", finding["title"], finding["id"])
    notices = document["profile"]["notices"]
    if notices:
        yield _heading("Notices")
        for item in notices:
            yield _coded("!", phrases.notice(item), item["code"])
    from stepscope.report.sections import sections  # Declarations that a short report needs none of.

    for section in sections(document):
        yield from _section(section, width)


def _top(document: Document, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    summary = document["summary"]
    first, *rest = phrases.header(document)
    yield folded(" · ".join([shorten_path(first, max(20, width // 2)), *rest]), "dim")
    damage = phrases.damage(document)
    if damage:
        yield _paragraph(f"! {damage}", "bold red")
    yield _paragraph(summary["verdict"], "bold")
    yield Text("")
    yield _pair("step time", phrases.step_time(summary).text)
    parts = bar.parts_of(summary)
    if parts and not phrases.is_partial(summary):
        yield _bar(parts, width)
        yield _legend(parts, width)
        if note := phrases.bar_note(document):
            yield Text(f"{'':6}{note}", style="dim")
    figures = [(one.name, one.text) for one in phrases.headlines(document)]
    for name, value in [*figures, *gradients.headlines(document, verbose=verbose)]:
        yield _pair(name, value)


def _proof(document: Document) -> Iterator[RenderableType]:
    """How to try the cures; the command is one line however wide, to be pasted."""
    if told := proof.of_report(document):
        yield _paragraph(told.sentence, "dim")
        if told.line:
            yield Group(Text(f"    {visible(told.line)}", style="cyan", no_wrap=True, overflow="ignore"))


def _paragraph(text: str, style: str = "") -> RenderableType:
    return _Narrow(_prose(text, style))


def _prose(text: str, style: str = "") -> Text:
    """One line of prose, wrapped, in which `backticks` mark code."""
    out = Text(style=style, overflow="fold")
    for piece, is_code in code_spans(visible(text)):
        out.append(piece, style="cyan" if is_code else "")
    return out


class _Narrow:
    """Holds text to a readable width on very wide terminals."""

    def __init__(self, body: RenderableType) -> None:
        self.body = body

    def __rich_console__(self, console: Console, options: Any) -> Iterator[RenderableType]:
        yield Padding(self.body, (0, max(0, options.max_width - _WIDEST_TEXT), 0, 0))


def _pair(name: str, value: str) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=14)
    grid.add_column(overflow="fold")
    grid.add_row(Text(name, style="dim"), folded(value, "bold" if name == "step time" else ""))
    return grid


def _bar(parts: list[bar.BarPart], width: int) -> Text:
    out = Text()
    for part, count in zip(parts, bar.cells([part.ns for part in parts], width), strict=True):
        out.append(part.glyph * count, style=part.colour)
    return out


def _legend(parts: list[bar.BarPart], width: int) -> RenderableType:
    columns = [
        _legend_side(title, [part for part in parts if part.busy is busy])
        for title, busy in (("works", True), ("waits", False))
        if any(part.busy is busy for part in parts)
    ]
    if width < _TWO_COLUMNS or len(columns) < 2:
        return Group(*columns)
    grid = Table.grid(padding=(0, 4, 0, 0))
    grid.add_row(*columns)
    return grid


def _legend_side(title: str, parts: list[bar.BarPart]) -> Table:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=5)
    grid.add_column()
    grid.add_column(overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    for at, part in enumerate(parts):
        look = Text(part.glyph * 2, style=part.colour)
        head = Text("" if at else title, style="dim")
        grid.add_row(head, look, Text(part.words), Text(format_ns(part.ns)), Text(format_share(part.share)))
    return grid


def _finding(number: int, finding: FindingEntry, document: Document, *, verbose: bool) -> RenderableType:
    saving = folded(finding_phrases.saving(finding, document["summary"]), "bold green")
    saving.append(f" ({finding_phrases.trust(finding)})", style="not bold dim")
    body: list[RenderableType] = [saving]
    if verbose:
        body += [_paragraph(line) for line in finding["why"].splitlines()]
    sites = finding_phrases.fix_set(finding)
    if sites:
        body += _sites(sites, None if verbose else 4)
    else:
        body += _places(finding["where"], None if verbose else 4 - number)
    if finding["fix"]:
        body.append(_fix(finding["fix"], None if verbose else _FIX_LINES_SHORT[number - 1]))
    if verbose:
        body += _evidence(finding["evidence"], phrases.step_names(document))
        body.append(folded(f"finding {finding['id']}, {finding['basis']}", "dim"))
    return _marked(f"{number}.", Group(_prose(finding["title"], "bold"), *body))


def _marked(mark: str, body: RenderableType) -> RenderableType:
    """A body that hangs behind its mark: a number, ``!`` or ``?``."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(mark, style="bold"), body)
    return grid


def _places(places: list[WhereEntry], most: int | None) -> list[RenderableType]:
    lines = phrases.places(places)
    shown = lines[:most]
    if len(lines) > len(shown):
        shown[-1] += f", and {len(lines) - len(shown)} more"
    return [_hanging("where" if at == 0 else "", folded(line)) for at, line in enumerate(shown)]


def _sites(lines: list[str], most: int | None) -> list[RenderableType]:
    """What must be fixed together."""
    shown = lines[:most]
    if len(lines) > len(shown):
        shown[-1] += f", and {len(lines) - len(shown)} more"
    return [_hanging("all" if at == 0 else "", _prose(line)) for at, line in enumerate(shown)]


def _fix(fix: str, most: int | None) -> RenderableType:
    """The remedy; lines that start with four spaces are code and keep their shape."""
    lines = fix.rstrip().splitlines()
    shown = lines[:most]
    body: list[RenderableType] = [
        Padding(folded(line[4:], "cyan"), (0, 0, 0, 4)) if line.startswith("    ") else _paragraph(line)
        for line in shown
    ]
    if len(lines) > len(shown):
        body.append(Text("… (-v shows the rest)", style="dim"))
    return _hanging("fix", Group(*body))


def _hanging(name: str, body: RenderableType) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=5)
    grid.add_column(overflow="fold")
    grid.add_row(Text(name, style="dim"), body)
    return grid


def _untold(finding: FindingEntry) -> RenderableType:
    """What could not be told, why it is thought of all the same, and what to do about it."""
    head = _prose(f"{finding['title']}: {finding['not_determined']}")
    head.append(f" ({visible(finding['id'])})", style="dim")
    return _marked("?", Group(_Narrow(head), _paragraph(finding["why"]), _fix(finding["fix"], None)))


def _coded(mark: str, text: str, code: str) -> RenderableType:
    out = _prose(text)
    out.append(f" ({visible(code)})", style="dim")
    return _marked(mark, _Narrow(out))


def _evidence(evidence: list[EvidenceEntry], steps: dict[int | None, str]) -> list[RenderableType]:
    lines = []
    for item in evidence[:5]:
        places = [item["track"], f"step {steps[item['step']]}" if item["step"] in steps else None]
        where = "".join(f", {place}" for place in places if place)
        name = shorten(item["name"], 60)
        lines.append(f"{format_ns(item['dur_ns'])} {name} at {format_ns(item['start_ns'])}{where}")
    if len(evidence) > 5:
        lines[-1] += f", and {len(evidence) - 5} more"
    return [_hanging("seen" if at == 0 else "", folded(line)) for at, line in enumerate(lines)]


def _more_findings(findings: list[FindingEntry], first: int, summary: SummaryEntry) -> Iterator[RenderableType]:
    if not findings:
        return
    yield Text("")
    for number, finding in enumerate(findings[:5], first):
        line = _prose(finding["title"])
        line.append(f", {finding_phrases.saving(finding, summary)}", style="green")
        lines = phrases.places(finding["where"])
        others = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
        places = [Text.assemble(("at ", "dim"), visible(place), others) for place in lines[:1]]
        yield _marked(f"{number}.", Group(line, *places))
    if len(findings) > 5:
        more = len(findings) - 5
        yield Text(f"and {more} smaller {'finding' if more == 1 else 'findings'}", style="dim")


def _short_notices(notices: list[NoticeEntry], untold: list[FindingEntry]) -> Iterator[RenderableType]:
    if untold or notices:
        yield Text("")
    for item in notices[:_NOTICES_SHORT]:
        yield _marked("!", _paragraph(phrases.notice(item), "yellow"))
    if len(notices) > _NOTICES_SHORT:
        more = len(notices) - _NOTICES_SHORT
        yield Text(f"! and {more} more {'notice' if more == 1 else 'notices'}", style="yellow")
    for reason in finding_phrases.reasons(untold)[:_NOTICES_SHORT]:
        yield _marked("?", _paragraph(reason, "dim"))


def _heading(title: str) -> RenderableType:
    return Group(Text(""), folded(title, "bold underline"))


def _section(section: Section, width: int) -> Iterator[RenderableType]:
    yield _heading(section.title)
    if section.note:
        yield folded(section.note, "dim")
    yield laid_out(section, width)
