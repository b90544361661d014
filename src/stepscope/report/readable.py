"""What a profile, its findings and its frames look like where Python shows them: a shell, a debugger, a notebook."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Sequence

from stepscope.diagnosis.finding import Finding
from stepscope.report import phrases
from stepscope.units import format_ns

_NONE = "no findings"
_HEADINGS = ("id", "saves per step", "what", "where")


class Findings(tuple[Finding, ...]):
    """Findings, largest saving first, that are shown as a small table."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self:
            return _NONE
        rows = [_HEADINGS, *map(_row, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        if not self:
            return f"<p>{_NONE}</p>"
        head, *rows = (
            "<tr>" + "".join(f'<{cell} style="text-align:left">{html.escape(text)}</{cell}>' for text in row) + "</tr>"
            for cell, row in (("th", _HEADINGS), *(("td", _row(finding)) for finding in self))
        )
        return f"<table><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _row(of: Finding) -> tuple[str, str, str, str]:
    saved = of.saving_ns_per_step
    place = phrases.locator(dataclasses.asdict(of.where[0])) if of.where else ""
    return of.id, "not known" if saved is None else format_ns(saved), of.title, place


def line(what: str, verdict: str | None, findings: Sequence[object]) -> str:
    """What something is and what is said of it; its verdict is None where it is not known yet."""
    if verdict is None:
        return f"<{what}; .verdict says where its time goes>"
    return f"<{what}: {verdict} ({len(findings)} finding{'' if len(findings) == 1 else 's'} in .findings)>"
