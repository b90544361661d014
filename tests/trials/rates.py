"""How often trials are right, simulated: the same job on both sides, and effects of known size.

python -m tests.trials.rates        # writes docs/trial-rates.json; then make docs
"""

from __future__ import annotations

import json
from collections import Counter

import numpy as np

from stepscope.trials.interval import LOOKS, measured
from tests.kit.traces import REPOSITORY

FILE = REPOSITORY / "docs" / "trial-rates.json"
SPREAD = 0.02
"""By how much runs of one job differ (standard deviation): some percent on machines that others use too."""
SPREADS, EFFECTS, TRIALS = (0.01, 0.02, 0.05), (0.0, 0.05, 0.10, 0.30), 10_000


def rate(effect: float, *, spread: float, trials: int, seed: int = 0) -> dict[str, float]:
    """The share of trials that end with each verdict, where a cure takes this share of the step away; runs drift by as
    much as they differ over a block, and each arm is looked at until it can be told."""
    random = np.random.default_rng(seed)
    ended: Counter[str] = Counter()
    for _ in range(trials):
        before: list[float] = []
        after: list[float] = []
        verdict = "unknown"
        for _look in range(LOOKS):
            drift = np.linspace(0, spread, 4) * random.normal()
            noise = random.normal(0, spread, 4)
            one, two, three, four = 1 + drift + noise
            before += [one, four]
            after += [(1 - effect) * two, (1 - effect) * three]
            verdict = measured(before, after).verdict
            if verdict != "unknown":
                break
        ended[verdict] += 1
    return {verdict: ended[verdict] / trials for verdict in ("helps", "hurts", "nothing", "unknown")}


def rows() -> list[dict[str, float]]:
    """Every spread with every effect."""
    return [
        {"spread": spread, "effect": effect, "trials": TRIALS} | rate(effect, spread=spread, trials=TRIALS)
        for spread in SPREADS
        for effect in EFFECTS
    ]


if __name__ == "__main__":
    FILE.write_text("[\n" + ",\n".join(map(json.dumps, rows())) + "\n]\n", encoding="utf-8")
