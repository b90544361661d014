"""The command that tries a finding's cures on the job itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.capture.cures import fitting
from stepscope.report.phrases import Document

if TYPE_CHECKING:
    from stepscope.document.findings import FindingEntry


def proof(finding: FindingEntry, document: Document, command: list[str] | None) -> str | None:
    """``stepscope try`` with the cures that answer the finding; None where there is none for this framework.

    ``command`` is how the job was started, where that was recorded. Cures of Keras are not named: ``try`` chooses them
    where Keras makes the steps.
    """
    profile = document["profile"]
    if not finding.get("provable"):
        return None
    cures = fitting(profile["framework"], has_device=bool(profile["devices"]))
    named = [f"--cure {cure.name}" for cure in cures if finding["rule"] in cure.answers]
    return " ".join(["stepscope try", *named, shlex.join(command) if command else "COMMAND"])


__all__ = ["proof"]
