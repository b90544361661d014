"""Sentences that depend on how much is known."""

from __future__ import annotations

import pytest

from stepscope.limits import PRECISION_KNOWN, PRECISION_UNKNOWN
from stepscope.report import phrases


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (None, "100 % by time, 40.0 % by count"),
        (PRECISION_KNOWN, "100 % by time, 40.0 % by count"),
        (PRECISION_KNOWN - 0.01, "100 % of the 94.0 % of kernel time whose precision is known"),
        (0.12, "100 % of the 12.0 % of kernel time whose precision is known"),
        (PRECISION_UNKNOWN, "100 % of the 5.0 % of kernel time whose precision is known"),
        (PRECISION_UNKNOWN - 0.01, "not determined: the precision of 96.0 % of kernel time is not known"),
    ],
)
def test_a_share_of_the_known_is_not_called_one_of_all(known: float | None, said: str):
    assert phrases.low_precision({"by_count": 0.4, "by_time": 1.0}, known) == said


def test_where_no_precision_is_known_it_is_not_recorded():
    assert phrases.low_precision({"by_count": None, "by_time": None}, 0.0) == "not recorded"
