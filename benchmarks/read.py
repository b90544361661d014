"""How fast a trace is read, against the usual ways, in one sitting.

    python benchmarks/read.py TRACE [TRACE.gz ...] [--repeat 3] [--peers-python PYTHON] [--json OUT]

For every TRACE: stepscope's reader. For the first: ``json.load`` with a pandas frame made as HolisticTraceAnalysis
makes its own (one row per event, every args dictionary looked into), and HolisticTraceAnalysis itself where it can be
imported. Peers run under PYTHON, so that they may live in an environment of their own. Each measurement is a process of
its own, interpreter start and imports included; wall, CPU and peak memory are the process's, the best of REPEAT runs by
wall time (peers run once). Make a large TRACE with ``benchmarks/enlarge.py``; run once before, so that it lies in the
file cache and stepscope's kernels are compiled.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

STEPSCOPE = """
import sys
from stepscope.formats.chrome.scan import read_events
from stepscope.inputs.source import Source
events = read_events(Source(sys.argv[1]), road=sys.argv[2])
print(len(events), events.total_bytes)
"""

PANDAS = """
import gzip, json, sys
import pandas
path = sys.argv[1]
with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
    text = file.read()
events = json.loads(text)["traceEvents"]
frame = pandas.DataFrame(events)
keys = {key for args in frame["args"].dropna() for key in args}
for key in keys & {"External id", "correlation", "stream", "device", "Input Dims", "Input type", "bytes"}:
    frame[key] = frame["args"].apply(lambda args: args.get(key, -1) if isinstance(args, dict) else -1)
print(len(frame), len(text))
"""

HTA = """
import os, sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_dir=sys.argv[1])
frame = analysis.t.get_trace(next(iter(analysis.t.get_all_traces())))
print(len(frame), -1)
"""


@dataclass(frozen=True)
class Measurement:
    """One process: what it read, and what that took. ``events`` is what the tool kept."""

    name: str
    trace: str
    events: int
    megabytes: float
    wall_s: float
    cpu_s: float
    peak_mb: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="+")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    options = parser.parse_args()
    found = []
    for trace in options.trace:
        runs = [
            measure("stepscope", trace, [sys.executable, "-c", STEPSCOPE, str(trace), "fast"])
            for _ in range(options.repeat)
        ]
        found.append(min(runs, key=lambda run: run.wall_s))
    if not options.no_peers:
        found += peers(options.trace[0], options.peers_python, found[0].megabytes)
    report(found)
    if options.json:
        options.json.write_text(json.dumps([asdict(measurement) for measurement in found], indent=1))


def peers(trace: Path, python: str, megabytes: float) -> list[Measurement]:
    """The other ways of reading ``trace``, those that ``python`` can import."""
    found = []
    if importable(python, "pandas"):
        found.append(measure("json + pandas", trace, [python, "-c", PANDAS, str(trace)], megabytes))
    if importable(python, "hta.trace_analysis"):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "rank0" + "".join(trace.suffixes)).symlink_to(trace.resolve())
            found.append(measure("HolisticTraceAnalysis", trace, [python, "-c", HTA, folder], megabytes))
    return found


def importable(python: str, module: str) -> bool:
    """Whether a Python has a module; says so on standard error where it does not."""
    done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
    if done.returncode:
        print(f"{python} has no {module}; left out", file=sys.stderr)
    return done.returncode == 0


def measure(name: str, trace: Path, command: list[str], megabytes: float | None = None) -> Measurement:
    """Run a command that prints (events, bytes), and measure its process."""
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{name} failed on {trace}")
        output.seek(0)
        events, size = map(int, output.read().splitlines()[-1].split())
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return Measurement(
        name,
        trace.name,
        events,
        megabytes or size / 1e6,
        wall,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * unit / 1e6,
    )


def report(found: list[Measurement]) -> None:
    """The table."""
    print(
        f"{'':24}{'trace':22}{'events':>10}{'wall s':>9}{'CPU s':>9}{'M events/s':>12}{'MB/s':>8}{'peak MB':>9}"
        f"{'ratio':>8}"
    )
    for run in found:
        print(
            f"{run.name:24}{run.trace[:21]:22}{run.events:>10}{run.wall_s:>9.2f}{run.cpu_s:>9.2f}"
            f"{run.events / run.wall_s / 1e6:>12.2f}{run.megabytes / run.wall_s:>8.0f}{run.peak_mb:>9.0f}"
            f"{run.wall_s / found[0].wall_s:>8.1f}"
        )


if __name__ == "__main__":
    main()
