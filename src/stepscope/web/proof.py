"""The command that tries a finding's cures on the job itself."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from stepscope.capture.cures import CURES
from stepscope.report.phrases import Document

if TYPE_CHECKING:
    from stepscope.document.findings import FindingEntry

_MODULES = {"PyTorch": "torch"}
"""What a report calls a framework -> the module that cures are put into."""


def proof(finding: FindingEntry, document: Document, command: list[str] | None) -> str | None:
    """``stepscope try`` with the cures that answer the finding; None where there is none for this framework.

    ``command`` is how the job was started, where that was recorded.
    """
    module, has_device = _MODULES.get(document["profile"]["framework"]), bool(document["profile"]["devices"])
    fitting = [
        cure.name for cure in CURES
        if finding["rule"] in cure.answers and module is not None and cure.module in (module, None)
        and (has_device or not cure.device_only)
    ]  # fmt: skip
    if not fitting:
        return None
    job = shlex.join(command) if command else "COMMAND"
    return f"stepscope try {' '.join(f'--cure {name}' for name in fitting)} {job}"


__all__ = ["proof"]
