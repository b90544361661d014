"""How much faster a profile opens from stepscope's saved form than from the file it was recorded in.

    python benchmarks/saved.py TRACE [--repeat 5]

Both are opened in processes of their own, interpreter start and imports not counted: ``first`` is a process's first
opening, which loads compiled code, ``again`` its second. The best of REPEAT runs counts. Make a large TRACE with
``benchmarks/enlarge.py``; it and the saved form then lie in the file cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

OPEN = """
import json, sys, time
from stepscope import pipeline
seconds = []
for _ in range(2):
    begin = time.perf_counter()
    profile = pipeline.open(sys.argv[1])
    seconds.append(time.perf_counter() - begin)
print(json.dumps([*seconds, len(profile.trace.slices)]))
"""

SAVE = "import sys; from stepscope import pipeline; pipeline.open(sys.argv[1]).save(sys.argv[2])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "saved.stepscope")
        subprocess.run([sys.executable, "-c", SAVE, options.trace, saved], check=True)
        measured = {path: opened(path, options.repeat) for path in (options.trace, saved)}
        for path, (first, again, slices) in measured.items():
            size = path.stat().st_size / 1e6
            print(
                f"{path.name}: {size:,.0f} MB, {slices:,} slices, first {first * 1e3:,.1f} ms, "
                f"again {again * 1e3:,.1f} ms"
            )
        (first, again, _), (saved_first, saved_again, _) = measured.values()
        print(f"the saved form opens {first / saved_first:,.0f} times faster first, {again / saved_again:,.0f} again")


def opened(path: Path, repeat: int) -> tuple[float, float, int]:
    """Seconds of the first and second opening, each the best of all runs, and the number of slices."""
    runs = []
    for _ in range(repeat):
        ran = subprocess.run([sys.executable, "-c", OPEN, path], check=True, capture_output=True, text=True)
        runs.append(json.loads(ran.stdout))
    return min(run[0] for run in runs), min(run[1] for run in runs), runs[0][2]


if __name__ == "__main__":
    main()
