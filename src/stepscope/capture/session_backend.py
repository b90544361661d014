"""TensorFlow 1: ``Session.run`` with FULL_TRACE, one RunMetadata file per traced run."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from .backend import Backend, placed
from .files import written
from .options import Options
from .place import file_stem


class SessionBackend(Backend):
    """Collects the RunMetadata of runs; whoever wraps ``Session.run`` asks for it with ``traced``."""

    framework = "tensorflow_session"
    stops_anywhere = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.active = False
        self._runs: list[Any] = []

    def version(self) -> str:
        """TensorFlow's version."""
        return str(getattr(sys.modules.get("tensorflow"), "__version__", ""))

    def begin(self, number: int | None) -> None:
        """Trace runs from now on."""
        self.active = True

    def stop(self) -> None:
        """Trace none."""
        self.active = False

    def traced(self, given: Any) -> tuple[Any, Any]:
        """RunOptions (those given, with tracing) and RunMetadata for one run."""
        config: Any = import_module("tensorflow.core.protobuf.config_pb2")
        metadata = config.RunMetadata()
        self._runs.append(metadata)
        options = config.RunOptions()
        if given is not None:
            options.CopyFrom(given)
        options.trace_level = config.RunOptions.FULL_TRACE
        if self.options.memory:
            options.report_tensor_allocations_upon_oom = True
        if self.options.shapes:
            options.output_partition_graphs = True
        return options, metadata

    def export(self, folder: str) -> list[str]:
        """Write ``<host>.<pid>.<time>.run_metadata.pb`` per run."""
        os.makedirs(folder, exist_ok=True)
        paths = []
        for metadata in self._runs:
            if metadata.step_stats.dev_stats:
                part = os.path.join(folder, f".{file_stem()}.part")
                written(part, metadata.SerializeToString())
                paths.append(placed(part, folder, ".run_metadata.pb", self.options.max_bytes))
        self._runs = []
        return paths
