"""Integer nanoseconds and bytes, and the only functions that format them.

Everything inside stepscope counts times in integer nanoseconds and sizes in bytes; text appears at the edge only.
"""

from __future__ import annotations

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

NOT_RECORDED = "not recorded"


def format_ns(ns: int | None) -> str:
    """Write a duration with three significant digits and the unit a person would choose.

    >>> format_ns(18_642_000), format_ns(950), format_ns(None)
    ('18.6 ms', '950 ns', 'not recorded')
    """
    if ns is None:
        return NOT_RECORDED
    size = abs(ns)
    if size < NS_PER_US:
        return f"{ns} ns"
    # Each unit ends a little early, so that rounding never prints "1000 µs".
    if size < 999_500:
        return f"{_three_digits(ns / NS_PER_US)} µs"
    if size < 999_500_000:
        return f"{_three_digits(ns / NS_PER_MS)} ms"
    return f"{_three_digits(ns / NS_PER_S)} s"


def format_ns_range(low: int | None, high: int | None) -> str:
    """Two durations as a range; the one that both are when rounded, and the high one where there is no low one.

    >>> format_ns_range(1_000_000, 2_000_000), format_ns_range(55_800_000, 55_801_000)
    ('1.00 ms to 2.00 ms', '55.8 ms')
    """
    first, last = format_ns(high if low is None else low), format_ns(high)
    return last if first == last else f"{first} to {last}"


def format_bytes(size: int | None) -> str:
    """Write a size in binary units.

    >>> format_bytes(19_267_584), format_bytes(512)
    ('18.4 MiB', '512 B')
    """
    if size is None:
        return NOT_RECORDED
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1023.5:
            return f"{size} B" if unit == "B" else f"{_three_digits(value)} {unit}"
        value /= 1024
    return f"{_three_digits(value)} TiB"


def format_rate(per_second: float, unit: str) -> str:
    """Write a rate in decimal units.

    >>> format_rate(616_400_000_000_000, "FLOP/s"), format_rate(950.0, "B/s")
    ('616 TFLOP/s', '950 B/s')
    """
    value = per_second
    for prefix in ("", "k", "M", "G", "T"):
        if value < 999.5:
            return f"{_three_digits(value)} {prefix}{unit}"
        value /= 1000
    return f"{_three_digits(value)} P{unit}"


def format_share(share: float | None) -> str:
    """Write a share of one as a percentage; a share too small to show is not rounded to nothing.

    >>> format_share(0.6057), format_share(0.0004), format_share(0.0)
    ('60.6 %', '<0.1 %', '0 %')
    """
    if share is None:
        return NOT_RECORDED
    percent = share * 100
    if percent == 0:
        return "0 %"
    if abs(percent) < 0.1:
        return "<0.1 %"
    return f"{percent:.1f} %" if abs(percent) < 99.95 else f"{percent:.0f} %"


def format_count(count: int | None) -> str:
    """Write a count with thin grouping.

    >>> format_count(216092)
    '216,092'
    """
    return NOT_RECORDED if count is None else f"{count:,}"


def format_mean(mean: float) -> str:
    """Write how often something happens on average.

    >>> [format_mean(mean) for mean in (1.0, 2.34, 46.25, 1218.6)]
    ['1', '2.34', '46.2', '1,219']
    """
    return f"{mean:,.0f}" if mean >= 99.95 else f"{mean:.3g}"


def format_times(mean: float) -> str:
    """The same in words.

    >>> [format_times(mean) for mean in (1, 2, 141.5)]
    ['Once', '2 times', '142 times']
    """
    return "Once" if mean == 1 else f"{format_mean(mean)} times"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def in_runs(ranks: list[int]) -> list[str]:
    """Ranks as people write them: runs as first-last."""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return [str(a) if a == b else f"{a}-{b}" for a, b in runs]
