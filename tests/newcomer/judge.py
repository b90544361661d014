"""Runs a script as ``python script.py`` would, and writes down which of its lines the main thread was at.

    python judge.py FOLDER script.py [arguments]

It is the judge of what a report says of lines, and shares nothing with it: a thread that looks once a millisecond.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import sysconfig
import threading
import time

EVERY_S = 0.001
_PACKAGES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


def line_of(ident: int) -> tuple[str, int, str] | None:
    """File, line and function of the innermost frame of a thread that is of no package and not this file."""
    frame = sys._current_frames().get(ident)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(("<", *_PACKAGES)) and f"{os.sep}stepscope{os.sep}" not in path and path != __file__:
            return path, frame.f_lineno, frame.f_code.co_name
        frame = frame.f_back
    return None


def main() -> None:
    """Run it."""
    folder, script, *arguments = sys.argv[1:]
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    seen: list[tuple[int, tuple[str, int, str] | None]] = []
    over, ident = threading.Event(), threading.get_ident()

    def look() -> None:
        while not over.wait(EVERY_S):
            seen.append((time.time_ns(), line_of(ident)))

    thread = threading.Thread(target=look, name="judge", daemon=True)
    thread.start()
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        over.set()
        thread.join()
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{os.getpid()}.seen.json"), "w", encoding="utf-8") as file:
            json.dump(seen, file)


if __name__ == "__main__":
    main()
