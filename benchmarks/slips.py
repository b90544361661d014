"""Whether stepscope has become slower: CPU time of diagnoses as multiples of what a fixed yardstick takes beside them.

    python benchmarks/slips.py [--short] [--keep LABEL] [--folder DIR]

Inputs are made (training with a launch-bound loop, ranges and shapes); each is diagnosed by a process of its own, in
turns with the yardsticks: ``json.load`` of the same file, and for the smallest the import of numpy. The least CPU time
of several turns counts, which other work on the machine can only raise, for both alike. Ratios are held against the
newest line of ``benchmarks/history.jsonl``; one larger by ``SLIP`` fails. ``--keep`` adds a line, for a release.
``--short`` leaves the large input out: it is what ``.ci/run`` runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HISTORY = Path(__file__).with_name("history.jsonl")
SLIP, SHORT_SLIP = 1.15, 1.5
"""Larger than the last release's ratio by so much is a slip; the short run, on whatever machine, has a wide margin."""
TURNS = 5
SHORT, LONG = {"tiny": 40, "middle": 15_000}, {"large": 300_000}
"""Repetitions of the loop's body: 7 events each."""
LOAD = "import json, sys; json.load(open(sys.argv[1]))"
DIAGNOSE = "import sys; from stepscope.cli import main; sys.exit(main(['diagnose', sys.argv[1]]))"


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
    """CPU time of a process, start included."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} failed")
    return usage.ru_utime + usage.ru_stime


def ratio(name: str, path: Path) -> float:
    """CPU time of a diagnosis, as a multiple of the yardstick's."""
    yardstick = ("-c", "import numpy") if name == "tiny" else ("-c", LOAD, str(path))
    turns = [(cpu_s("-c", DIAGNOSE, str(path)), cpu_s(*yardstick)) for _ in range(TURNS)]
    mine, its = (min(times) for times in zip(*turns, strict=True))
    print(f"{name}: {mine:.2f} s of CPU, {mine / its:.2f} times the yardstick's {its:.2f} s", flush=True)
    return round(mine / its, 3)


def slipped(found: dict[str, float], last: dict[str, float], margin: float) -> list[str]:
    """A sentence per input that takes longer than it did, by more than the margin."""
    return [
        f"{name}: {found[name]:.2f} times its yardstick; the last release took {last[name]:.2f}"
        for name in found
        if name in last and found[name] > last[name] * margin
    ]


def main() -> None:
    """Measure, compare, and keep where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--keep", metavar="LABEL", help="add the ratios to the history under this name")
    parser.add_argument("--folder", type=Path, help="where inputs are made; they stay there")
    options = parser.parse_args()
    last = json.loads(HISTORY.read_text().splitlines()[-1])["ratios"] if HISTORY.exists() else {}
    with tempfile.TemporaryDirectory() as made:
        folder, found = options.folder or Path(made), {}
        for name, count in (SHORT if options.short else SHORT | LONG).items():
            path = folder / f"{name}.json"
            if not path.exists():
                profile(path, count)
            cpu_s("-c", DIAGNOSE, str(path))  # What a first run compiles is no part of it.
            found[name] = ratio(name, path)
    if options.keep:
        with HISTORY.open("a") as history:
            history.write(json.dumps({"label": options.keep, "ratios": found}) + "\n")
    elif slips := slipped(found, last, SHORT_SLIP if options.short else SLIP):
        raise SystemExit("slower than the last release:\n" + "\n".join(slips))


if __name__ == "__main__":
    main()
