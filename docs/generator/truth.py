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

A profile does not say what a step would take without a cause. A simulation does: the same loop runs with and without
it. So most of this page is of generated profiles, and of real ones into which a stall of known size was put. How real
jobs answered to their cures is [below](#jobs-cured), and not always to our advantage; for yours
[compare](guides/what-if.md) the profiles before and after. What was tried on which hardware:
[where it runs](guides/where-it-runs.md#what-was-verified-and-on-what).

{summary}

Single rows are in [truth.json](truth.json). `python -m tests.truth.measure` measures them anew, tests in `tests/truth`
fail where they no longer hold, and `make docs` writes this page.
"""

JOBS = """\
Jobs as a new user has them (`tests/newcomer`), each run by `stepscope run`, cured as its finding says, and timed bare
in turns before and after; medians of three on two cores of an AMD EPYC, with PyTorch 2.13. *Promised* is the middle of
three recordings. Jobs whose findings promise no time have no row. `python -m tests.newcomer.measure` measures anew."""

REPAIRED = """\
Profiles recorded of a real program before and after the repair its first finding asks for (`{pair}`): a step of
{before} became {after}, predicted were {predicted}. Too short: on two cores the loader's new worker processes slow
the training thread, and that profile does not say how many cores there are. What `stepscope run` records says it:
the table above."""

SIMULATED = """\
* *Planted causes* (`planted`, {planted} cases, of which {healthy} are healthy): a loop is simulated once with a cause
  and once without. The cost that the first finding tells is held against what was planted, its prediction against the
  run without.
* *Several at once* (`several`, {several} causes): simulated also without each and without any. All must be found,
  nothing else, in the order of what their repair gains.
* *Before and after* (`pairs`): three waits in one loss (`examples/masked_loss`), taken out one by one."""

INJECTED = """\
Stalls of nine kinds and of 1 to 60 % of the step that then holds them are put into each used step of six real
profiles, at instants at which the device was idle (`tests/kit/inject.py`; `stalled` and `injected`). They are
NVIDIA's: in the profiles of other makes that we have the host runs ahead all the time, so that no instant is known
at which a stall costs what it takes. Stalls below the [limits](limits.md) are to be quiet. {hidden} are told under
`-v`, since the fix of a finding above hides them. *Category* is the error of what the accounting books, *saving*
that of what a fix saves."""

XPROF = """\
What ops compute and move by their programs (HLO), against `hlo_stats` of XProf 2.24.2 on the real XPlane files at
hand ([{ops} ops](xprof.json)), agrees within 1 %, but for: {reasons}. Where a library's call runs several kernels
XProf counts the work once for each, stepscope once for each execution.

Totals of the same files, and of one of TensorFlow ([{totals} figures](xprof-totals.json)): counts are equal, times
agree within 0.1 %, shares within 2 % of the step, but for: {others}. A test holds captures of JAX, of a loop of
TensorFlow, of MirroredStrategy and of Keras against XProf in the same way. `python -m tests.truth.xprof` and
`python -m tests.truth.xprof_totals` measure anew."""

MISREAD = """\
What converters, mistaken exporters and full buffers make of good profiles, simulated and real, in {ways} ways
(`tests/kit/wrong.py`, `python -m tests.truth.misread`, [each](misread.json)): clocks shifted or drifting, times in
a wrong unit, events twice, lost, in another order, markers shifted. In {withheld} of {all} cases a notice says what
is wrong, and no cost, saving or verdict is told; in {right} what is told is what the good profile tells, within 6 %
of the step and 10 % of the cost of its first finding; in {wrong} it is wrong."""

TRIALS = """\
How often `stepscope try` is right, simulated: runs of a job differ by so much (standard deviation of their means), and
drift by as much within a block; a cure takes so much of the step away. Each row is {trials:,} trials, each of up to
four blocks of two runs of either side, until it can be told (`python -m tests.trials.rates`). A cure that does nothing
is to be called a change in at most 5 of 100."""


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


_VERDICTS = {"helps": "helps", "hurts": "hurts", "nothing": "does nothing", "unknown": "cannot be told"}


def _trials() -> str:
    rows = [
        (_percent(row["spread"]), _percent(row["effect"]), *(_percent(row[verdict]) for verdict in _VERDICTS))
        for row in _rows_of("trial-rates")
    ]
    return table(("runs differ by", "the cure takes away", *_VERDICTS.values()), rows)


def _rows_of(name: str) -> list[Row]:
    found: list[Row] = json.loads((Path(__file__).parents[1] / f"{name}.json").read_text(encoding="utf-8"))
    return found


_JOB_TITLES = ("job", "cause", "found first", "cure", "step", "promised", "achieved", "off", "gain off", "why")
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
    stalled, pairs, repaired = (figures[name] for name in ("stalled", "pairs", "repaired"))
    injected = figures["injected"]
    named = [row for row in _telling(injected) if row["found"]]
    category, saving = _errors(injected, "cost_error")[0], _errors(named, "saving_error")[0]
    lines = (
        ("planted causes that a rule is to find first, and does", _share(ruled, "first"), "all"),
        ("largest error of a planted cost", _worst(ill, "cost_error"), "5 %"),
        ("largest error of a predicted step, planted", _worst(ill, "prediction_error"), "10 %"),
        ("causes found among several", _share(causes, "found"), "all"),
        ("cases of several ranked by what their repair gains", _share(together, "in_order"), "all"),
        ("largest error of a cost among several", _worst(causes, "cost_error"), "5 %"),
        ("largest error of a saving among several", _worst(causes, "gain_error"), "10 %"),
        ("largest error of a predicted step, several fixed", _worst(together, "step_error"), "10 %"),
        ("largest error of a predicted step, before and after, simulated", _worst(pairs, "step_error"), "10 %"),
        ("largest error of a predicted step, before and after, real", _worst(repaired, "step_error"), "10 %"),
        ("largest error of a saving, before and after, real", _worst(repaired, "gain_error"), "10 %"),
        ("stalls of half a step in real profiles that are found", _share(stalled, "found"), "all"),
        ("largest error of a stall's cost", _worst(stalled, "cost_error"), "5 %"),
        ("largest error of a predicted step without the stall", _worst(stalled, "prediction_error"), "10 %"),
        ("stalls of 1–60 % of the step in real profiles that are found", _share(_telling(injected), "found"), "all"),
        ("of these, with the code or event named", _share(named, "place"), "all"),
        ("median error of their category, and of the saving", f"{category}, {saving}", "5 %, 10 %"),
        ("cures of jobs that achieve what was promised within 15 %", _kept(_rows_of("jobs")), "all"),
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
    """How far what was achieved is off what was promised, as a share of it; 0 within a range."""
    nearest = min(max(row["achieved_ms"], row["best_ms"]), row["promised_ms"])
    return float(row["achieved_ms"] / nearest - 1)


def _job(row: Row) -> tuple[str, ...]:
    best, promised = (f"{row[key]:.1f}" for key in ("best_ms", "promised_ms"))
    told = f"{promised} ms" if best == promised else f"{best} to {promised} ms"
    off = _off_promise(row)
    said = "within" if not off and best != promised else f"{100 * off:+.0f} %"
    times = f"{row['bare_ms']:.1f} ms", told, f"{row['achieved_ms']:.1f} ms", said
    found = f"`{row['cause']}`", _yes(row["found_first"])
    least = row["bare_ms"] - row["promised_ms"]
    gain = f"{100 * ((row['bare_ms'] - row['achieved_ms']) / least - 1):+.0f} %" if least > 0 else "–"
    return f"`{row['job']}`", *found, row["cure"], *times, gain, row["why_missed"] or "–"
