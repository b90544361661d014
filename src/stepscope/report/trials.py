"""What ``stepscope try`` found, for people: text and Markdown of a ``stepscope.try/1`` document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stepscope.report import markdown as md
from stepscope.report.names import visible
from stepscope.units import NOT_RECORDED, format_bytes, format_ns, format_ns_range, format_share

if TYPE_CHECKING:
    from stepscope.document.trials import CureEntry, LossesEntry, MeasuredEntry, TrialEntry, TriedPlace
    from stepscope.document.trials import TrialsDocument as Document


HEADINGS = ("cure", "predicted", "measured", "saves", "verdict")
_VERDICTS = {
    "helps": "helps", "hurts": "hurts", "nothing": "does nothing", "unknown": "cannot be told", "failed": "failed",
    "refused": "not tried", "not_run": "not run",
}  # fmt: skip
_ROUNDING = "equal within rounding"
_INDENT = "    "


def text(document: Document, width: int) -> str:
    """For a terminal so many columns wide."""
    out = StringIO()
    console = Console(file=out, width=width, color_system=None, highlight=False, emoji=False, markup=False)
    for line in head(document):
        console.print(Text(visible(line)))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    for row in rows(document):
        table.add_row(*(Text(visible(cell)) for cell in cells(row)))
    if document["trials"]:
        console.print()
        console.print(table)
    for row in rows(document):
        for told in notes(row):
            out.write(textwrap.fill(visible(told), width, subsequent_indent=_INDENT, break_on_hyphens=False) + "\n")
    for told in tail(document):
        out.write("\n" + textwrap.fill(visible(told), width, break_on_hyphens=False) + "\n")
    for each in document["patch"]["by_hand"]:
        out.write("\n" + "".join(f"{visible(line)}\n" for line in each.splitlines()))
    if document["patch"]["diff"]:
        out.write("\n" + "".join(f"{visible(line)}\n" for line in document["patch"]["diff"].splitlines()))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def markdown(document: Document) -> str:
    """For a pull request: the table, and the patch."""
    lines = [f"{md.text(line)}\n" for line in head(document)]
    if document["trials"]:
        lines += ["| " + " | ".join(HEADINGS) + " |", "| " + " | ".join("---" for _ in HEADINGS) + " |"]
        lines += ["| " + " | ".join(md.text(cell) for cell in cells(row)) + " |" for row in rows(document)]
        lines += ["", *(f"- {md.text(told)}" for row in rows(document) for told in notes(row)), ""]
    lines += [f"{md.text(told)}\n" for told in tail(document)]
    for each in (*document["patch"]["by_hand"], *filter(None, [document["patch"]["diff"]])):
        fence = "`" * max(3, 1 + max((len(run) for run in each.split() if set(run) == {"`"}), default=0))
        lines += [fence + ("diff" if each is document["patch"]["diff"] else ""), each.rstrip("\n"), fence, ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def head(document: Document) -> list[str]:
    """What was tried on."""
    base = document["baseline"]
    if not base["runs"]:
        return ["The job was recorded, and no trial of it was timed.", base["verdict"]]
    runs = f"{base['runs']} run{'s' * (base['runs'] != 1)} of {base['steps_per_run']} steps"
    return [f"As it is a step takes {format_ns(base['step_ns'])} (mean of {runs}).", base["verdict"]]


def rows(document: Document) -> list[TrialEntry]:
    """Trials, best first, and all that help together."""
    return [*document["trials"], *filter(None, [document["together"]])]


def cells(row: TrialEntry) -> tuple[str, ...]:
    """One row of the table."""
    measured = row["measured"]
    verdict = _VERDICTS[row["verdict"]]
    changes = row["argument"] is not None or any(cure["changes_numbers"] for cure in row["cures"])
    name = row["name"] + (" (changes results)" if changes else "")
    if measured is None or row["verdict"] in ("refused", "failed", "not_run"):
        return (name, _predicted(row), "", "", verdict)
    return (name, _predicted(row), format_ns(measured["after_ns"]), _saves(measured), verdict)


def _predicted(row: TrialEntry) -> str:
    told = row["predicted"]
    return "–" if told is None else format_ns_range(told["best_step_ns"], told["step_ns"])


def _saves(measured: MeasuredEntry) -> str:
    if measured["least_saving_ns"] is None:
        return f"{format_ns(measured['saving_ns'])} (one run)"
    return f"{format_ns(measured['least_saving_ns'])} to {format_ns(measured['most_saving_ns'])}"


def notes(row: TrialEntry) -> Iterator[str]:
    """What else is to be known of a trial: why it was not tried, its results, memory and place."""
    name = row["name"]
    if row["why"] is not None:
        yield f"{name}: {row['why']}."
    if row["verdict"] in ("refused", "failed", "not_run"):
        return
    argument = row["argument"]
    if argument is not None:
        yield (
            f"{name}: times are for {argument['given']} samples, as many as a step has as it is; another batch size "
            "changes results by its nature."
        )
    for cure in row["cures"]:
        if cure["changes_numbers"]:
            yield f"{name}: changes results by its nature ({cure['title']}); {cure['may_break']}."
    needed = row["measured"]["runs_needed"] if row["measured"] else None
    if needed is not None and row["why"] is None:
        yield f"{name}: about {needed} runs of each would tell; --steps N makes each longer, --budget allows more."
    yield f"{name}: {_of_values(row['values'])}{_of_memory(row)}{_of_places(row['places'])}."
    if row["values"]["outcome"] == "differs":
        for cure in row["cures"]:
            if not cure["changes_numbers"]:
                yield f"{name}: what {cure['cure']} may break: {cure['may_break']}."


def _of_values(values: LossesEntry) -> str:
    if values["outcome"] == "unknown":
        return f"whether the loss stays the same is not known ({values['why']})"
    if values["outcome"] == "differs":
        largest = values["largest"]
        how = "where only one is a number" if largest is None else f"by up to {format_share(largest)}"
        return f"the loss differs from step {values['since']} on, {how}"
    return f"the loss of {values['steps']} steps is {'equal' if values['outcome'] == 'equal' else _ROUNDING}"


def _of_memory(row: TrialEntry) -> str:
    held = [
        (size, kind)
        for size, kind in ((row["device_bytes"], "device"), (row["host_bytes"], "host"))
        if size is not None
    ]
    if not held:
        return f"; memory {NOT_RECORDED}"
    return "".join(f"; {format_bytes(size)} of {kind} memory" for size, kind in held)


def _of_places(places: Sequence[TriedPlace]) -> str:
    named = dict.fromkeys(f"{place['file']}:{place['line']}" for place in places)
    return f"; at {', '.join(named)}" if named else ""


def tail(document: Document) -> Iterator[str]:
    """What to do, and what was left out."""
    keep = document["keep"]
    if keep:
        patched = document["patch"]["diff"] or document["patch"]["by_hand"]
        alone = [row["name"] for row in rows(document) if row["argument"] is not None and row["name"] in keep]
        effect = ": the change below has that effect" if patched and not alone else ""
        yield f"Keep {' and '.join(keep)}{effect}."
        if alone and len(keep) > 1:
            rest = ": the change below is that of the others" if patched else ""
            yield f"{alone[0]} was measured by itself{rest}."
    elif document["baseline"]["runs"]:
        yield _nothing_to_keep({row["verdict"] for row in document["trials"]})
    for each in document["findings_without_cure"]:
        yield f"Not tried: {each['finding']}, {each['title']}. {each['why']}"
    if document["ended_early"]:
        yield f"Trials ended early: {document['ended_early']}."


def _nothing_to_keep(verdicts: set[str]) -> str:
    if "unknown" in verdicts:
        return "Nothing was shown to help; of some cures it cannot be told yet."
    if verdicts <= {"refused"}:
        return "There was nothing to try."
    return "No cure was tried to the end." if verdicts <= {"refused", "not_run"} else "Nothing that was tried helps."


def listed(cures: Sequence[CureEntry]) -> str:
    """Every cure, for ``--list``."""
    blocks = []
    for cure in cures:
        name = cure["cure"] + ("=N" if cure["takes_number"] else "")
        told = (f"sets {cure['sets']}", f"may break: {cure['may_break']}", f"undone: {cure['undone']}")
        lines = [textwrap.fill(each, 100, initial_indent=_INDENT, subsequent_indent=_INDENT * 2) for each in told]
        blocks.append("\n".join([f"{name}: {cure['title']}", *lines]))
    return "\n".join(blocks)
