"""The command that tries cures on the job itself, for the terminal, Markdown and the pages."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stepscope.report.finding_phrases import told_and_untold

if TYPE_CHECKING:
    from stepscope.document.findings import FindingEntry
    from stepscope.document.report import Report as Document


class Proof(NamedTuple):
    """How to have the promises measured: a sentence and, where the job's command was recorded, a line to paste."""

    sentence: str
    line: str


def of_report(document: Document) -> Proof | None:
    """How to try the cures of all findings; None where none can be put into the job."""
    told = [str(number) for number, item in enumerate(told_and_untold(document)[0], 1) if item.get("provable")]
    if not told:
        return None
    cures = f"{'a cure' if len(told) == 1 else 'cures'} of {', '.join(told)}"
    if command := command_of(document):
        return Proof(f"Prove it: this puts {cures} into the job and times it.", _line([], command))
    return Proof(f"Prove it: `{_line([], None)}`, with the job's own command, puts {cures} into it and times it.", "")


def of_finding(finding: FindingEntry, document: Document, command: list[str] | None) -> str | None:
    """``stepscope try`` with the cures that answer the finding; None where there is none for this framework.

    ``command`` is how the job was started, where that was recorded. Cures of Keras are not named: ``try`` chooses them
    where Keras makes the steps.
    """
    from stepscope.capture.cures import fitting

    profile = document["profile"]
    if not finding.get("provable"):
        return None
    cures = fitting(profile["framework"], has_device=bool(profile["devices"]))
    return _line([cure.name for cure in cures if finding["rule"] in cure.answers], command)


def command_of(document: Document) -> list[str] | None:
    """How the job was started, by the manifest beside the profile; None where none tells, or the process was one of
    several ranks: what its launcher was given is then not known."""
    from stepscope.capture.results import manifest_of

    facts = manifest_of(Path(document["profile"]["files"][0]["path"])) or {}
    command = facts.get("command")
    if not isinstance(command, list) or not command or facts.get("world_size") not in (None, 1):
        return None
    return list(map(str, command))


def _line(cures: list[str], command: list[str] | None) -> str:
    return " ".join(["stepscope try", *(f"--cure {cure}" for cure in cures), shlex.join(command or ()) or "COMMAND"])


__all__ = ["Proof", "command_of", "of_finding", "of_report"]
