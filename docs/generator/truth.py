"""``docs/truth.md``: how often causes are found, sized and predicted right, from the figures of ``docs/truth.json``."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from generator.markdown import section, table
from generator.tried import tried

Row = dict[str, Any]

INTRO = """\
# What is true of the figures

A profile does not say what a step would take without a cause. A simulation does: so most of this page is of generated
profiles, and of real ones into which a stall of known size was put. How real jobs answered to their cures is
[below](#jobs-cured); for yours [compare](guides/compare.md) the profiles before and after. What was tried on which
hardware: [where it runs](guides/where-it-runs.md#what-was-verified-and-on-what).

{summary}

[Single rows](truth.json). Tests in `tests/truth` fail where they no longer hold; modules of that folder,
`tests/newcomer` and `tests/trials` measure anew (`python -m tests.truth.measure`), and `make docs` writes this page.
"""

JOBS = """\
Jobs as a new user has them (`tests/newcomer`), each run by `stepscope run`, cured as its finding says, and timed bare
in turns before and after; medians of three on two virtual cores, with PyTorch 2.13. *Promised* is the middle of
three recordings; *step off* is how far the step then is from it, *gain off* how far what was gained is from what was
to be gained."""

REPAIRED = """\
A real program before and after the repair its first finding asks for (`{pair}`): a step of {before} became {after},
predicted were {predicted}: the loader's new workers slow the training thread, and that profile, unlike those of
`stepscope run`, does not say how few cores there are."""

SIMULATED = """\
* *Planted causes* (`planted`, {planted} cases, of which {healthy} are healthy): a loop is simulated with a cause and
  without. The first finding's cost is held against what was planted, its prediction against the run without.
* *Several at once* (`several`, {several} causes): all must be found, nothing else, in the order of what their repair
  gains.
* *Before and after* (`pairs`): three waits in one loss (`examples/masked_loss`), taken out one by one."""

INJECTED = """\
Stalls of nine kinds and of 1 to 60 % of the step that then holds them are put into each used step of six real
profiles, at instants at which the device was idle (`injected`): all NVIDIA's, as in those of other makes the host runs
ahead all the time. Stalls below the [limits](limits.md) are to be quiet. {hidden} are told under `-v`, since the fix of
a finding above hides them. *Category* is the error of what the accounting books, *saving* that of what a fix saves."""

XPROF = """\
What ops compute and move by their programs (HLO), against `hlo_stats` of XProf 2.24.2 on the real XPlane files at
hand ([{ops} ops](xprof.json)), agrees within 1 %, but for: {reasons}.

Totals of the same files, and of one of TensorFlow ([{totals} figures](xprof-totals.json)): counts are equal, times
agree within 0.1 %, shares within 2 % of the step, but for: {others}. Tests hold captures of JAX, TensorFlow
and Keras against it as well."""

MISREAD = """\
Good profiles spoiled in {ways} ways ([each](misread.json)): clocks that drift, times in a wrong unit, events twice,
lost, in another order, markers shifted. In {withheld}
of {all} cases a notice says what is wrong, and no cost, saving or verdict is told; in {right} what is told is what the
good profile tells, within 6 % of the step and 10 % of the cost of its first finding; in {wrong} it is wrong."""

TRIALS = """\
How often `stepscope try` calls a cure a change, in {trials:,} simulated trials each of up to four blocks of two runs of
either side: means of runs differ (standard deviation), and drift within a block, by so much. At most 5 of 100 that do
nothing may be called a change."""


def page() -> str:
    """What was measured, shortest first; single rows stay in the files of figures."""
    figures = json.loads((Path(__file__).parents[1] / "truth.json").read_text(encoding="utf-8"))
    ill, healthy = _by_health(figures)
    counts = {
        "planted": len(ill) + len(healthy),
        "healthy": len(healthy),
        "several": sum(row["rule"] != "all" for row in figures["several"]),
    }
    injected = figures["injected"]
    hidden = f"{sum(row['hidden'] for row in injected)} of {len(injected)}"
    return "\n".join(
        [
            INTRO.format(summary=_summary(figures)),
            section("Jobs, cured", JOBS, table(_JOB_TITLES, map(_job, _rows_of("jobs")))),
            section("Before and after, real", *map(_repaired, figures["repaired"])),
            section("Simulated", SIMULATED.format(**counts)),
            section(
                "Stalls in real profiles", INJECTED.format(hidden=hidden), table(_TRACE_TITLES, _by_trace(injected))
            ),
            section("Against XProf", _xprof()),
            section("Plausible but wrong", _misread()),
            section("Cures, tried", *tried(_rows_of("trials"))),
            section("Trials", TRIALS.format(trials=_rows_of("trial-rates")[0]["trials"]), _trials()),
        ]
    )


def _xprof() -> str:
    ops, totals = _rows_of("xprof"), _rows_of("xprof-totals")
    reasons, others = (_reasons(rows) for rows in (ops, totals))
    return XPROF.format(ops=len(ops), totals=len(totals), reasons=reasons, others=others)


def _reasons(rows: list[Row]) -> str:
    counted = Counter(row["reason"] for row in rows if row["reason"])
    return "; ".join(f"{reason} ({count})" for reason, count in counted.most_common())


def _misread() -> str:
    rows = _rows_of("misread")
    said = Counter(value for row in rows for key, value in row.items() if key != "way")
    right = sum(said.values()) - said["withheld"] - said["wrong"]
    counts = {"withheld": said["withheld"], "right": right, "wrong": said["wrong"], "all": sum(said.values())}
    return MISREAD.format(ways=len(rows), **counts)


_SURE = 0.3
"""Cures of so much of the step are found in every trial: they have no rows."""


def _trials() -> str:
    assert all(row["helps"] == 1 for row in _rows_of("trial-rates") if row["effect"] >= _SURE)
    told: dict[float, list[str]] = {}
    effects = {row["effect"]: None for row in _rows_of("trial-rates") if row["effect"] < _SURE}
    for row in _rows_of("trial-rates"):
        if row["effect"] in effects:
            told.setdefault(row["spread"], []).append(_percent(row["helps"] + row["hurts"]))
    assert {len(cells) for cells in told.values()} == {len(effects)}
    titles = (f"a cure of {_percent(effect)}" if effect else "one that does nothing" for effect in effects)
    return table(("runs differ by", *titles), ((_percent(spread), *cells) for spread, cells in told.items()))


def _rows_of(name: str) -> list[Row]:
    found: list[Row] = json.loads((Path(__file__).parents[1] / f"{name}.json").read_text(encoding="utf-8"))
    return found


_JOB_TITLES = (
    "job",
    "cause",
    "found first",
    "cure",
    "step, ms",
    "promised, ms",
    "achieved, ms",
    "step off",
    "gain off",
    "why",
)
_WITHIN = 0.15
_TRACE_TITLES = ("profile", "steps", "found", "of", "quiet below the limits", "category: worst", "saving: worst")


def _by_trace(injected: list[Row]) -> list[tuple[str, ...]]:
    """A row per profile."""
    made = []
    for trace in dict.fromkeys(row["trace"] for row in injected):
        rows = [row for row in injected if row["trace"] == trace]
        told, below = _telling(rows), [row for row in rows if not row["told"]]
        quiet = f"{sum(not row['found'] for row in below)} of {len(below)}"
        found = [row for row in told if row["found"]]
        worst = _errors(rows, "cost_error")[1], _errors(found, "saving_error")[1]
        made.append((trace, str(rows[0]["steps"]), str(len(found)), str(len(told)), quiet, *worst))
    return made


def _telling(rows: list[Row]) -> list[Row]:
    """The stalls that are to be findings."""
    return [row for row in rows if row["told"] and not row["hidden"]]


def _errors(rows: list[Row], key: str) -> tuple[str, str]:
    """The median and the worst error."""
    errors = sorted(row[key] for row in rows if row[key] is not None)
    return (_percent(median(errors)), _percent(errors[-1])) if errors else ("–", "–")


def _by_health(figures: dict[str, list[Row]]) -> tuple[list[Row], list[Row]]:
    """Planted cases with a cause, and those without."""
    planted = figures["planted"]
    return [row for row in planted if not row["quiet"]], [row for row in planted if row["quiet"]]


def _summary(figures: dict[str, list[Row]]) -> str:
    ill, healthy = _by_health(figures)
    ruled = [row for row in ill if row["rule"]]
    causes = [row for row in figures["several"] if row["rule"] != "all"]
    together = [row for row in figures["several"] if row["rule"] == "all"]
    pairs, repaired = figures["pairs"], figures["repaired"]
    injected = figures["injected"]
    named = [row for row in _telling(injected) if row["found"]]
    category, saving = _errors(injected, "cost_error")[0], _errors(named, "saving_error")[0]
    lines = (
        ("planted causes that a rule finds first", _share(ruled, "first"), "all"),
        ("worst error of a planted cost", _worst(ill, "cost_error"), "5 %"),
        ("worst error of the step predicted without it", _worst(ill, "prediction_error"), "10 %"),
        ("causes found among several", _share(causes, "found"), "all"),
        ("cases of several in the right order", _share(together, "in_order"), "all"),
        ("worst error of a cost among several", _worst(causes, "cost_error"), "5 %"),
        ("worst error of a saving among several", _worst(causes, "gain_error"), "10 %"),
        ("worst error of the step predicted without all", _worst(together, "step_error"), "10 %"),
        ("worst error of a predicted step, before and after, simulated", _worst(pairs, "step_error"), "10 %"),
        ("the same, of a real program", _worst(repaired, "step_error"), "10 %"),
        ("worst error of a saving, of a real program", _worst(repaired, "gain_error"), "10 %"),
        ("stalls of 1–60 % of the step found in real profiles", _share(_telling(injected), "found"), "all"),
        ("of these, with the code or event named", _share(named, "place"), "all"),
        ("median error of their category, and of the saving", f"{category}, {saving}", "5 %, 10 %"),
        ("cures of jobs within 15 % of what was promised", _kept(_rows_of("jobs")), "all"),
        ("findings on healthy profiles", str(sum(row["findings"] for row in healthy)), "none"),
    )
    return table(("", "measured", "target"), lines).rstrip()


def _kept(jobs: list[Row]) -> str:
    return f"{sum(abs(_off_promise(row)) <= _WITHIN for row in jobs)} of {len(jobs)}"


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


def _repaired(row: Row) -> str:
    times = {
        key: _ms(row[f"{name}_ns"])
        for key, name in (("before", "step"), ("after", "after"), ("predicted", "predicted"))
    }
    return REPAIRED.format(pair=row["pair"], **times)


def _off_promise(row: Row) -> float:
    """How far the step is off what was promised, as a share of it; 0 within a range."""
    return float(row["achieved_ms"] / _nearest_promised(row) - 1)


def _nearest_promised(row: Row) -> float:
    return float(min(max(row["achieved_ms"], row["best_ms"]), row["promised_ms"]))


def _job(row: Row) -> tuple[str, ...]:
    best, promised = (f"{row[key]:.1f}" for key in ("best_ms", "promised_ms"))
    told = promised if best == promised else f"{best} to {promised}"
    gained, to_gain = (row["bare_ms"] - left for left in (row["achieved_ms"], _nearest_promised(row)))
    off, gain_off = (_said_off(share, best != promised) for share in (_off_promise(row), gained / to_gain - 1))
    times = f"{row['bare_ms']:.1f}", told, f"{row['achieved_ms']:.1f}", off, gain_off
    found = f"`{row['cause']}`", _yes(row["found_first"])
    return f"`{row['job']}`", *found, row["cure"], *times, row["why_missed"] or "–"


def _said_off(share: float, is_range: bool) -> str:
    return "within" if not share and is_range else f"{100 * share:+.0f} %"
