"""``docs/guides-coverage.md``: how much of what tuning guides promise is shown, from the tests' own table."""

from __future__ import annotations

import runpy
from pathlib import Path

from generator.markdown import table

STATEMENTS = Path(__file__).parents[2] / "tests" / "guides" / "statements.py"

INTRO = """\
# What tuning guides promise

The published tuning guides of four profilers, taken apart into {count} statements of what a tool captures, shows,
computes or advises: [each, with the command that shows it](../tests/guides/statements.py). Each has a test in
`tests/guides` that builds the situation, knows what is true of it, and asks what the command prints. Made from there by
`make docs`.

*Made* are those of profiles that only a GPU or TPU writes: the test makes one, with the fields its profiler writes. The
others are shown on recordings of CPUs and of real jobs, or need no device.
"""


def page() -> str:
    """A row per guide."""
    told = runpy.run_path(str(STATEMENTS))
    statements = told["STATEMENTS"]
    rows = []
    for letter, (title, link) in told["GUIDES"].items():
        of_guide = [one for one in statements if one.id.startswith(letter)]
        made = sum(one.gpu for one in of_guide)
        span = f"{of_guide[0].id} to {of_guide[-1].id}"
        rows.append((f"[{title}]({link})", span, str(len(of_guide)), str(made), str(len(of_guide) - made)))
    titles = ("guide", "ids", "statements", "made", "recorded, or no device needed")
    return "\n".join((INTRO.format(count=len(statements)), table(titles, rows)))
