"""The one list of readers. What reads a format is imported when a file of it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from stepscope import compiled
from stepscope.compiled import PLAIN_FILE_BYTES, PLAIN_UNCOMPILED_BYTES
from stepscope.errors import InputError, StepscopeError
from stepscope.formats import foreign
from stepscope.formats.chrome.recognise import recognise as is_json
from stepscope.formats.nsys.recognise import recognise as is_sqlite
from stepscope.formats.tf1.recognise import recognise as is_step_stats
from stepscope.formats.xplane.recognise import recognise as is_xplane
from stepscope.inputs.source import Source
from stepscope.record import record
from stepscope.trace.saved import is_saved
from stepscope.trace.trace import Loss, Trace

Progress = Callable[[int, int], None]
HEAD_BYTES = 65_536


@record
class Reader:
    """One format: what it is, does the beginning of a file look like it, and what reads it."""

    name: str
    about: str
    """Who writes such files, in one line."""
    recognise: Callable[[bytes], bool]
    """Whether the first ``HEAD_BYTES`` of a file's (decompressed) content are of this format."""
    home: str
    """The module here that has ``read`` and, where the format allows them, ``arguments`` and ``beyond``."""
    kernel: tuple[str, str] | None = None
    """The folder of the package and the name of the loop that takes longest to compile; None where there is none."""
    little: int = PLAIN_FILE_BYTES
    """Bytes that are read without compiled loops where those would have to be made first."""

    def read(self, source: Source, progress: Progress | None = None) -> Trace:
        """Read a file of this format."""
        trace: Trace = self._of_home("read")(source, progress)
        return trace

    @property
    def arguments(self) -> Callable[[Source, Sequence[int]], list[dict[str, Any]]] | None:
        """Everything the file says about the events at some ``slices.offset``."""
        arguments: Callable[[Source, Sequence[int]], list[dict[str, Any]]] | None = self._of_home("arguments")
        return arguments

    @property
    def beyond(self) -> Callable[[Source, bool], list[tuple[int, str]]] | None:
        """How much a file holds of what no table does, in words, where that is known of the format; with the second
        argument, of what ``Info.header`` does not hold either."""
        beyond: Callable[[Source, bool], list[tuple[int, str]]] | None = self._of_home("beyond")
        return beyond

    def _of_home(self, name: str) -> Any:
        return getattr(import_module(f"stepscope.formats.{self.home}"), name, None)

    def must_compile(self, size: int) -> bool:
        """Whether reading so many bytes compiles loops first, which takes some seconds."""
        if size <= self.little:
            return False
        folder = Path(compiled.__file__).parent
        return self.kernel is not None and compiled.must_compile(folder / self.kernel[0], self.kernel[1])


READERS: tuple[Reader, ...] = (
    Reader("stepscope's saved form", "`stepscope convert` and `stepscope slice`", is_saved, "saved"),
    Reader(
        "Nsight Systems SQLite",
        "`nsys export --type sqlite`, from a report of Nsight Systems",
        is_sqlite,
        "nsys.read",
        ("formats/nsys/sqlite", "pages.decode"),
    ),
    Reader(
        "TensorFlow StepStats",
        "TensorFlow 1: `Session.run` with a trace level (RunMetadata or StepStats, serialised)",
        is_step_stats,
        "tf1.step_stats",
        ("protobuf", "columns._count"),
    ),
    Reader(
        "XPlane",
        "JAX, TensorFlow 2, Keras and PyTorch/XLA (`.xplane.pb`)",
        is_xplane,
        "xplane.read",
        ("formats/xplane", "wire.decode"),
    ),
    Reader(
        "Chrome trace JSON",
        "PyTorch's profiler (Kineto), TensorFlow's Timeline, JAX and XLA, VizTracer, anything for chrome://tracing",
        is_json,
        "chrome.read",
        ("formats/chrome/scan", "kernel.scan"),
        PLAIN_UNCOMPILED_BYTES,
    ),
)
"""Tried in this order: formats with an unmistakable beginning first."""


def recognise(source: Source) -> Reader:
    """The reader for a file's content.

    Raises InputError with one sentence if there is none.
    """
    head = source.head(HEAD_BYTES)
    for reader in READERS:
        if reader.recognise(head):
            return reader
    raise InputError(f"{source.path}: {foreign.describe(head, source.path.name)}")


def read(reader: Reader, source: Source, progress: Progress | None = None) -> Trace:
    """Read a file; of one that was cut off meanwhile, what was there to be read.

    Raises InputError where nothing can be read.
    """
    if source.inflated > PLAIN_UNCOMPILED_BYTES:
        compiled.LOOPS.expect_much()
    try:
        trace = reader.read(source, progress)
    except Exception as error:
        if isinstance(error, StepscopeError) or source.cut_off is None:
            raise
        raise InputError(f"{source.path}: was cut off while it was read; read it again") from error
    if source.cut_off is None:
        return trace
    told = "the file was cut off while it was read; what lay behind the cut is missing"
    lost = Loss("cut_while_read", 1, told, source.cut_off, 0, max(source.size - source.cut_off, 0), damaged=True)
    known = trace.completeness
    return replace(trace, completeness=replace(known, losses=(*known.losses, lost)))
