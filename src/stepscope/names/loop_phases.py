"""What the names of functions and ranges say of a phase of a training loop that is no training."""

from __future__ import annotations

from enum import StrEnum

from stepscope.regex import regex

_LONGEST = 2_048
_WORDS = regex(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_FRAME = regex(r"^.+?\(\d+\): (?P<function>.+)$")


class LoopPhase(StrEnum):
    """What a training loop does between stretches of training."""

    VALIDATION = "validation"
    SAMPLING = "sampling"
    SAVING = "saving"
    OTHER = "passes of a model that teach it nothing"


_KINDS = (
    (
        LoopPhase.VALIDATION,
        frozenset(("eval", "evaluate", "evaluation", "valid", "validate", "validation", "val", "test", "estimate")),
    ),
    (
        LoopPhase.SAMPLING,
        frozenset(("sample", "samples", "sampling", "generate", "generation", "predict", "prediction", "inference")),
    ),
    (LoopPhase.SAVING, frozenset(("save", "saving", "checkpoint", "checkpoints", "dump"))),
)


def loop_phase(name: str) -> LoopPhase | None:
    """The phase that a function or range is called after; None where its name says none.

    >>> loop_phase("train.py(20): estimate_loss"), loop_phase("train.py(9): step")
    (<LoopPhase.VALIDATION: 'validation'>, None)
    """
    text = name[:_LONGEST]
    match = _FRAME.match(text)
    words = {word.lower() for word in _WORDS.findall(match["function"] if match else text)}
    return next((kind for kind, known in _KINDS if not words.isdisjoint(known)), None)
