"""The file: root keys, then the events, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from stepscope.errors import OutputError
from stepscope.formats.chrome.kineto_schema import OPTIONS
from stepscope.formats.chrome.own import ROOT, OwnRoot, looks_root
from stepscope.formats.chrome.writing.places import Places, places_of
from stepscope.formats.chrome.writing.points import point_lines
from stepscope.formats.chrome.writing.slices import slice_lines
from stepscope.formats.chrome.writing.text import write_lines
from stepscope.formats.restated import programs_of
from stepscope.replacing import replacing
from stepscope.trace.trace import Device, Trace

gzip: Any
try:
    gzip = import_module("isal.igzip")
except ImportError:  # a platform without isal wheels: zlib does the same work, slower
    gzip = import_module("gzip")

GZIP_LEVEL = 1


def write(trace: Trace, path: Path) -> None:
    """Write one file, compressed where its name ends in ``.gz``.

    Raises OutputError where the trace has no slices, OSError where the disk does.
    """
    if len(trace.slices) == 0:
        raise OutputError("the trace has no slices, so there is nothing to draw")
    places = places_of(trace)
    root = msgspec.json.encode(_root(trace, places))
    with replacing(path) as part, _opened(part, path.name.endswith(".gz")) as file:
        file.write(root[:-1] + b',"traceEvents":[\n' + ",\n".join(places.metadata).encode() + b"\n")
        for lines in slice_lines(trace, places):
            write_lines(file, lines)
        for lines in point_lines(trace, places):
            write_lines(file, lines)
        file.write(b"]}\n")


def _root(trace: Trace, places: Places) -> dict[str, Any]:
    """The root keys but the events: what the profile said of itself, and what is known of the run."""
    info = trace.info
    kinds = {str(device.id): device.kind for device in info.devices if device.kind != "gpu"}
    root: dict[str, Any] = dict(info.header)
    # Times are written from the trace's origin.
    root.pop("baseTimeNanoseconds", None)
    root |= {"schemaVersion": info.header.get("schemaVersion", 1), "displayTimeUnit": "ms"}
    root |= {theirs: int(info.options[ours]) for theirs, ours in OPTIONS.items() if ours in info.options}
    if info.devices:
        root["deviceProperties"] = [_device(device) for device in info.devices]
    if info.origin_epoch_ns is not None:
        root["baseTimeNanoseconds"] = info.origin_epoch_ns
    if info.host is not None:
        root["host_name"] = info.host
    given = info.header.get("distributedInfo")
    known = {"rank": info.rank, "world_size": info.world_size, "pg_config": list(info.process_groups) or None}
    if known := {key: value for key, value in known.items() if value is not None}:
        root["distributedInfo"] = (given if isinstance(given, dict) else {}) | known
    own = OwnRoot(
        tracks=places.tracks,
        framework=info.framework,
        framework_oldest=info.framework_oldest,
        framework_newest=info.framework_newest,
        resolution_ns=info.resolution_ns,
        device_kinds=kinds,
        programs=programs_of(trace),
        steps=info.steps,
        looks=looks_root(trace),
    )
    root[ROOT] = msgspec.to_builtins(own)
    return root


def _device(device: Device) -> dict[str, Any]:
    major, minor = device.compute_capability or (None, None)
    known = {
        "id": device.id,
        "name": device.name,
        "totalGlobalMem": device.memory_bytes,
        "numSms": device.multiprocessors,
        "clockRate": device.clock_khz,
        "memoryBandwidth": device.memory_bandwidth,
        "computeMajor": major,
        "computeMinor": minor,
    }
    return {key: value for key, value in known.items() if value is not None}


@contextmanager
def _opened(path: Path, packed: bool) -> Iterator[BinaryIO]:
    if not packed:
        with path.open("wb") as file:
            yield file
    else:
        with gzip.open(path, "wb", compresslevel=GZIP_LEVEL) as packed_file:
            yield cast(BinaryIO, packed_file)
