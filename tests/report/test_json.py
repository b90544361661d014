"""The JSON report: one document, the same bytes every time, in the order of the schema."""

from __future__ import annotations

import json

import pytest

from stepscope.report import json_, schema
from tests.report import documents


@pytest.mark.parametrize("name", documents.ALL)
def test_the_document_survives_and_ends_in_one_newline(name: str):
    document = documents.ALL[name]()
    text = json_.render(document)
    assert json.loads(text) == document
    assert text.endswith("}\n")
    assert text.isascii()


def test_keys_stand_in_the_order_of_the_schema_however_they_were_made():
    document = documents.input_bound()
    shuffled = {key: document[key] for key in reversed(document)}
    assert json_.render(shuffled) == json_.render(document)
    assert list(json.loads(json_.render(shuffled))) == list(schema.load()["properties"])


def test_text_that_no_encoding_can_carry_is_still_written():
    document = documents.healthy()
    document["profile"]["host"] = "half \ud800 of a pair"
    assert json.loads(json_.render(document))["profile"]["host"] == "half \ud800 of a pair"


def test_not_a_number_is_a_defect_not_a_document():
    document = documents.healthy()
    document["summary"]["device_busy_share"] = float("nan")
    with pytest.raises(ValueError, match="JSON compliant"):
        json_.render(document)
