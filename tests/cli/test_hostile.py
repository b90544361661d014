"""Mutated real profiles that once ended in a traceback or in a document that breaks its own schema."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from stepscope import cli
from stepscope.report.schema import load
from tests.kit.traces import real_trace

pytestmark = pytest.mark.real
NAMES = (
    "arguments_out_of_range", "compare_zero_step", "huge_world_size", "lone_surrogate_convert",
    "negative_gradient_ranks", "negative_world_size", "query_integer_overflow", "rank_below_int64", "xla_zero_window",
)  # fmt: skip


def ran(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints, where it ends as documented."""
    status = cli.main(list(words))
    out, err = capsys.readouterr()
    assert status in (0, 3), err
    assert "stepscope itself failed" not in err
    assert "Traceback" not in err
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_command_ends_as_documented(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(real_trace(f"hostile/{name}.json.gz"))
    document = json.loads(ran(capsys, "diagnose", path, "--format", "json"))
    jsonschema.validate(document, load())
    ran(capsys, "compare", path, path)
    ran(capsys, "query", path, "SELECT * FROM steps")
    for form in ("chrome", "xplane", "stepscope", "parquet"):
        ran(capsys, "convert", path, str(tmp_path / f"out.{form}"), "--to", form)
