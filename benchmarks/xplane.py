"""How fast an XPlane is read, against the usual ways, in one sitting.

    python benchmarks/xplane.py PROFILE.xplane.pb [--copies 1200] [--repeat 3]
        [--jax-python PYTHON] [--xprof-python PYTHON] [--json OUT]

For stepscope: the whole trace, and the raw columns of all events and the statistics it uses. For the peers that the
Pythons given can import: ``jax.profiler.ProfileData`` going over every event, and over every event with its statistics;
XProf making its overview page (once). Each measurement is a process of its own, interpreter start and imports included;
wall, CPU and peak memory are the process's, the best of REPEAT runs by wall time, which take turns. ``--copies`` makes
a large profile first: every thread and stream does all its work that many times over, one after the other. Run once
before, so that stepscope's kernels are compiled.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from read import Measurement, importable, measure, report

TRACE = """
import os, sys
import stepscope
print(stepscope.open(sys.argv[1]).trace.completeness.events, os.path.getsize(sys.argv[1]))
"""

COLUMNS = """
import os, sys
import numpy
from stepscope.inputs.source import Source
from stepscope.formats.xplane.space import read_space
print(len(read_space(numpy.asarray(Source(sys.argv[1]).data()[0])).events), os.path.getsize(sys.argv[1]))
"""

PROFILE_DATA = """
import os, sys
from jax.profiler import ProfileData
events = total = stats = 0
for plane in ProfileData.from_file(sys.argv[1]).planes:
    for line in plane.lines:
        for event in line.events:
            events += 1
            total += event.duration_ns
            if sys.argv[2] == "stats":
                for _ in event.stats:
                    stats += 1
print(events, os.path.getsize(sys.argv[1]))
"""

XPROF = """
import os, sys
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # it warns of every line
from xprof.convert import raw_to_tool_data
raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "overview_page", {})
print(sys.argv[2], os.path.getsize(sys.argv[1]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--jax-python", default=sys.executable)
    parser.add_argument("--xprof-python", default=sys.executable)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.profile
        if options.copies > 1:
            path = Path(folder, f"{options.copies}.xplane.pb")
            enlarge(options.profile.read_bytes(), path, options.copies)
        found = run_all(path, options)
    report(found)
    if options.json:
        options.json.write_text(json.dumps([asdict(measurement) for measurement in found], indent=1))


def run_all(path: Path, options: argparse.Namespace) -> list[Measurement]:
    """stepscope, and the peers that can be imported: of each the run that took least time."""
    here, jax, xprof = sys.executable, options.jax_python, options.xprof_python
    commands = {
        "stepscope: trace": [here, "-c", TRACE, str(path)],
        "stepscope: columns": [here, "-c", COLUMNS, str(path)],
    }
    if importable(jax, "jax.profiler"):
        commands["ProfileData, events"] = [jax, "-c", PROFILE_DATA, str(path), "events"]
        commands["ProfileData and stats"] = [jax, "-c", PROFILE_DATA, str(path), "stats"]
    # In turn, so that what else the machine does meets all of them.
    rounds = [[measure(name, path, command) for name, command in commands.items()] for _ in range(options.repeat)]
    found = [min(runs, key=lambda run: run.wall_s) for runs in zip(*rounds, strict=True)]
    if importable(xprof, "xprof.convert.raw_to_tool_data"):
        found.append(measure("XProf, overview", path, [xprof, "-c", XPROF, str(path), str(found[0].events)]))
    return found


def enlarge(data: bytes, target: Path, copies: int) -> None:
    """Write a profile in which every line's events follow each other ``copies`` times.

    A line may be written in pieces of equal id, each with a time of its own: only these times change.
    """
    period = max(last_end_ns(plane) for number, plane, _ in fields(data) if number == 1 and isinstance(plane, bytes))
    with target.open("wb") as file:
        for number, plane, raw in fields(data):
            if number != 1:
                file.write(raw)
                continue
            assert isinstance(plane, bytes)
            body = bytearray()
            for field, part, kept in fields(plane):
                if field != 3:
                    body += kept
                    continue
                assert isinstance(part, bytes)
                parts = list(fields(part))
                time = next((int(value) for number, value, _ in parts if number == 3), 0)
                before = b"".join(raw for number, _, raw in parts if number < 3)
                after = b"".join(raw for number, _, raw in parts if number > 3)
                for copy in range(copies):
                    line = before + b"\x18" + varint(time + copy * period) + after
                    body += b"\x1a" + varint(len(line)) + line
            file.write(b"\x0a" + varint(len(body)) + body)


def last_end_ns(plane: bytes) -> int:
    """When the last event of a plane is over, from the time of its line."""
    end = 0
    for number, line, _ in fields(plane):
        if number == 3 and isinstance(line, bytes):
            for field, event, _ in fields(line):
                if field == 4 and isinstance(event, bytes):
                    told = {number: int(value) for number, value, _ in fields(event) if isinstance(value, int)}
                    end = max(end, (told.get(2, 0) + told.get(3, 0)) // 1000 + 1)
    return end


def fields(data: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    """Every field of a message: number, value, and its bytes as they stand."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        start = at
        key = number()
        value: int | bytes
        if key & 7 == 0:
            value = number()
        else:
            size = number() if key & 7 == 2 else 8 if key & 7 == 1 else 4
            value = data[at : at + size]
            at += size
        yield key >> 3, value, data[start:at]


def varint(value: int) -> bytes:
    """A number as the wire has it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


if __name__ == "__main__":
    main()
