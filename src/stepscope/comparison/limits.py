"""Thresholds of comparisons: each says where it comes from."""

from __future__ import annotations

from typing import Final

COMPARED_STEPS: Final = 3
"""With fewer steps of a run its noise is not known: two steps give an interval 13 times their spread."""

COMPARED_RUNS: Final = 4
"""Runs of both sides together from which on their own spread is their noise: two degrees of freedom, t = 4.3 (with one
it would be 12.7)."""

STEPS_FOLLOW: Final = 0.3
"""How much a step resembles the one before, where too few steps tell it. Our judgement: loaders, allocators and clocks
change more slowly than a step lasts."""

STEPS_FOLLOW_SEEN: Final = 10
"""The steps that this guess counts for beside those that were recorded: chosen so that simulated runs of the same code
whose steps follow each other by 0.7 are seldom called different (docs/decisions/0010)."""

APART_STEPS: Final = 5
"""With fewer steps one of them is no rare one."""

APART_STEPS_SHARE: Final = 0.2
"""At most so many steps are left out of a comparison as far slower; more of them are what the run is like. What
trimmed means leave out at either end (Yuen, Biometrika 61, 1974)."""

APART_SPREADS: Final = 5.0
"""Such a step lies so many standard deviations above the median (from the median absolute deviation): steps without
bad moments reach that in one of three million (normal distribution)."""

RUN_TO_RUN_SHARE: Final = 0.02
"""Standard deviation of the mean step of runs of the same code, where one run each is compared: clocks, temperature,
neighbours, where memory lies. Between the 0.56 % of dedicated machines and the 2.66 % of hosted ones that CodSpeed
measured over 100 runs ("Benchmarks in CI: Escaping the Cloud Chaos", 2025). Several runs of each side replace it by
what they measure."""

UNCHANGED_SHARE: Final = 0.10
"""A step time is unchanged where the interval leaves out changes of this share; else it cannot be told. One quiet run
of each side leaves out 5.5 % (1.96 √2 ``RUN_TO_RUN_SHARE``). Our judgement."""

COMPARED_ITEM_SHARE: Final = 0.005
"""A kernel, op, layer or cause is listed where its time changed by this share of a step, beyond noise."""
