"""Coverage-guided fuzzing, by hand: ``python -m tests.fuzz.guided --target sql --minutes 10``.

Needs atheris (``pip install atheris``; it has wheels for some systems and versions of Python only, so nothing here
depends on it). It notes which branches of stepscope an input takes, and goes on from those that took new ones; what it
does to them are the target's own mutations, now and then libFuzzer's. Compiled loops would be closed to it: they run as
Python, and the fast road of JSON stands aside. Each target has a process of its own and a folder of inputs, which the
next run goes on from. What is raised is kept and counted, and the run goes on; an input that takes a minute, or 2 GiB,
ends it.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.targets import Target

MISSING = "coverage-guided fuzzing needs atheris, which is not installed here: pip install atheris"
_HANG_S, _MEMORY_MIB = 60, 2048
_DEFECT = "defect: "
_SAID = {
    "inputs": r"stat::number_of_executed_units: +(\d+)",
    "branches": r"cov: (\d+)",
    "kept": r"corp: (\d+)",
    "slowest": r"stat::slowest_unit_time_sec: +(\d+)",
    "MiB": r"stat::peak_rss_mb: +(\d+)",
}
"""What is told of a run, and how libFuzzer says it."""


def main() -> None:
    """Fuzz the chosen targets one after another, and print a row for each."""
    options = _options()
    if importlib.util.find_spec("atheris") is None:
        sys.exit(MISSING)
    if options.here:
        _fuzz(options.target[0], options)
        return
    print(f"| target | {' | '.join(_SAID)} | defects |\n| --- |{' ---: |' * (len(_SAID) + 1)}", flush=True)
    for name in options.target:
        figures, defects = _run(name, options)
        print(f"| {name} | {' | '.join(figures.values())} | {sum(defects.values())} |", flush=True)
        for defect, count in defects.items():
            print(f"  {count} x {defect}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10, help="for all targets together")
    parser.add_argument("--target", action="append", help="may be repeated; all of them otherwise")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other inputs")
    parser.add_argument(
        "--out", type=Path, default=Path(tempfile.gettempdir(), "stepscope-guided"), help="for inputs and defects"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.here:
        from tests.fuzz.targets import TARGETS  # Where inputs are made, only once stepscope is watched.

        options.target = options.target or list(TARGETS)
        unknown = sorted({*options.target} - TARGETS.keys())
        if unknown:
            parser.error(f"there is no target {unknown[0]}; there are {', '.join(TARGETS)}")
    return options


def _run(name: str, options: argparse.Namespace) -> tuple[dict[str, str], Counter[str]]:
    """One target in a process of its own: what libFuzzer says of it at its end, and the defects."""
    minutes = options.minutes / len(options.target)
    words = ["--here", f"--target={name}", f"--minutes={minutes}", f"--seed={options.seed}", f"--out={options.out}"]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", *words], env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", check=False,
    )  # fmt: skip
    said = {what: re.findall(pattern, ran.stderr) for what, pattern in _SAID.items()}
    defects = Counter(line.removeprefix(_DEFECT) for line in ran.stderr.splitlines() if line.startswith(_DEFECT))
    if ran.returncode:
        defects[f"the process ended with {ran.returncode}: {ran.stderr.strip().splitlines()[-1:]}"] += 1
    return {what: found[-1] if found else "?" for what, found in said.items()}, defects


def _fuzz(name: str, options: argparse.Namespace) -> None:
    """Fuzz a target in this process, which ends with it."""
    import atheris  # type: ignore[import-not-found, unused-ignore]

    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["stepscope"]):
        from tests.fuzz.run import defect_of
        from tests.fuzz.targets import TARGETS

    target: Target = TARGETS[name]
    warnings.simplefilter("error")
    corpus, defects, place = (options.out / kind for kind in (name, "defects", f"{name}-place"))
    for folder in (corpus, defects, place):
        folder.mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        (corpus / f"seed-{zlib.crc32(data):08x}").write_bytes(data)
    seen: set[str] = set()

    def examine(data: bytes) -> None:
        number = zlib.crc32(data)  # The same input is always examined in the same ways.
        try:
            target.examined(place, data, number)
        except Exception as error:  # noqa: BLE001  Whatever it is, it is what we are looking for.
            defect = defect_of(error)
            print(f"{_DEFECT}{defect}", file=sys.__stderr__, flush=True)
            if defect not in seen:
                seen.add(defect)
                (defects / f"{name}-{number:08x}").write_bytes(data)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.2:
            return bytes(atheris.Mutate(data, most))
        for _ in range(random.choice((1, 1, 2, 3))):
            data = target.changed(random, data)
        return data[:most]

    atheris.Setup(
        [
            sys.argv[0], str(corpus), f"-max_total_time={max(1, round(60 * options.minutes))}", f"-timeout={_HANG_S}",
            f"-rss_limit_mb={_MEMORY_MIB}", "-max_len=200000", f"-artifact_prefix={defects}/{name}-",
            f"-seed={options.seed}", "-print_final_stats=1",
        ],
        examine,
        custom_mutator=mutate,
    )  # fmt: skip
    atheris.Fuzz()


if __name__ == "__main__":
    main()
