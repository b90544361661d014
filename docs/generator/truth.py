"""``docs/truth.md``: how often causes are found, sized and predicted right, from the figures of ``docs/truth.json``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from generator.markdown import section, table

Row = dict[str, Any]

INTRO = """\
# What is true of the figures

Made from `docs/truth.json` by `make docs`; `python -m tests.truth.measure` measures those figures anew, and tests in
`tests/truth` fail where they no longer hold.

A profile does not say what a step would take without a cause. A simulation does: the same loop runs with and without
it. So most of this page is of generated profiles, and of real ones into which a stall of known size was put. How real
programs answer to a repair one pair of profiles shows, and not to our advantage; for yours
[compare](guides/what-if.md) the profiles before and after.

{summary}
"""

XPROF = """\
What one execution of an op computes and moves by its program (HLO), and what XProf 2.24.2 says in its `hlo_stats`, of
the real XPlane files at hand; `python -m tests.truth.xprof` measures them anew. They agree within 1 % but where a
reason is given. Rates differ in one more way: where a library's call runs several kernels, XProf counts the work once
for each, stepscope once for each execution. So the convolution of `mi300_jax_conv`, two kernels that take 308 µs
together, reaches 106 TFLOP/s here and 212 TFLOP/s there."""

TOTALS = """\
Totals of the same files, and of one of TensorFlow: counts are equal, times agree within 0.1 %, shares within 2 % of the
step, but where a reason is given; `python -m tests.truth.xprof_totals` measures them anew. A test holds captures of JAX
(eight CPU devices; callbacks), of a loop of TensorFlow, of MirroredStrategy and of Keras against XProf in the same way,
with the same tolerances and reasons. A dash stands where XProf has no figure."""

PLANTED = """\
A loop is simulated, once with a cause and once without. *Cost* is the error of what the first finding says the cause
costs against what was planted. *Prediction* is the error of the step time that the finding predicts against the run
without the cause. Where no rule is to find the cause first (a dash under *found first*), cost is what the accounting
books to it, and prediction a replay without it. Other dashes stand where there is nothing to compare."""

SEVERAL = """\
A loop with several causes at once, simulated also without each of them and without any. *Gain* is what a step gets
shorter without this one cause, the others staying; *error of the gain* is that of the finding's saving. The last row of
each case is the step with every finding fixed. All causes must be found, nothing else, and in the order of what their
repair gains."""

PAIRS = """\
`examples/masked_loss`, simulated: three waits in one loss. The profile before predicts what taking out one, two and all
of them gains; the runs after are simulated too."""

REPAIRED = """\
Profiles recorded of a real program before and after the repair its first finding asks for. The predicted step is too
short: on two cores the loader's new worker processes slow the training thread, whose own work takes twice as long
as before. The profile does not say how many cores there are; the finding says so. In jobs that `stepscope run` records
cores are known: the next table."""

JOBS = """\
Jobs as a new user has them (`tests/newcomer`), each run by `stepscope run`, cured as its finding says, and timed bare
in turns before and after; medians of three on two cores of an AMD EPYC, with PyTorch 2.13, before other work that ran
there. *Promised* is the middle of three recordings, *gain off* how far what came of it is from the least that is
promised to be gained, held against the step timed bare. Jobs whose findings promise no time (Python around the ops of
`generate.py` and of a Trainer) and one whose cure is not written down (`stacked_input.py`) have no row.
`python -m tests.newcomer.measure` measures all of them anew."""

STALLED = """\
In each used step of a real profile a stall is put in at an instant at which the device was idle
(`tests/kit/inject.py`). *Found* says whether the rule for it has a finding; real profiles have causes of their own,
which may cost more and then come first."""

INJECTED = """\
Stalls of nine kinds and of 1 to 60 % of the step that then holds them, put into each used step of six real profiles in
the same way: three of one step, one of a single request (vLLM), one without steps, one of four steps. They are
NVIDIA's: in the profiles of other makes that we have the host runs ahead all the time, so that no instant is known at
which a stall costs what it takes. A cell says in how many profiles the stall is a finding. A dash stands where none is
to be one: what gains less than 1 % of the step or 50 µs is none, nor launching below 5 % (10 % where the recording
slows the host), nor Python code, a collection, a checkpoint, compiling or allocating below 5 % of the only step; above
it is said to be *seen once*, with low confidence. {hidden} are told under `-v` instead, since the fix of a finding
above them hides them. *Category* is the error of what the accounting books to the stall's category; Python of less
than a millisecond between launches is booked to launching, and compared is what the finding of it says. *Place* is how
often the finding names the code or shows the event. *Saving* is the error of what the finding says that a fix saves."""

MISREAD = """\
Profiles that are plausible but wrong: what converters, mistaken exporters and full buffers make of good ones, simulated
and real (`tests/kit/wrong.py`; `python -m tests.truth.misread` measures them anew). *Withheld*: a notice says what is
wrong, and no cost, saving or verdict is told. *Right*: what is told is what the good profile tells, within 6 % of the
step and 10 % of the cost of its first finding; *said* where a notice tells what is missing. *Wrong*: another first
finding, or none. Clocks are shifted by half a step, one step and two and a half, and drift by 1, 2 and 5 %. A device
that is late each time is as if it worked on something that was not recorded, so both are said, and nothing is told of
costs; where it never idles, a late clock changes nothing. Ops with the numbers of the next call are told from clocks
that are little apart by the first launch, which has no op, and the last op, which has no call."""

TRIALS = """\
How often `stepscope try` is right, simulated: runs of a job differ by so much (standard deviation of their means), and
drift by as much within a block; a cure takes so much of the step away. Each row is {trials:,} trials, each of up to
four blocks of two runs of either side, until it can be told (`python -m tests.trials.rates`). A cure that does nothing
is to be called a change in at most 5 of 100."""

HEALTHY = "Generated profiles in which nothing is wrong, by the findings they get: there must be none."


def page() -> str:
    """The tables."""
    figures = json.loads((Path(__file__).parents[1] / "truth.json").read_text(encoding="utf-8"))
    several, pairs, repaired, stalled = (figures[name] for name in ("several", "pairs", "repaired", "stalled"))
    injected = figures["injected"]
    ill, healthy = _by_health(figures)
    return "\n".join(
        [
            INTRO.format(summary=_summary(figures)),
            section("Planted causes", PLANTED, table(_TITLES, map(_planted, ill))),
            section("Several causes at once", SEVERAL, table(_SEVERAL_TITLES, map(_several, several))),
            section("Before and after, simulated", PAIRS, table(_PAIR_TITLES, map(_pair, pairs))),
            section("Before and after, real", REPAIRED, table(_REPAIRED_TITLES, map(_repaired, repaired))),
            section("Jobs, cured", JOBS, table(_JOB_TITLES, map(_job, _rows_of("jobs")))),
            section("Real profiles with a stall put in", STALLED, table(_STALL_TITLES, map(_stalled, stalled))),
            section(
                "Stalls of many sizes in real profiles",
                INJECTED.format(hidden=f"{sum(row['hidden'] for row in injected)} of {len(injected)}"),
                f"{table(_INJECTED_TITLES, _by_kind(injected))}\n{table(_TRACE_TITLES, _by_trace(injected))}",
            ),
            section("FLOPs and bytes against XProf", XPROF, table(_XPROF_TITLES, map(_counted, _rows_of("xprof")))),
            section("Totals against XProf", TOTALS, table(_TOTALS_TITLES, map(_total, _rows_of("xprof-totals")))),
            section("Plausible but wrong", MISREAD, table(_misread_titles(), map(_misread, _rows_of("misread")))),
            section("Trials", TRIALS.format(trials=_rows_of("trial-rates")[0]["trials"]), _trials()),
            section("Healthy profiles", HEALTHY, table(("case", "what it is", "findings"), map(_healthy, healthy))),
        ]
    )


_XPROF_TITLES = ("profile", "op", "kind", "FLOPs", "of XProf", "bytes", "of XProf", "why they differ")


_TOTALS_TITLES = ("profile", "what", "stepscope", "XProf", "why they differ")


_VERDICTS = {"helps": "helps", "hurts": "hurts", "nothing": "does nothing", "unknown": "cannot be told"}


def _trials() -> str:
    rows = [
        (_percent(row["spread"]), _percent(row["effect"]), *(_percent(row[verdict]) for verdict in _VERDICTS))
        for row in _rows_of("trial-rates")
    ]
    return table(("runs differ by", "the cure takes away", *_VERDICTS.values()), rows)


def _misread_titles() -> tuple[str, ...]:
    return tuple(title.replace("_", " ") for title in _rows_of("misread")[0])


def _misread(row: Row) -> tuple[str, ...]:
    return tuple(value.replace("_", " ") for value in row.values())


def _rows_of(name: str) -> list[Row]:
    found: list[Row] = json.loads((Path(__file__).parents[1] / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _total(row: Row) -> tuple[str, ...]:
    mine, theirs = (_plain(row[side]) for side in ("mine", "theirs"))
    return row["profile"], row["what"], mine, theirs, row["reason"]


def _plain(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.3f}"


def _counted(row: Row) -> tuple[str, ...]:
    counts = (f"{row[key]:,}" for key in ("flops", "xprof_flops", "bytes", "xprof_bytes"))
    return row["profile"], f"{row['op']} ({row['program']})", row["kind"], *counts, row["reason"]


_TITLES = ("case", "what it is", "found first", "cost", "prediction", "findings")
_PAIR_TITLES = ("waits taken out", "before", "after", "predicted", "error of the step", "error of the gain")
_SEVERAL_TITLES = ("case", "cause", "found", "gain", "cost", "error of the gain, or of the step")
_REPAIRED_TITLES = ("program", "finding", "before", "after", "predicted", "error of the step", "error of the gain")
_JOB_TITLES = ("job", "cause", "found first", "cure", "step", "promised", "achieved", "off", "gain off", "why")
_STALL_TITLES = ("profile", "stall", "size", "used steps", "found", "first finding", "cost", "prediction")


_WITHIN = 0.15
_SIZES = (1, 2, 4, 6, 10, 20, 40, 60)
_INJECTED_TITLES = (
    "stall", *(f"{size} %" for size in _SIZES), "category: median", "worst", "place", "saving: median", "worst",
)  # fmt: skip
_TRACE_TITLES = ("profile", "steps", "found", "of", "quiet below the limits", "category: worst", "saving: worst")


def _by_kind(injected: list[Row]) -> list[tuple[str, ...]]:
    """A row per kind of stall."""
    made = []
    for kind in dict.fromkeys(row["kind"] for row in injected):
        rows = [row for row in injected if row["kind"] == kind]
        sizes = ([row for row in _telling(rows) if row["percent"] == size] for size in _SIZES)
        found = [_share(of_size, "found") if of_size else "–" for of_size in sizes]
        named = [row for row in rows if row["found"] and row["told"]]
        cost, saving = _errors(rows, "cost_error"), _errors(named, "saving_error")
        made.append((kind, *found, *cost, _share(named, "place"), *saving))
    return made


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


def _planted(row: Row) -> tuple[str, ...]:
    errors = _percent(row["cost_error"]), _percent(row["prediction_error"])
    return f"`{row['case']}`", row["what"].replace("``", "`"), _yes(row["first"]), *errors, str(row["findings"])


def _pair(row: Row) -> tuple[str, ...]:
    times = (_ms(row[key]) for key in ("step_ns", "after_ns", "predicted_ns"))
    return str(row["fixed"]), *times, _percent(row["step_error"]), _percent(row["gain_error"])


def _several(row: Row) -> tuple[str, ...]:
    if row["rule"] == "all":
        gain = _ms(row["step_ns"] - row["after_ns"])
        return f"`{row['case']}`", "all fixed", "–", gain, "–", _percent(row["step_error"])
    errors = _percent(row["cost_error"]), _percent(row["gain_error"])
    return f"`{row['case']}`", f"`{row['rule']}`", _yes(row["found"]), _ms(row["gain_ns"]), *errors


def _repaired(row: Row) -> tuple[str, ...]:
    times = (_ms(row[key]) for key in ("step_ns", "after_ns", "predicted_ns"))
    place = f"`{row['pair']}`", f"`{row['rule']}`"
    return *place, *times, _percent(row["step_error"]), _percent(row["gain_error"])


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


def _stalled(row: Row) -> tuple[str, ...]:
    place = row["trace"], row["kind"], _ms(row["delay_ns"]), str(row["steps"])
    first = f"`{row['first']}`" if row["first"] else "–"
    return *place, _yes(row["found"]), first, _percent(row["cost_error"]), _percent(row["prediction_error"])


def _healthy(row: Row) -> tuple[str, ...]:
    return f"`{row['case']}`", row["what"].replace("``", "`"), str(row["findings"])
