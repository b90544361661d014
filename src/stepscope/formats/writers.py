"""The one list of writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from pathlib import Path

from stepscope.formats import parquet, recorded, saved
from stepscope.formats.chrome import writing as chrome
from stepscope.formats.lacks import Lack, counted, programs
from stepscope.formats.tf1 import writing as timeline
from stepscope.formats.xplane import writing as xplane
from stepscope.record import record
from stepscope.trace.trace import Trace


@record
class Writer:
    """One format a trace can be written in."""

    name: str
    """What ``--to`` takes."""
    suffixes: tuple[str, ...]
    """Endings of file names that mean this format; an empty one means a directory."""
    about: str
    """What opens such files, in one line."""
    write: Callable[[Trace, Path], None]
    """Write the trace; raises OSError where the disk does, OutputError where the trace has nothing for this format."""

    lacks: tuple[Lack, ...] = ()
    """What the format does not hold, or not as it was."""
    header: bool = False
    """Whether the format holds ``Info.header``."""
    carries: Callable[[Trace], tuple[Lack, ...] | None] = field(default=lambda trace: None)
    """What is left out of a trace whose recorded file itself is carried; None where it is not, and laid out anew."""

    def left_out(self, trace: Trace) -> list[tuple[int, str]]:
        """What is not written of a trace: number and words."""
        of_carried = self.carries(trace)
        if of_carried is not None:
            return counted(trace, of_carried)
        return counted(trace, self.lacks) + recorded.beyond(trace, self.header)


WRITERS: tuple[Writer, ...] = (
    Writer("stepscope", (".stepscope",), "stepscope itself, at once", saved.write, header=True),
    Writer("xplane", (".xplane.pb",), "XProf and TensorBoard, from <logdir>/plugins/profile/<run>/", xplane.write,
           xplane.LACKS, carries=xplane.carries),
    Writer("timeline", (".timeline.json",), "chrome://tracing and Perfetto, as TensorFlow's Timeline", timeline.write,
           timeline.LACKS),
    Writer("chrome", (".json", ".json.gz"), "Perfetto, chrome://tracing, tools for PyTorch's profiles", chrome.write,
           chrome.LACKS),
    Writer("parquet", ("", ".parquet"), "polars, pandas, DuckDB, Spark: a folder with a file per table", parquet.write,
           (programs(),)),
)  # fmt: skip
