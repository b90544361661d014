"""``docs/truth.md``: how often causes are found, sized and predicted right, from the figures of ``docs/truth.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from generator.markdown import section, table

Row = dict[str, Any]

INTRO = """\
# What is true of the figures

Made from `docs/truth.json` by `make docs`; `python -m tests.truth.measure` measures those figures anew, and tests in
`tests/truth` fail where they no longer hold.

A profile does not say what a step would take without a cause. A simulation does: the same loop runs with and without
it. So most of this page is of generated profiles, and of real ones into which a stall of known size was put. What it
does not show is how real programs answer to a repair: for that [compare](guides/what-if.md) your own profiles.

{summary}
"""

PLANTED = """\
A loop is simulated, once with a cause and once without. *Cost* is the error of the time booked to the cause against
what was planted. *Prediction* is the error of the step time the replay predicts against the run without the cause;
steps set apart as slow are counted in. A dash stands where there is nothing to compare: no rule is settled for the
cause, or no replay can be made."""

PAIRS = """\
`examples/masked_loss`, simulated: three waits in one loss. The profile before predicts what taking out one, two and all
of them gains; the runs after are simulated too."""

STALLED = """\
In each used step of a real profile a stall is put in at an instant at which the device was idle
(`tests/kit/inject.py`). *Found* says whether the rule for it has a finding; real profiles have causes of their own,
which may cost more and then come first. A profile with one used step has no finding of what must come back to be one
(compiling, Python code)."""

HEALTHY = "Generated profiles in which nothing is wrong, by the findings they get: there must be none."


def page() -> str:
    """The tables."""
    figures = json.loads((Path(__file__).parents[1] / "truth.json").read_text(encoding="utf-8"))
    planted, pairs, stalled = figures["planted"], figures["pairs"], figures["stalled"]
    ill, healthy = [row for row in planted if not row["quiet"]], [row for row in planted if row["quiet"]]
    return "\n".join(
        [
            INTRO.format(summary=_summary(ill, healthy, pairs, stalled)),
            section("Planted causes", PLANTED, table(_TITLES, map(_planted, ill))),
            section("Before and after", PAIRS, table(_PAIR_TITLES, map(_pair, pairs))),
            section("Real profiles with a stall put in", STALLED, table(_STALL_TITLES, map(_stalled, stalled))),
            section("Healthy profiles", HEALTHY, table(("case", "what it is", "findings"), map(_healthy, healthy))),
        ]
    )


_TITLES = ("case", "what it is", "found first", "cost", "prediction", "findings")
_PAIR_TITLES = ("waits taken out", "before", "after", "predicted", "error of the step", "error of the gain")
_STALL_TITLES = ("profile", "stall", "size", "used steps", "found", "first finding", "cost", "prediction")


def _summary(ill: list[Row], healthy: list[Row], pairs: list[Row], stalled: list[Row]) -> str:
    named = [row["first"] for row in ill if row["first"] is not None]
    repeated = [row for row in stalled if row["steps"] > 1]
    lines = (
        ("planted causes with a settled rule that are found first", f"{sum(named)} of {len(named)}", "all"),
        ("largest error of a planted cost", _worst(ill, "cost_error"), "5 %"),
        ("largest error of a predicted step, planted", _worst(ill, "prediction_error"), "10 %"),
        ("largest error of a predicted step, before and after", _worst(pairs, "step_error"), "10 %"),
        ("stalls in real profiles of several steps that are found", _share(repeated, "found"), "all"),
        ("largest error of a stall's cost", _worst(stalled, "cost_error"), "5 %"),
        ("largest error of a predicted step without the stall", _worst(stalled, "prediction_error"), "10 %"),
        ("findings on healthy profiles", str(sum(row["findings"] for row in healthy)), "none"),
    )
    return table(("", "measured", "target"), lines).rstrip()


def _worst(rows: list[Row], key: str) -> str:
    return _percent(max(row[key] for row in rows if row[key] is not None))


def _share(rows: list[Row], key: str) -> str:
    return f"{sum(bool(row[key]) for row in rows)} of {len(rows)}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f} ms"


def _yes(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"


def _planted(row: Row) -> tuple[str, ...]:
    errors = _percent(row["cost_error"]), _percent(row["prediction_error"])
    return f"`{row['case']}`", row["what"].replace("``", "`"), _yes(row["first"]), *errors, str(row["findings"])


def _pair(row: Row) -> tuple[str, ...]:
    times = (_ms(row[key]) for key in ("step_ns", "after_ns", "predicted_ns"))
    return str(row["fixed"]), *times, _percent(row["step_error"]), _percent(row["gain_error"])


def _stalled(row: Row) -> tuple[str, ...]:
    place = row["trace"], row["kind"], _ms(row["delay_ns"]), str(row["steps"])
    first = f"`{row['first']}`" if row["first"] else "–"
    return *place, _yes(row["found"]), first, _percent(row["cost_error"]), _percent(row["prediction_error"])


def _healthy(row: Row) -> tuple[str, ...]:
    return f"`{row['case']}`", row["what"].replace("``", "`"), str(row["findings"])
