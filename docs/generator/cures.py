"""``docs/cures.md``: what ``stepscope try`` can put into a job."""

from __future__ import annotations

from textwrap import dedent

from generator.markdown import section, table
from stepscope.capture.cures import CURES
from stepscope.capture.cures.cure import Cure
from stepscope.trials.wording import by_hand

INTRO = """\
# Cures that are tried

What `stepscope try` can put into a job without an edit ([how](guides/try.md)), in the order in which it does. Made from
`src/stepscope/capture/cures/` by `make docs`.
"""


def page() -> str:
    """The whole page."""
    overview = table(("cure", "what it is", "called for by"), [_row(cure) for cure in CURES])
    return "\n".join((INTRO, overview, *(_section(cure) for cure in CURES)))


def _row(cure: Cure) -> tuple[str, ...]:
    rules = ", ".join(f"[`{rule}`](rules.md)" for rule in cure.answers)
    return f"`{_name(cure)}`", cure.title, rules + (", every job on a CPU" if cure.on_cpu else "")


def _name(cure: Cure) -> str:
    return cure.name if cure.values is None else f"{cure.name}=N"


def _section(cure: Cure) -> str:
    edits = cure.patch(None if cure.values is None else 1)
    lines = by_hand(edits[-1], {}, "N").splitlines()
    code = dedent("\n".join(line for line in lines if line.startswith("    ")))
    said = [
        f"* Sets {cure.sets}.",
        f"* May break: {cure.may_break}.",
        f"* Undone: {cure.undone}.",
        *(["* Results differ by its nature: it computes with other precision."] if cure.changes_numbers else []),
        *(["* For GPUs."] if cure.device_only else []),
    ]
    return section(_name(cure), "\n".join(said), f"```\n{code}\n```" if code else "")
