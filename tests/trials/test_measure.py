"""The jobs that are measured are there."""

from __future__ import annotations

import ast

import pytest

from tests.trials.measure import JOBS


@pytest.mark.parametrize("name", JOBS)
def test_every_job_has_its_script(name: str) -> None:
    ast.parse(JOBS[name].script.read_text(encoding="utf-8"))
