"""Whether stepscope has become slower, against the last release and a fixed yardstick beside it.

    python benchmarks/slips.py [--short] [--keep LABEL] [--folder DIR]

Inputs are made, or are the examples of this repository. Two measures:

* Counted work (``COUNTED``): the instructions of a whole process under valgrind's cachegrind, as multiples of those of
  ``import numpy``. They repeat to a tenth of a percent whatever else the machine does, so that ``SLIP`` is a slip.
  Only for what is small: valgrind is some 30 times slower. Without valgrind they are measured as the next.
* CPU time (``TIMED``): the least of several turns, which other work on the machine can only raise, as a multiple of
  the yardstick's in the same turns: ``json.load`` of a file.

Ratios are held against the newest line of ``benchmarks/history.jsonl``. ``--keep`` adds a line, for a release.
``--short`` leaves out what takes minutes, and has a wide margin for CPU time: it is what ``.ci/run`` runs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from many_ranks import write as write_ranks
from xplane import enlarge

HISTORY = Path(__file__).with_name("history.jsonl")
XPLANE = Path(__file__).resolve().parents[1] / "examples" / "profiles" / "jax_eight_devices.xplane.pb.gz"
SLIP, SHORT_SLIP = 1.15, 1.5
"""Larger than the last release's ratio by so much is a slip; of CPU time on whatever machine, by the second."""
TURNS = 5
LOAD = "import json, sys; json.load(open(sys.argv[1]))"
DIAGNOSE = "import sys; from stepscope.cli import main; sys.exit(main(['diagnose', *sys.argv[1:]]))"


@dataclass(frozen=True)
class Work:
    """A command that is measured."""

    input: str
    """The name of its input among ``INPUTS``."""
    options: tuple[str, ...] = ()
    yardstick: str = "middle"
    """The JSON file whose ``json.load`` is the measure of CPU time."""


INPUTS: dict[str, Callable[[Path], object]] = {
    "tiny": lambda path: profile(path, 40),  # Repetitions of the loop's body, 7 events each.
    "middle": lambda path: profile(path, 15_000),
    "large": lambda path: profile(path, 300_000),
    "xplane": lambda path: enlarge(gzip.decompress(XPLANE.read_bytes()), path, 25),
    "ranks": lambda path: (path.mkdir(), write_ranks(path, 100)),
}
HTML = ("--format", "html", "--out", os.devnull)
COUNTED = {"tiny": Work("tiny"), "tiny, html": Work("tiny", HTML), "tiny, json": Work("tiny", ("--format", "json"))}
TIMED_SHORT = {"middle": Work("middle"), "middle, html": Work("middle", HTML)}
TIMED_LONG = {
    "large": Work("large", yardstick="large"), "large, html": Work("large", HTML, "large"),
    "xplane": Work("xplane"), "ranks": Work("ranks"),
}  # fmt: skip
SHORT, LONG = COUNTED | TIMED_SHORT, TIMED_LONG


def profile(path: Path, count: int) -> None:
    """A Kineto profile: in each of twenty steps, ops with shapes inside ranges, each launching a kernel."""
    events: list[dict[str, object]] = []

    def add(cat: str, name: str, at: tuple[int, int], thread: tuple[int, int], **args: object) -> None:
        events.append(
            {"ph": "X", "cat": cat, "name": name, "ts": at[0], "dur": at[1], "pid": thread[0], "tid": thread[1],
             "args": args}
        )  # fmt: skip

    steps = 20
    each = max(count // steps, 2)
    for step in range(steps):
        begin = 1_000 + step * (each * 20 + 40)
        add("user_annotation", f"ProfilerStep#{step}", (begin, each * 20 + 30), (1, 1))
        for k in range(each):
            at, number = begin + 5 + k * 20, step * each + k + 1
            name, dims = f"aten::op{k % 60}", [[32, 16 * (k % 40 + 1)]]
            add("python_function", f"/job/train.py({k % 50 + 1}): layer{k % 50}", (at, 18), (1, 1))
            add("user_annotation", f"block{k % 24}", (at + 1, 16), (1, 1))
            add("cpu_op", name, (at + 2, 13), (1, 1), **{"External id": number, "Input Dims": dims})
            add("cuda_runtime", "cudaLaunchKernel", (at + 4, 5), (1, 1), correlation=number)
            add("kernel", f"kernel_{k % 80}", (at + 10, 9), (0, 7), correlation=number, device=0, stream=7)
            add("ac2g", "ac2g", (at + 4, 0), (1, 1))
            events[-1] |= {"ph": "s", "id": number}
            add("ac2g", "ac2g", (at + 10, 0), (0, 7))
            events[-1] |= {"ph": "f", "id": number, "bp": "e"}
    about = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 1 << 36}], "schemaVersion": 1}
    path.write_text(json.dumps({**about, "traceEvents": events}))


def cpu_s(*command: str) -> float:
    """CPU time of a process and those it starts, start included."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL, env=_environment())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime


def instructions(*command: str) -> float:
    """What a process takes, counted."""
    counting = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=" + os.devnull]
    ran = subprocess.run(
        [*counting, sys.executable, *command], env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, check=True,
    )  # fmt: skip
    told = re.search(r"I +refs: +([\d,]+)", ran.stderr)
    if told is None:
        raise SystemExit(f"valgrind counted nothing: {ran.stderr}")
    return float(told[1].replace(",", ""))


def _environment() -> dict[str, str]:
    """One order of sets, no process in the background, modules that are compiled once, and no threads of numpy's: what
    they take while they wait for work is never the same."""
    left = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return left | {"PYTHONHASHSEED": "0", "STEPSCOPE_BACKGROUND": "0", "OPENBLAS_NUM_THREADS": "1"}


def ratio(name: str, work: Work, path: Callable[[str], Path]) -> float:
    """What a command takes, as a multiple of its yardstick's."""
    command = ("-c", DIAGNOSE, str(path(work.input)), *work.options)
    cpu_s(*command)  # What a first run compiles is no part of it.
    if name in COUNTED and shutil.which("valgrind"):
        numpy = ("-c", "import numpy")
        cpu_s(*numpy)
        mine, its, unit = instructions(*command) / 1e9, instructions(*numpy) / 1e9, "billion instructions"
    else:
        yardstick = ("-c", "import numpy") if name in COUNTED else ("-c", LOAD, str(path(work.yardstick)))
        turns = [(cpu_s(*command), cpu_s(*yardstick)) for _ in range(TURNS)]
        mine, its = (min(times) for times in zip(*turns, strict=True))
        unit = "s of CPU time"
    print(f"{name}: {mine:.2f} {unit}, {mine / its:.2f} times the yardstick's {its:.2f}", flush=True)
    return round(mine / its, 3)


def margin(name: str, *, short: bool) -> float:
    """By how much a ratio may be larger than the last release's."""
    counted = name in COUNTED and shutil.which("valgrind") is not None
    return SHORT_SLIP if short and not counted else SLIP


def slipped(found: dict[str, float], last: dict[str, float], allowed: Callable[[str], float]) -> list[str]:
    """A sentence per command that takes longer than it did, by more than is allowed."""
    return [
        f"{name}: {found[name]:.2f} times its yardstick; the last release took {last[name]:.2f}"
        for name in found
        if name in last and found[name] > last[name] * allowed(name)
    ]


def main() -> None:
    """Measure, compare, and keep where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--keep", metavar="LABEL", help="add the ratios to the history under this name")
    parser.add_argument("--folder", type=Path, help="where inputs are made; they stay there")
    options = parser.parse_args()
    history = [json.loads(line) for line in HISTORY.read_text().splitlines()] if HISTORY.exists() else []
    last = history[-1]["ratios"] if history else {}
    with tempfile.TemporaryDirectory() as made:
        folder = options.folder or Path(made)
        folder.mkdir(parents=True, exist_ok=True)

        def path(name: str) -> Path:
            found = folder / (name if name in ("ranks", "xplane") else f"{name}.json")
            if not found.exists():
                INPUTS[name](found)
            return found

        found = {name: ratio(name, work, path) for name, work in (SHORT if options.short else SHORT | LONG).items()}
    if options.keep:
        with HISTORY.open("a") as file:
            file.write(json.dumps({"label": options.keep, "ratios": found}) + "\n")
    elif slips := slipped(found, last, lambda name: margin(name, short=options.short)):
        raise SystemExit("slower than the last release:\n" + "\n".join(slips))


if __name__ == "__main__":
    main()
