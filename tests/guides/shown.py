"""What the command line shows of a profile: a statement is held against that, never against an object inside."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepscope import cli
from stepscope.formats import saved
from stepscope.trace.trace import Trace

_FOLDER = tempfile.TemporaryDirectory(prefix="stepscope-guides-")


def stepscope(*arguments: str | Path) -> str:
    """What ``stepscope …`` prints; it must succeed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = cli.main([str(argument) for argument in arguments])
    assert status == 0, f"exit status {status}: {out.getvalue()[-500:]}"
    return out.getvalue()


@dataclass(frozen=True)
class Shown:
    """A profile as its user sees it; each view is made once."""

    path: Path

    @functools.cache  # noqa: B019  Profiles of the module's fixtures live as long as the tests.
    def text(self, *options: str) -> str:
        """``stepscope diagnose``, lines joined where they were wrapped."""
        return stepscope("diagnose", self.path, *options)

    @property
    def verbose(self) -> str:
        """``stepscope diagnose -v``."""
        return self.text("-v")

    @property
    def flat(self) -> str:
        """The same as one line."""
        return " ".join(self.verbose.split())

    @property
    def report(self) -> dict[str, Any]:
        """``stepscope diagnose --format json``."""
        made: dict[str, Any] = json.loads(self.text("--format", "json"))
        return made

    @property
    def analyses(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["analyses"]
        return found

    @property
    def summary(self) -> dict[str, Any]:
        found: dict[str, Any] = self.report["summary"]
        return found

    def parts(self, device: int = 0) -> dict[str, int]:
        """Nanoseconds per step by category."""
        (row,) = (row for row in self.analyses["breakdown"] if row["device"] == device)
        return {part["category"]: part["ns_per_step"] for part in row["parts"]}

    def all_findings(self) -> list[dict[str, Any]]:
        """Those that are told, and those that have little to gain."""
        return [*self.report["findings"], *self.analyses["minor_findings"]]

    def finding(self, rule: str) -> dict[str, Any]:
        """The first finding of a rule among those that are told."""
        return _first(self.report["findings"], rule)

    def told(self, rule: str) -> dict[str, Any]:
        """The first of a rule, also where there is little to gain (shown by ``-v``)."""
        return _first(self.all_findings(), rule)

    def rules(self) -> list[str]:
        """The rules of the findings, in order."""
        return [one["rule"] for one in self.report["findings"]]

    def notices(self) -> dict[str, str]:
        """Code to text."""
        return {one["code"]: one["text"] for one in self.report["profile"]["notices"]}


@functools.cache
def shown(data: bytes, name: str = "profile.json") -> Shown:
    """A profile of these bytes."""
    folder = Path(tempfile.mkdtemp(dir=_FOLDER.name))
    (folder / name).write_bytes(data)
    return Shown(folder / name)


def _first(findings: list[dict[str, Any]], rule: str) -> dict[str, Any]:
    found = [one for one in findings if one["rule"] == rule]
    assert found, f"no {rule}, but {[one['rule'] for one in findings]}"
    return found[0]


def shown_trace(trace: Trace) -> Shown:
    """A trace that was made in the tables, by way of stepscope's own format."""
    path = Path(tempfile.mkdtemp(dir=_FOLDER.name)) / "profile.stepscope"
    saved.write(trace, path)
    return Shown(path)
