"""Standard output and error: what goes where, and how it looks there."""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import sys
from typing import IO

_SUBSTITUTES = str.maketrans("█▓▒░·–—…µ×→⚠", "#=%.|--~ux>!")
"""ASCII stand-ins of the same width for what a narrow encoding lacks."""

_WIDTH_OF_A_FILE = 100


def prepare_streams() -> None:
    """Let both streams write any text: what their encoding lacks gets a stand-in, never an error."""
    codecs.register_error("stepscope.stand_in", _stand_in)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="stepscope.stand_in")


def _stand_in(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end].translate(_SUBSTITUTES)
    return wrong.encode("ascii", "backslashreplace").decode("ascii"), error.end


def say(sentence: str, *details: str) -> None:
    """One sentence for a person, on stderr, and lines below it."""
    from stepscope.report.names import visible

    to_stderr("\n  ".join((f"stepscope: {visible(sentence)}", *map(visible, details))) + "\n")


def to_stderr(text: str) -> None:
    """Write it, where that can be written: a full disk's file and a reader that has gone leave the exit status."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def silence(stream: IO[str]) -> None:
    """Nobody can read a stream any more: let the interpreter's last flush go nowhere instead of failing."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):  # Not a real file, as under a test.
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def stdout_lost(error: Exception) -> bool:
    """Whether an error is that standard output cannot be written, which goes nowhere then: of files it says which."""
    lost = isinstance(error, OSError) and error.filename is None and error.errno in _NO_ROOM
    if lost:
        silence(sys.stdout)
    return lost


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def wants_color() -> bool:
    """Whether stdout is a terminal that shows colour, and nobody asked for none (NO_COLOR, TERM=dumb)."""
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return False
    from rich.console import Console

    console = Console(file=sys.stdout)
    return console.color_system is not None and not console.legacy_windows


def stdout_width() -> int:
    """Columns of the terminal; of a file or pipe $COLUMNS, else a width that suits an editor."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return _WIDTH_OF_A_FILE
