"""The shipped job is what its generator makes, and says what examples/README.md says of it."""

from __future__ import annotations

import gzip

import stepscope
from stepscope.jobs import Job
from tests.kit import example_ranks


def test_the_files_are_those_of_the_generator() -> None:
    made = example_ranks.files()
    shipped = {path.name: path.read_bytes() for path in example_ranks.FOLDER.iterdir()}
    assert {name: gzip.decompress(data) for name, data in shipped.items()} == {
        name: gzip.decompress(data) for name, data in made.items()
    }


def test_the_late_rank() -> None:
    job = stepscope.open(example_ranks.FOLDER)
    assert isinstance(job, Job)
    assert job.document()["analyses"]["ranks"]["stragglers"][0]["rank"] == example_ranks.LATE
