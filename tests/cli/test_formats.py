"""``stepscope formats`` lists what the two registries hold."""

from __future__ import annotations

import json

import pytest

from stepscope import cli
from stepscope.formats import readers, writers
from stepscope.inputs.source import CONTAINERS


def test_every_reader_and_writer_is_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["formats"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    flat = " ".join(out.split())
    read, written = flat.split(" Written ")
    for container in CONTAINERS:
        assert container in read
    for reader in readers.READERS:
        assert f"{reader.name} {reader.about}" in read
    for writer in writers.WRITERS:
        assert writer.about in written
        assert writer.name in written
        assert all(suffix in written for suffix in writer.suffixes)


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["formats", "--format", "json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in made["read"]] == [reader.name for reader in readers.READERS]
    assert all(one["containers"] == list(CONTAINERS) for one in made["read"])
    assert [one["suffixes"] for one in made["written"]] == [list(writer.suffixes) for writer in writers.WRITERS]
