"""What a profile and a job of many ranks have in common: what is said of them, and how it is shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

from stepscope.analysis.exchange.asked import Asked
from stepscope.diagnosis.finding import Diagnosis, Notice
from stepscope.errors import Exit
from stepscope.report.readable import Findings, line

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from stepscope.comparison.compare import Comparison
    from stepscope.comparison.side import Side
    from stepscope.document.report import Report
    from stepscope.web.assemble import ShownRun


class Diagnosed(ABC):
    """What can be asked of a profile and of a job alike.

    What can be done beside a diagnosis is imported by the method that does it.
    """

    parameters: int | None = None
    """Parameters of the model, for the estimate of what reducing gradients takes; set before the report is made."""
    bandwidth: float | None = None
    """Bytes per second between devices in one direction, for that estimate; likewise."""

    @property
    @abstractmethod
    def diagnosis(self) -> Diagnosis:
        """Everything that is said of it."""

    @property
    @abstractmethod
    def side(self) -> Side:
        """This as one of two that are compared."""

    @property
    @abstractmethod
    def whole(self) -> bool:
        """Whether everything of it could be read."""

    @abstractmethod
    def document(self) -> Report:
        """The report as one JSON-ready dict (schema ``stepscope.report/1``)."""

    def brief(self) -> Report:
        """What short texts show: the document, or one without tables that take time to work out."""
        return self.document()

    @abstractmethod
    def run(self) -> ShownRun:
        """What pages show of it."""

    @abstractmethod
    def _named(self) -> str:
        """What it is, for a line of its own."""

    @property
    def findings(self) -> Findings:
        """What costs time, largest saving first: a tuple that shows as a table."""
        return Findings(self.diagnosis.findings)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What one must know of the profile itself, or of those of the job."""
        return self.diagnosis.notices

    @property
    def verdict(self) -> str:
        """The diagnosis in one sentence."""
        return self.diagnosis.verdict

    @cached_property
    def steps(self) -> pl.DataFrame:
        """One row per rank and step; times in ns (``stepscope.in_ms`` shows them in ms)."""
        from stepscope.report import frames

        return frames.steps(self.brief())

    @cached_property
    def accounting(self) -> pl.DataFrame:
        """One row per rank, device and step (and the time around steps), one column of ns per category;
        ``stepscope.in_ms`` shows those that took time, in ms."""
        from stepscope.report import frames

        return frames.accounting(self.brief())

    def compare(self, after: Diagnosed) -> Comparison:
        """What changed from this to a later run of the same job."""
        from stepscope.comparison.compare import compare

        return compare(self.side, after.side)

    def html(self) -> str:
        """The report as one HTML page that needs nothing else: pages and data; of a profile the trace too."""
        from stepscope.web.assemble import html_file

        return html_file([self.run()])

    def show(self, height: int | None = None) -> Path | None:
        """Show the pages below a notebook's cell, ``height`` pixels high where it is given; elsewhere in a browser,
        from the file whose path is returned."""
        from stepscope.web import notebook

        return notebook.show(self.run(), height or notebook.HEIGHT)

    def __repr__(self) -> str:
        known = self.__dict__.get("diagnosis")  # Showing it works nothing out.
        return line(self._named(), *((known.verdict, known.findings) if known else (None, ())))

    def _repr_html_(self) -> str:
        """What a notebook shows: the pages."""
        from stepscope.web import notebook

        return notebook.frame(self.run())

    @property
    def exit_status(self) -> Exit:
        """``OK``, or ``PARTIAL`` where bytes or events of a profile, or a rank, could not be read."""
        return Exit.OK if self.whole else Exit.PARTIAL

    def _asked(self) -> Asked:
        return Asked(self.parameters, self.bandwidth)
