"""What ``stepscope try`` measured of cures that a finding promised something of: a section of ``docs/truth.md``."""

from __future__ import annotations

from typing import Any

from generator.markdown import table

Row = dict[str, Any]

TRIED = """\
Jobs of the tests that `stepscope try` put cures into, unchanged, in 80 to 120 s each on a busy machine: every cure of
which something was promised or told, with the interval of 95 %. Of {others} more, without a promise, it cannot be told
([figures](trials.json))."""

_TITLES = ("job", "cure", "step, ms", "promised, ms", "measured, ms, ± saving", "verdict", "promise")
_VERDICTS = {"helps": "helps", "hurts": "hurts", "nothing": "does nothing", "unknown": "cannot be told"}


def tried(rows: list[Row]) -> tuple[str, str]:
    """The words and the table."""
    shown = [row for row in rows if row["predicted"] is not None or row["verdict"] != "unknown"]
    return TRIED.format(others=len(rows) - len(shown)), table(_TITLES, map(_row, shown))


def _row(row: Row) -> tuple[str, ...]:
    measured, half = row["measured"], _half(row["measured"])
    after = _ms(measured["after_ns"]) + (f" ± {_ms(half)}" if half is not None else "")
    words = f"`{row['job']}`", f"`{row['cure']}`", _ms(measured["before_ns"])
    if row["predicted"] is None:
        return *words, "–", after, _VERDICTS[row["verdict"]], "–"
    least, most = _promised(row)
    steps = _ms(least) if least == most else f"{_ms(least)} to {_ms(most)}"
    kept = "kept" if _keeps(row) else f"missed: {row['why_missed'] or 'not known why'}"
    return *words, steps, after, _VERDICTS[row["verdict"]], "–" if row["verdict"] == "unknown" else kept


def _keeps(row: Row) -> bool:
    """Whether the interval, widened by 15 % of the step that was promised, meets the promise."""
    measured, (least, most) = row["measured"], _promised(row)
    half = _half(measured) or 0
    return least * 0.85 <= measured["after_ns"] + half and measured["after_ns"] - half <= most * 1.15


def _promised(row: Row) -> tuple[int, int]:
    most = row["predicted"]["step_ns"]
    least = row["predicted"]["best_step_ns"]
    return (most if least is None else least), most


def _half(measured: Row) -> int | None:
    least, most = measured["least_saving_ns"], measured["most_saving_ns"]
    return None if least is None else (most - least) // 2


def _ms(ns: int) -> str:
    return f"{ns / 1e6:.2f}"
