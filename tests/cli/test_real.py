"""Every real trace through the command line: valid, readable in each format, and the same document in all."""

from __future__ import annotations

import gzip
import json

import pytest

from stepscope import cli, pipeline
from stepscope.report import markdown, terminal
from tests.kit.traces import OF_KINDS, real_trace
from tests.report import documents
from tests.support import real_profile


@pytest.mark.parametrize("name", OF_KINDS)
def test_the_document_is_valid_and_readable_in_every_format(name: str):
    document = documents.check(real_profile(name).document())
    verdict = document["summary"]["verdict"]
    for width in (60, 100):
        for verbose in (False, True):
            text = terminal.render(document, width=width, verbose=verbose)
            assert verdict in " ".join(text.split())
            assert max(map(len, text.splitlines())) <= width
    assert len(terminal.render(document).splitlines()) <= 50  # A screen, with the time of each place.
    assert markdown.render(document, verbose=True).startswith("### ")


@pytest.mark.real
def test_the_input_bound_training_run_is_called_so(capsys):
    path = str(real_trace("kineto/v100_resnet50_workers0.json.gz"))
    assert cli.main(["diagnose", path]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "waits for input data" in lines[1]
    assert any(line.startswith("1. The device waits for input data") for line in lines)
    assert any("resnet50_profiler_api.py:42" in line for line in lines)
    assert any("num_workers" in line for line in lines)


@pytest.mark.real
def test_json_is_the_document_of_the_python_api(capsys):
    path = real_trace("kineto/h100_bert_small.json.gz")
    assert cli.main(["diagnose", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(pipeline.open(path).document()))


@pytest.mark.real
def test_a_cut_file_is_diagnosed_and_says_what_was_lost(capsys, tmp_path):
    text = gzip.decompress(real_trace("kineto/v100_resnet50_workers0.json.gz").read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: len(text) * 2 // 3])
    assert cli.main(["diagnose", str(cut)]) == 3
    out = capsys.readouterr().out
    assert "! Part of this profile could not be read" in out.splitlines()[1]
    # The device events stand at the end of the file.
    assert "not determined: part of the file is missing" in out


@pytest.mark.parametrize(
    "content", [b"hello, not a profile\n" * 9, b"{}", b"[1, 2, 3]", b"\x89PNG\r\n\x1a\n" + bytes(64), b""]
)
def test_what_is_no_profile_is_one_sentence(capsys, tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert cli.main(["diagnose", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("stepscope: ")
    assert err.count("\n") == 1
    assert "stepscope itself failed" not in err
