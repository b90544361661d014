"""How time grows with what a profile has many of: a table of slopes.

    python benchmarks/slopes.py [--only steps,names] [--full] [--folder DIR]

For each thing (events, steps, streams, threads, distinct names, devices that all take part in all steps) profiles are
made that have it in rising numbers and little else, and each is read and diagnosed with its whole document by a
process of its own. The slope is that of the last two sizes on a doubly logarithmic scale, the CPU time of the smallest
taken off both: 1 is in proportion, 2 the square. ``--full`` goes on to the largest sizes, which take minutes and some
GB of disk. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DOCUMENT = "import sys; from stepscope import pipeline; pipeline.open_profile(sys.argv[1]).document()"
Events = Iterator[dict[str, Any]]
LAUNCH_US = 12


def steps(count: int, length: int) -> Events:
    """Markers of as many steps, one behind the other."""
    for step in range(count):
        yield slice_of("user_annotation", f"ProfilerStep#{step}", step * length, length, (1, 1))


def launch(number: int, at: float, name: str, thread: int = 1, stream: tuple[int, int] = (0, 7)) -> Events:
    """An op that launches a kernel, which runs for 4 us."""
    device, of = stream
    about = {"correlation": number}
    yield slice_of("cpu_op", name, at, 3, (1, thread), **{"External id": number})
    yield slice_of("cuda_runtime", "cudaLaunchKernel", at + 1, 1, (1, thread), **about)
    yield slice_of("kernel", f"{name}_kernel", at + 4, 4, (device, of), device=device, stream=of, **about)


def slice_of(cat: str, name: str, at: float, dur: float, place: tuple[int, int], **args: object) -> dict[str, Any]:
    """An event with a duration, times in us."""
    return {"ph": "X", "cat": cat, "name": name, "ts": at, "dur": dur, "pid": place[0], "tid": place[1], "args": args}


def spread(count: int, of: int, make: Callable[[int, float], Events]) -> Events:
    """So many launches over so many steps, no two at once."""
    each = max(count // of, 1)
    length = 20 + LAUNCH_US * each
    yield from steps(of, length)
    for k in range(count):
        step, place = divmod(k, each)
        yield from make(k + 1, step * length + 10 + place * LAUNCH_US)


def events(count: int) -> Events:
    """Ops of a few names: three events each."""
    return spread(count // 3, 20, lambda k, at: launch(k, at, f"aten::op{k % 60}"))


def many_steps(count: int) -> Events:
    """Steps of one launch."""
    return spread(count, count, lambda k, at: launch(k, at, f"aten::op{k % 60}"))


def streams(count: int) -> Events:
    """Streams of four launches."""
    return spread(4 * count, 4, lambda k, at: launch(k, at, f"aten::op{k % 60}", stream=(0, 7 + k % count)))


def threads(count: int) -> Events:
    """Threads that launch eight times."""
    return spread(8 * count, 8, lambda k, at: launch(k, at, f"aten::op{k % 60}", thread=1 + k % count))


def names(count: int) -> Events:
    """As many ops with a name of their own, and kernels of theirs."""
    return spread(count // 2, 20, lambda k, at: launch(k, at, f"aten::op_{k}x{k % 97}"))


def devices(count: int) -> Events:
    """Devices in twenty steps: the accounting has a row for each pair."""
    return spread(20 * count, 20, lambda k, at: launch(k, at, f"aten::op{k % 60}", stream=(k % count, 7)))


THINGS: dict[str, tuple[Callable[[int], Events], tuple[int, ...], int]] = {
    "events": (events, (10_000, 100_000, 1_000_000), 10_000_000),
    "steps": (many_steps, (100, 1_000, 10_000), 100_000),
    "streams": (streams, (64, 512, 2_048), 4_096),
    "threads": (threads, (16, 128, 512), 1_024),
    "names": (names, (1_000, 10_000, 100_000), 1_000_000),
    "devices": (devices, (16, 128, 512), 2_048),
}
"""What there is many of: how it is made, the sizes, and the size of ``--full``."""


def write(path: Path, made: Events) -> None:
    """A Kineto profile of these events."""
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],')
        file.write('"traceEvents": [')
        for k, event in enumerate(made):
            file.write((",\n" if k else "\n") + json.dumps(event))
        file.write("\n]}")


def cpu_s(path: Path) -> float:
    """CPU time of a process that makes the document."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", DOCUMENT, str(path)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def slope(sizes: list[int], taken: list[float]) -> float | None:
    """The exponent between the last two sizes, what the smallest takes left out; None where that is too little."""
    grown = [seconds - taken[0] for seconds in taken[-2:]]
    if len(sizes) < 3 or min(grown) < 0.1:
        return None
    return math.log(grown[1] / grown[0]) / math.log(sizes[-1] / sizes[-2])


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(THINGS))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--folder")
    options = parser.parse_args()
    print("| many | sizes | CPU time, s | slope |\n| --- | --- | --- | ---: |", flush=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "profile.json"
        for thing in options.only.split(","):
            make, some, most = THINGS[thing]
            sizes, taken = [*some, *([most] if options.full else [])], []
            for size in sizes:
                write(path, make(size))
                taken.append(cpu_s(path))
            grows = slope(sizes, taken)
            told = "too little to tell" if grows is None else f"{grows:.2f}"
            print(f"| {thing} | {', '.join(f'{size:,}' for size in sizes)} | "
                  f"{', '.join(f'{seconds:.1f}' for seconds in taken)} | {told} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
