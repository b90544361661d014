"""The tables of a job as a terminal of usual width shows them: nothing squeezed, and of many ranks the extremes."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

import stepscope
from stepscope.report import markdown, terminal
from tests.kit import example_ranks


@pytest.fixture(scope="module")
def job() -> dict[str, Any]:
    return stepscope.open(example_ranks.FOLDER).document()


def table(document: dict[str, Any], title: str, width: int = 80) -> list[str]:
    """The lines below a title, to the next empty one."""
    lines = terminal.render(document, width=width, verbose=True).splitlines()
    at = lines.index(title) + 1
    return lines[at : lines.index("", at)]


def many(job: dict[str, Any], count: int = 64) -> dict[str, Any]:
    """The same of more ranks, the last of which computes longest."""
    made = deepcopy(job)
    ranks, analyses = made["analyses"]["ranks"], made["analyses"]
    row, entry = ranks["per_rank"][0], analyses["breakdown"][0]
    ranks["per_rank"] = [deepcopy(row) | {"rank": rank} for rank in range(count)]
    ranks["per_rank"][-1]["parts_ns_per_step"]["compute"] += 1_000_000
    analyses["breakdown"] = [deepcopy(entry) | {"rank": rank} for rank in range(count)]
    made["profile"]["files"] = [made["profile"]["files"][0] | {"path": f"rank{rank}.json"} for rank in range(count)]
    return made


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_rank_is_one_line_with_its_host(job: dict[str, Any], width: int) -> None:
    *_, first, second, third, fourth = table(job, "Ranks", width)
    assert [line.split()[:2] for line in (first, second, third, fourth)] == [
        ["2", "node1-0"], ["0", "node0-0"], ["1", "node0-1"], ["3", "node1-1"]
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_a_collective_is_one_line_with_its_group(job: dict[str, Any], width: int) -> None:
    *titles, row = table(job, "Collectives", width)
    assert " group " in titles[-1]
    assert row.split()[:5] == ["all-reduce", "0", "4", "52.0", "MiB"]
    *titles, row = table(job, "Bandwidth of collectives", width)
    assert row.split() == ["all-reduce", "0", "52.0", "MiB", "77.9", "117"]


def test_steps_that_no_mean_is_over_are_marked(job: dict[str, Any]) -> None:
    assert [step["used"] for step in job["analyses"]["ranks"]["steps"]] == [False, True, True, True, True, False]
    assert all(step["dur_ns"] for step in job["analyses"]["ranks"]["steps"])
    titles, *rows = table(job, "Whom each step waited for")
    assert titles.endswith("in the means")
    assert [row.split()[-1] for row in rows] == ["no", "yes", "yes", "yes", "yes", "no"]
    whole = deepcopy(job)
    for step in whole["analyses"]["ranks"]["steps"]:
        step["used"] = True
    assert "in the means" not in terminal.render(whole, verbose=True)


def test_of_many_ranks_a_summary_and_who_has_least_and_most(job: dict[str, Any]) -> None:
    text = terminal.render(many(job), width=80, verbose=True)
    assert "where each step's time goes" not in text
    assert len(text.splitlines()) < 250
    computing = next(line for line in table(many(job), "Where each step's time goes, over the ranks") if "comp" in line)
    assert computing.split()[-6:] == ["10.9", "ms", "0", "11.9", "ms", "63"]
    assert "rank63.json" not in text, "files are listed like rows of other tables"
    assert text.count("--format json has all") >= 3
    assert "of rank 3: where each step's time goes" in terminal.render(job, verbose=True)


def test_every_missing_rank_and_every_file_that_could_not_be_read_is_named(job: dict[str, Any]) -> None:
    made = deepcopy(job)
    ranks = made["analyses"]["ranks"]
    ranks["missing"] = list(range(3, 160, 7))
    ranks["unreadable"] = [{"rank": 5, "path": "run/rank5.json.gz", "reason": "is empty"}]
    told = " ".join(table(made, "Ranks without a profile here")[1:]).replace(",", "").split()
    assert told == [str(rank) for rank in range(3, 160, 7)]
    assert table(made, "Ranks that could not be read")[1].split() == ["5", "run/rank5.json.gz", "is", "empty"]
    assert "| 5 | `run/rank5.json.gz` | `is empty` |" in markdown.render(made, verbose=True)
