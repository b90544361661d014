"""``stepscope view``: what is shown of the profiles that the paths lead to."""

from __future__ import annotations

import pytest

from stepscope import pipeline
from stepscope.cli.view import comparison_of, entries_of
from stepscope.errors import InputError
from stepscope.web.entries import Entry, Opened
from tests.kit import example_ranks
from tests.web.reports import EXAMPLE, EXAMPLES

FIXED = EXAMPLES / "cpu_input_fixed.json.gz"


def test_ranks_of_one_job_are_shown_as_the_job_first() -> None:
    job, *ranks = entries_of((str(example_ranks.FOLDER),))
    assert job.opened().run.document["analyses"]["ranks"]
    assert job.opened().run.traces == {rank: rank + 1 for rank in range(example_ranks.WORLD)}
    assert [rank.title.split(":")[0] for rank in ranks] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert ranks[2].opened().run.pack
    assert ranks[2].opened().run.document["profile"]["ranks"] == [2]


def test_two_profiles_are_compared_in_the_order_given() -> None:
    before, after = entries_of((str(EXAMPLE), str(FIXED)))
    assert (before.title, after.title) == (f"before: {EXAMPLE.name}", f"after: {FIXED.name}")
    found = comparison_of(before, after)
    own = pipeline.open_profile(EXAMPLE).compare(pipeline.open_profile(FIXED))
    assert found["changed"] == own.changed
    assert (found["before"]["path"], found["after"]["path"]) == (str(EXAMPLE), str(FIXED))


def test_a_comparison_with_what_cannot_be_read_says_why() -> None:
    def unreadable() -> Opened:
        raise InputError("two.json: is not a profile; name another")

    (before,) = entries_of((str(EXAMPLE),))
    with pytest.raises(InputError, match="is not a profile"):
        comparison_of(before, Entry("two.json", unreadable))
