"""The pages below a notebook's cell, or in a browser window where there is no notebook."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from stepscope.replacing import write_text
from stepscope.units import format_bytes
from stepscope.web.assemble import ShownRun, html_file
from stepscope.web.limits import NOTEBOOK_PACK_BYTES

HEIGHT = 760
"""Pixels of the frame below a cell."""
_TOO_LARGE = "The trace ({size}) is too large to be kept inside a notebook."


def frame(run: ShownRun, height: int = HEIGHT) -> str:
    """A frame that holds the pages: it needs no address, so it works behind any prefix and in a saved notebook.

    The frame may run its scripts and nothing else: it cannot reach the notebook. A trace too large to be kept in a
    notebook is left out, which the page says.
    """
    size = len(run.pack or b"")
    if size > NOTEBOOK_PACK_BYTES:
        run = replace(run, pack=None, no_pack=_TOO_LARGE.format(size=format_bytes(size)))
    page = html.escape(html_file([run]))
    return (
        f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" title="stepscope" '
        f'style="width: 100%; height: {int(height)}px; border: 1px solid #d9dee5; border-radius: 6px"></iframe>'
    )


def show(run: ShownRun, height: int = HEIGHT) -> Path | None:
    """Show the pages: below the cell in a notebook; else in a browser, from the file whose path is returned."""
    display = _display()
    if display is not None:
        display({"text/html": frame(run, height), "text/plain": run.document["summary"]["verdict"]}, raw=True)
        return None
    made, name = tempfile.mkstemp(prefix="stepscope-", suffix=".html")
    os.close(made)
    path = Path(name)
    try:
        write_text(path, html_file([run]))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    webbrowser.open(path.as_uri())
    return path


def _display() -> Callable[..., object] | None:
    """What shows rich output in this process; None outside notebooks."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display  # type: ignore[import-not-found, unused-ignore]

    return display  # type: ignore[no-any-return, unused-ignore]
