"""A trace with what the files beside its profile add: a manifest, logs and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepscope.formats.beside.lazy_metrics import with_metrics
from stepscope.formats.beside.looks import with_looks
from stepscope.formats.beside.package_files import with_packages
from stepscope.formats.beside.placement_log import with_placements
from stepscope.formats.beside.summaries import with_queue_fill
from stepscope.formats.beside.versions import of_version
from stepscope.trace.trace import Trace


def completed(trace: Trace, place: Path, name: str, manifest: Mapping[str, Any] | None) -> Trace:
    """The trace of a profile at some place, of that name in the manifest of ``stepscope run``."""
    trace = with_queue_fill(of_version(trace, manifest), place)
    trace = with_looks(with_metrics(trace, manifest, name), manifest, name)
    return with_placements(with_packages(trace, manifest, name), place)
