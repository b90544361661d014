"""Changes that tests predict the effect of."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.whatif.change import Change
from stepscope.whatif.predictor import Predictor, predictor


def faster(facts: Facts, share: float) -> Change:
    """Every op takes a share of its time."""
    ns = np.concatenate([activity.end - activity.start for activity in facts.activities])
    return Change(op_ns=np.rint(ns * share).astype(np.int64))


def replayed(facts: Facts) -> Predictor:
    found = predictor(facts)
    assert isinstance(found, Predictor)
    return found
