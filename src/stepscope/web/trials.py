"""What ``stepscope try`` found as one HTML page: the table, a curve for each number that was varied, the patch."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stepscope.report import trials
from stepscope.units import format_ns

if TYPE_CHECKING:
    from stepscope.document.trials import TrialEntry
    from stepscope.document.trials import TrialsDocument as Document

_WIDTH, _HEIGHT, _MARGIN = 560, 180, 44
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #18794e; --bad: #c62a2f; --accent: #3b6fd4 }
@media (prefers-color-scheme: dark) { :root { --good: #4cc38a; --bad: #ff8589; --accent: #8ab0ff } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td.helps { color: var(--good); font-weight: 600 } td.hurts, td.failed { color: var(--bad); font-weight: 600 }
pre { overflow-x: auto; padding: .8rem; border: 1px solid var(--line); border-radius: 6px; font-size: 13px }
svg { max-width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: currentColor }
li { margin: .2rem 0 }
"""


def page(document: Document) -> str:
    """The page; it needs nothing else."""
    body = [f"<h1>Tried: {escape(' '.join(document['command']))}</h1>"]
    body += [f"<p>{escape(line)}</p>" for line in trials.head(document)]
    if document["trials"]:
        body += [_table(document), *_curves(document)]
        told = [note for row in trials.rows(document) for note in trials.notes(row)]
        body += ["<h2>What else is known</h2><ul>", *(f"<li>{escape(note)}</li>" for note in told), "</ul>"]
    body += [f"<p>{escape(line)}</p>" for line in trials.tail(document)]
    patch = document["patch"]
    if patch["by_hand"]:
        body += ["<h2>To write by hand</h2>", *(f"<pre>{escape(each)}</pre>" for each in patch["by_hand"])]
    if patch["diff"]:
        body += [f"<h2>The change</h2><pre>{escape(patch['diff'])}</pre>"]
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>stepscope try</title><style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _table(document: Document) -> str:
    head = "".join(f'<th scope="col">{heading}</th>' for heading in trials.HEADINGS)
    lines = []
    for row in trials.rows(document):
        *cells, verdict = trials.cells(row)
        shown = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f'<tr>{shown}<td class="{row["verdict"]}">{escape(verdict)}</td></tr>')
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _curves(document: Document) -> list[str]:
    """A curve for each cure of which several numbers were measured."""
    groups: dict[str, list[tuple[int, int]]] = {}
    for row in document["trials"]:
        name, value = _varied(row)
        if value is not None and row["measured"] is not None:
            groups.setdefault(name, []).append((value, row["measured"]["after_ns"]))
    return [_curve(name, sorted(points)) for name, points in groups.items() if len(points) > 1]


def _varied(row: TrialEntry) -> tuple[str, int | None]:
    """What was given another number, and that; None of a cure that takes none."""
    if row["argument"] is not None:
        return row["argument"]["name"], row["argument"]["value"]
    *others, last = row["cures"]
    return last["cure"] + "".join(f" with {each['cure']}={each['value']}" for each in others), last["value"]


def _curve(name: str, points: list[tuple[int, int]]) -> str:
    low, high = points[0][0], points[-1][0]
    most = max(ns for _, ns in points)
    width, height = _WIDTH - 2 * _MARGIN, _HEIGHT - 2 * _MARGIN
    places = [
        (_MARGIN + width * (value - low) / (high - low), _MARGIN + height * (1 - ns / most)) for value, ns in points
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--accent)"/>'
        f'<text x="{x:.1f}" y="{y - 10:.1f}" text-anchor="middle">{escape(format_ns(ns))}</text>'
        f'<text x="{x:.1f}" y="{_HEIGHT - _MARGIN / 2:.1f}" text-anchor="middle">{value}</text>'
        for (x, y), (value, ns) in zip(places, points, strict=True)
    )
    label = f"Step time by {name}: " + ", ".join(f"{value}: {format_ns(ns)}" for value, ns in points)
    return (
        f"<h2>Step time by {escape(name)}</h2>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{escape(label)}">'
        f'<polyline points="{line}" fill="none" stroke="var(--accent)" stroke-width="2"/>{marks}</svg>'
    )
