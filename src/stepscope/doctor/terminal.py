"""The examination as text for a terminal. Names are untrusted, as in every report."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from stepscope.doctor.outcome import State
from stepscope.report.names import code_spans, visible

_LOOK = {State.PROBLEM: "bold red", State.WARNING: "yellow", State.OK: "green"}
_ORDER = (State.PROBLEM, State.WARNING, State.OK)
_STATE_CELLS = 7


def render(made: dict[str, Any], *, width: int = 100, color: bool = False, verbose: bool = False) -> str:
    """The document as text ``width`` cells wide, with ANSI styles only where ``color`` is set."""
    buffer = io.StringIO()
    console = Console(
        file=buffer, width=max(width, 40), force_terminal=color, color_system="standard" if color else None,
        markup=False, emoji=False, highlight=False, legacy_windows=False, _environ={},
    )  # fmt: skip
    for part in _parts(made, verbose):
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in buffer.getvalue().splitlines())


def _parts(made: dict[str, Any], verbose: bool) -> Iterator[RenderableType]:
    yield Text(_summary(made), style="bold")
    yield Text("")
    yield _table([(item["title"], item) for item in _sorted(made["checks"])])
    absent = [item for item in made["checks"] if item["state"] == State.NOT_APPLICABLE]
    if absent and verbose:
        yield Text("")
        yield _table([(item["title"], item) for item in absent])
    elif absent:
        titles = dict.fromkeys(item["title"] for item in absent)
        yield Text(f"not applicable here: {', '.join(titles)} (-v says why)", style="dim")
    for profile in made["profiles"]:
        yield Text("")
        yield Text(visible(profile["path"]), style="bold underline", overflow="fold")
        yield _table([(item["code"], item) for item in profile["outcomes"]])


def _summary(made: dict[str, Any]) -> str:
    problems, warnings = made["problems"], made["warnings"]
    told = [
        f"{count} {word}{'s' * (count != 1)}" for count, word in ((problems, "problem"), (warnings, "warning")) if count
    ]
    where = " or the profiles" if made["profiles"] else ""
    if not told:
        return f"Nothing here{where} stands in the way of capturing or reading profiles."
    return f"{' and '.join(told)} with capturing or reading profiles here."


def _sorted(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [item for state in _ORDER for item in items if item["state"] == state]


def _table(rows: Sequence[tuple[str, dict[str, Any]]]) -> RenderableType:
    """A row per outcome, with the cure below its sentence."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_STATE_CELLS, no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for title, item in rows:
        state = State(item["state"])
        word = "-" if state is State.NOT_APPLICABLE else state.value
        look = Text(word, style=_LOOK.get(state, "dim"))
        grid.add_row(look, Text(visible(title), style="dim"), _prose(item["sentence"]))
        if item["cure"]:
            grid.add_row("", "", _prose(item["cure"], "cure: "))
    return grid


def _prose(text: str, before: str = "") -> Text:
    """Untrusted text in which `backticks` mark code."""
    out = Text(before, overflow="fold")
    for piece, is_code in code_spans(visible(text)):
        out.append(piece, style="cyan" if is_code else "")
    return out
