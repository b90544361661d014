"""``docs/cures.md``: what ``stepscope try`` can put into a job."""

from __future__ import annotations

from generator.markdown import table
from stepscope.capture.cures import CURES
from stepscope.capture.cures.cure import Cure

INTRO = """\
# Cures that are tried

What `stepscope try` can put into a job without an edit ([how](guides/try.md)), in the order in which it does; each is
called for by findings of [these rules](rules.md). `stepscope try --list` also says how to undo it; a trial shows the
change as a patch. ≈: results differ by its nature, as it computes with other precision. Made from
`src/stepscope/capture/cures/` by `make docs`.

Not among them: values read or printed every N steps, and batches that JAX sends ahead. Whether a job needs a value at
once, and what its loop runs over, cannot be seen from outside; findings that call for these are named as not tried.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((INTRO, table(("cure", "sets", "may break", "called for by"), map(_row, CURES))))


def _row(cure: Cure) -> tuple[str, ...]:
    name = cure.name if cure.values is None else f"{cure.name}=N"
    where = " (GPUs)" if cure.device_only else ""
    calls = [*(f"`{rule}`" for rule in cure.answers), *(["every job on a CPU"] if cure.on_cpu else [])]
    return f"`{name}`{where}{' ≈' if cure.changes_numbers else ''}", cure.sets, cure.may_break, ", ".join(calls)
