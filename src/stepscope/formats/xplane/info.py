"""What a file says of the run as a whole: the statistics of its planes, its messages, and the names in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from stepscope.formats.xplane.lookup import all_stats
from stepscope.formats.xplane.space import Space
from stepscope.names.versions import Version, parsed
from stepscope.names.xla_hosts import framework_of
from stepscope.protobuf.columns import Spans, numbers
from stepscope.trace.tables import NULL
from stepscope.trace.trace import Info, Loss

_OPTION_FIELDS = {
    "include_dataset_ops": 1, "host_tracer_level": 2, "device_tracer_level": 3, "python_tracer_level": 4,
    "enable_hlo_proto": 7, "duration_ms": 9,
}  # fmt: skip
"""Fields of tensorflow.ProfileOptions (tsl/profiler/protobuf/profiler_options.proto)."""


def plane_headers(space: Space) -> list[dict[str, Any]]:
    """Every statistic of every plane."""
    return all_stats(space.data, space.planes.spans, 6, np.arange(len(space.planes)), space.keys)


def session_start(space: Space) -> int | None:
    """Unix time in ns at which the session began."""
    rows = space.plane_stats.rows("profile_start_time").astype(np.intp)
    start = space.plane_stats.integers("profile_start_time", rows)
    start = start[(start > 0) & (start < 1 << 62)]
    return int(start[0]) if start.size else None


def describe_run(space: Space, headers: list[dict[str, Any]], names: Iterable[str]) -> Info:
    """What is known of the run but for times and devices."""
    options = _options(space)
    header: dict[str, Any] = {}
    for name, stats in zip(space.planes.names, headers, strict=True):
        if stats:
            header.setdefault("planes", {}).setdefault(name, {}).update(stats)
    header |= {word: told for word, told in space.messages.items() if told}
    if options:
        header["profile_options"] = options
    hosts = space.messages["hostnames"]
    version = _version(headers)
    return Info(
        format="XPlane",
        framework=_framework(headers, names),
        framework_oldest=version,
        framework_newest=version,
        host=hosts[0] if hosts else None,
        options={"stacks": options["python_tracer_level"] > 0} if options else {},
        header=header,
    )


def warnings(space: Space) -> list[Loss]:
    """What the profiler itself complained of."""
    return [
        Loss("reader_warning", 1, f"the profiler wrote: {text[:500]}")
        for word in ("errors", "warnings")
        for text in space.messages[word]
    ]


def _framework(headers: list[dict[str, Any]], names: Iterable[str]) -> str | None:
    if any("jax_version" in stats for stats in headers):
        return "JAX"
    return framework_of(names)


def _version(headers: list[dict[str, Any]]) -> Version | None:
    """The version that JAX says it is; no other framework says it."""
    return next((parsed(stats["jax_version"]) for stats in headers if "jax_version" in stats), None)


def _options(space: Space) -> dict[str, int]:
    """The options of the profiler, where they are recorded; what proto3 leaves out is 0."""
    _, start, end = space.plane_stats.spans("profile_options")
    if not start.size:
        return {}
    values = numbers(space.data, Spans(start[:1], end[:1]), *_OPTION_FIELDS.values())
    return {key: 0 if value[0] == NULL else int(value[0]) for key, value in zip(_OPTION_FIELDS, values, strict=True)}
