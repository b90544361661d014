"""What a whole report says of a planted profile fits the kind of job that wrote it, in words that users know."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.workload import CPU, Purpose, Workload
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.remedies import HOST_WORK, NVIDIA, remedy
from stepscope.report import terminal
from stepscope.report.document import InputFile, make
from tests.kit.jobs_of_kinds import as_inference, as_serving, of_version
from tests.kit.kineto_form import Form
from tests.kit.kineto_writer import write_kineto
from tests.kit.misfits import misfits
from tests.kit.planted import CASES
from tests.kit.some import some
from tests.support import planted_case, trace_of_bytes

AMD = Form(vendor="amd")
JOBS = {
    "training with PyTorch 1.8": (list, Form(), (1, 8)),
    "inference": (as_inference, Form(), None),
    "serving on AMD": (as_serving, AMD, None),
}
"""How events become the job's, who wrote the file, and the newest version it can be of."""

OWN_WORDS = re.compile(
    r"(?i)(?<!graph\.)\breplay\w*|\baccount(?:s|ed|ing)?\b|\bslices?\b|\bbooked\b|\bbooks\b|\bcause op\b|\bfwdbwd\b"
    r"|(?<!device )\bactivit(?:y|ies)\b(?!=)|\b(?:unknown|copy|host|device|launch|graph|checkpoint|collective)_"
    r"(?:host|device|h2d|d2h|d2d|p2p|compute|latency|build|io|wait|transfer|staging)\b"
)
"""Words of stepscope's own design, that nobody who reads a report has been told."""


KINDS = [
    *some(((name, "inference") for name in CASES), 7, several=True),
    *some(((name, tuple(JOBS)[2 * (at % 2)]) for at, name in enumerate(CASES)), 7, several=True),
]
"""Every case as a job of inference, and as one of the other two."""


@cache
def told(name: str, job: str) -> tuple[str, Facts]:
    """The report of a case as a job's, and the facts it is made of."""
    events, form, newest = JOBS[job]
    trace = trace_of_bytes(write_kineto(events(planted_case(name).events), form))
    facts = analyse(trace if newest is None else of_version(trace, newest))
    document = make(facts, diagnose(facts), [InputFile("profile.json", 1, 1)])
    return terminal.render(document, width=200, verbose=True), facts


@pytest.mark.parametrize(("name", "job"), KINDS)
def test_a_report_says_nothing_that_does_not_fit_the_job(name, job):
    text, facts = told(name, job)
    purpose = {"training with PyTorch 1.8": Purpose.TRAINING, "inference": Purpose.INFERENCE}.get(job, Purpose.SERVING)
    if facts.activities and job != "inference":
        assert facts.workload.purpose is purpose
    assert job == "training with PyTorch 1.8" or facts.workload.purpose is not Purpose.TRAINING
    # The loader's name is in the profile.
    assert misfits(text, facts.workload, allowed="DataLoader") == []


@pytest.mark.parametrize("name", some(CASES, 7))
def test_a_report_has_no_words_of_our_own_design(name):
    text, _ = told(name, "inference")
    assert set(OWN_WORDS.findall(text)) == set()


def test_host_work_on_a_cpu_is_not_told_of_a_device():
    """``certain``: where nothing is known of what the job runs on, the usual advice stands."""
    unknown = Workload("PyTorch", Purpose.TRAINING)
    on_cpu = replace(unknown, vendors=frozenset({CPU}))
    assert "device" not in remedy(HOST_WORK, on_cpu)
    assert "process of its own" in remedy(HOST_WORK, on_cpu)
    for purpose in (Purpose.INFERENCE, Purpose.UNKNOWN):
        told_ = remedy(HOST_WORK, replace(on_cpu, purpose=purpose))
        assert "prepare the next input" in told_
        assert "device" not in told_
        assert "N steps" not in told_
    assert remedy(HOST_WORK, unknown) == remedy(HOST_WORK, replace(unknown, vendors=frozenset(NVIDIA)))
    assert "on the device" in remedy(HOST_WORK, unknown)
