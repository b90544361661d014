"""``docs/cures.md``: what ``stepscope try`` can put into a job."""

from __future__ import annotations

from generator.markdown import table
from stepscope.capture.cures import CURES
from stepscope.capture.cures.cure import Cure

INTRO = """\
# Cures that are tried

What `stepscope try` can put into a job without an edit ([how](guides/try.md)), in the order in which it does, each
called for by findings of [these rules](rules.md), on a CPU also by every job (*CPU*). `stepscope try --list` also
says how to undo it. ≈: results differ, as it computes with other precision. Models, loaders, datasets, optimizers and
functions are all of the job's. Made from `src/stepscope/capture/cures/` by `make docs`.
"""


def page() -> str:
    """The whole page."""
    return "\n".join((INTRO, table(("cure", "sets", "may break", "called for by"), map(_row, CURES))))


def _row(cure: Cure) -> tuple[str, ...]:
    name = cure.name if cure.values is None else f"{cure.name}=N"
    where = " (GPUs)" if cure.device_only else ""
    calls = [*(f"`{rule}`" for rule in cure.answers), *(["CPU"] if cure.on_cpu else [])]
    sets = cure.sets.removesuffix(" for every loader").removesuffix(" for every model").removesuffix(" of yours")
    return f"`{name}`{where}{' ≈' if cure.changes_numbers else ''}", sets, cure.may_break, ", ".join(calls)
