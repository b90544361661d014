"""Runs a script as ``python script.py`` would, while py-spy writes down from outside which line its main thread is at.

    python judge.py FOLDER PY_SPY script.py [arguments]

It is the judge of what a report says of lines, and shares nothing with it: another program, which reads the
interpreter's memory some hundred times a second. What py-spy may not do here stands in ``refused.txt``.
"""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

RATE_HZ = 250
MARKS = 60
_PR_SET_PTRACER = 0x59616D61


def watched(folder: Path, py_spy: str) -> subprocess.Popen[bytes]:
    """py-spy at this process, once it looks; it is left to its end where it may not. It stops no thread to look: what
    that takes would be booked to stepscope's own looks, of which it then makes a tenth."""
    command = [py_spy, "record", "--nonblocking", "--idle", "--full-filenames"]
    command += ["--rate", str(RATE_HZ), "--format", "chrometrace"]
    said = (folder / "said.txt").open("wb")
    command += ["--output", str(folder / "looks.json"), "--pid", str(os.getpid())]
    found = subprocess.Popen(command, stdout=said, stderr=said)
    ctypes.CDLL(None).prctl(_PR_SET_PTRACER, found.pid, 0, 0, 0)  # Where only who is named may look.
    while found.poll() is None and b"Sampling process" not in (folder / "said.txt").read_bytes():
        time.sleep(0.01)
    return found


def marks() -> list[int]:
    """When the code of each name ``<mark N>`` began (Unix time, ns): py-spy's clock begins at an instant of its own."""
    found = []
    for number in range(MARKS):
        stay = compile("sleep(0.01)", f"<mark {number}>", "exec")
        found.append(time.time_ns())
        exec(stay, {"sleep": time.sleep})
        time.sleep(0.01)
    return found


def main() -> None:
    """Run it."""
    folder, (py_spy, script, *arguments) = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    watching = watched(folder, py_spy)
    began = marks()
    (folder / "marks.json").write_text(json.dumps({"thread": threading.get_ident(), "marks": began}), encoding="utf-8")
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if watching.poll() is None:
            watching.send_signal(signal.SIGINT)
        if watching.wait():
            (folder / "refused.txt").write_bytes((folder / "said.txt").read_bytes())


if __name__ == "__main__":
    main()
