"""What every cure says of itself."""

from __future__ import annotations

import pytest

from stepscope.capture.cures import BY_NAME, CURES, parsed
from stepscope.capture.cures.cure import Cure
from stepscope.cluster.rules import JOB_RULES
from stepscope.diagnosis.rules import RULES


@pytest.mark.parametrize("cure", CURES, ids=lambda cure: cure.name)
def test_a_cure_answers_rules_that_there_are_and_says_all_of_it(cure: Cure) -> None:
    ids = {rule.RULE.id for rule in (*RULES, *JOB_RULES)}
    assert set(cure.answers) <= ids
    assert set(cure.promised) <= set(cure.answers)
    for text in (cure.title, cure.sets, cure.may_break, cure.undone):
        assert text
        assert not text.endswith(".")
    value = cure.values(4)[0] if cure.values else None
    assert cure.patch(value)
    assert (cure.into is None) == (cure.module is None)
    assert cure.into is not None or cure.environment is not None


def test_names_are_different() -> None:
    assert len(BY_NAME) == len(CURES)


def test_numbers_are_read_and_checked() -> None:
    assert parsed("workers=2") == (BY_NAME["workers"], 2)
    assert parsed("compile") == (BY_NAME["compile"], None)
    for wrong in ("nothing", "compile=2", "workers=two", "workers=-1"):
        with pytest.raises(ValueError):
            parsed(wrong)


def test_workers_that_are_tried_fit_the_cores() -> None:
    values = BY_NAME["workers"].values
    assert values is not None
    assert [values(cores) for cores in (1, 2, 6, 16)] == [[0, 1], [0, 1, 2], [0, 1, 2, 4, 6], [0, 1, 2, 4, 8, 16]]
