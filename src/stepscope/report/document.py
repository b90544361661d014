"""The neutral document every renderer works from: ``stepscope.report/1`` (its JSON Schema ships beside this file).

This only arranges what analysis and diagnosis computed, of one profile or of a job of many ranks; the numbers are
theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope._version import __version__
from stepscope.analysis.categories import CATEGORIES
from stepscope.analysis.exchange.asked import NOTHING_GIVEN, Asked
from stepscope.analysis.exchange.collectives import HOST
from stepscope.analysis.facts import Facts
from stepscope.analysis.outline import Breakdown, InputFile, Outline, Recorded, Summary, Timed, outline
from stepscope.diagnosis.finding import Diagnosis
from stepscope.document import REPORT_SCHEMA
from stepscope.report import exchange
from stepscope.report.analyses import analyses
from stepscope.report.entries import finding_entry, named, plain
from stepscope.report.labels import CATEGORIES as LABELS
from stepscope.trace.tables import NULL

if TYPE_CHECKING:
    from stepscope.cluster.job import JobFacts
    from stepscope.document import profile as about
    from stepscope.document import steps as told
    from stepscope.document.report import Analyses
    from stepscope.document.report import Report as Document

__all__ = ["InputFile", "brief", "make", "of_job", "whole"]


def make(facts: Facts, diagnosis: Diagnosis, files: list[InputFile], asked: Asked = NOTHING_GIVEN) -> Document:
    """The whole report of one trace."""
    return whole(brief(facts, diagnosis, files), facts, diagnosis, asked)


def whole(begun: Document, facts: Facts, diagnosis: Diagnosis, asked: Asked = NOTHING_GIVEN) -> Document:
    """The whole report of a trace from its brief one."""
    more = analyses(facts) | exchange.of_profile(facts, diagnosis, asked)
    minor = [finding_entry(finding, facts.trace.info.rank) for finding in diagnosis.minor]
    return {**begun, "analyses": begun["analyses"] | {"minor_findings": minor} | more}


def brief(facts: Facts, diagnosis: Diagnosis, files: list[InputFile]) -> Document:
    """The report without the tables that no short text shows: working those out takes as long as the rest of it."""
    return _begun(outline(facts, files), diagnosis, facts.trace.info.rank)


def of_job(facts: JobFacts, diagnosis: Diagnosis, asked: Asked = NOTHING_GIVEN) -> Document:
    """The whole report of a job: the same document, with ``analyses.ranks``."""
    from stepscope.cluster.outline import outline as of_ranks
    from stepscope.report.over_ranks import over_ranks
    from stepscope.report.ranks import ranks

    begun = _begun(of_ranks(facts), diagnosis, None)
    minor = [finding_entry(finding) for finding in diagnosis.minor]
    more: Analyses = {
        "minor_findings": minor,
        "ranks": ranks(facts),
        "over_ranks": over_ranks(facts.ranks, [partial.uses for partial in facts.partials]),
        **exchange.of_job(facts, asked),
    }
    return {**begun, "analyses": begun["analyses"] | more}


def _begun(told: Outline, diagnosis: Diagnosis, rank: int | None) -> Document:
    return {
        "schema": REPORT_SCHEMA,
        "tool": {"name": "stepscope", "version": __version__},
        "profile": _profile(told.recorded, diagnosis),
        "steps": [step for of in told.ranks for step in _steps(of)],
        "accounting": [row for of in told.ranks for row in _rows(of)],
        "summary": _summary(told.summary, diagnosis),
        "findings": [finding_entry(finding, rank) for finding in diagnosis.findings],
        "plan": list(diagnosis.plan),
        "whatif": plain(diagnosis.whatif),
        "analyses": {"breakdown": [_breakdown(one) for one in told.breakdowns]},
    }


def _profile(read: Recorded, diagnosis: Diagnosis) -> about.ProfileEntry:
    return {
        "format": read.format,
        "framework": read.framework,
        "files": [plain(file) for file in read.files],
        "ranks": read.ranks,
        "world_size": read.world_size,
        "devices": [{"id": d.id, "name": d.name, "kind": d.kind, "memory_bytes": d.memory_bytes} for d in read.devices],
        "accelerators": 0 if read.on_cpu else None,
        "host": read.host,
        "epoch_ns": read.epoch_ns,
        "complete": read.complete,
        "events": read.events,
        "losses": [plain(loss) for loss in read.losses],
        "notices": [plain(notice) for notice in diagnosis.notices],
    }


def _steps(of: Timed) -> list[told.StepEntry]:
    columns = ("number", "start", "dur", "host_dur", "complete", "slow")
    rows = zip(*(getattr(of.steps, column).tolist() for column in columns), strict=True)
    return [
        {
            "rank": of.rank,
            "index": k,
            "number": None if number == NULL else number,
            "start_ns": start,
            "dur_ns": dur,
            "host_dur_ns": host_dur,
            "basis": of.basis,
            "inferred": of.inferred,
            "complete": complete,
            "slow": slow,
        }
        for k, (number, start, dur, host_dur, complete, slow) in enumerate(rows)
    ]


def _rows(of: Timed) -> list[told.AccountingRow]:
    rows = of.rows
    columns, names = (rows.device, rows.step, rows.start, rows.dur, of.parts), [str(one) for one in CATEGORIES]
    return [
        {
            "rank": of.rank,
            "device": None if device == HOST else device,
            "step": None if step < 0 else step,
            "phase": phase,
            "start_ns": start,
            "dur_ns": dur,
            "parts": {name: ns for name, ns in zip(names, parts, strict=True) if ns},
        }
        for phase, device, step, start, dur, parts in zip(rows.phase, *(c.tolist() for c in columns), strict=True)
    ]


def _summary(of: Summary, diagnosis: Diagnosis) -> told.SummaryEntry:
    made: told.SummaryEntry = plain(of)
    made["verdict"], made["bottleneck"] = diagnosis.verdict, diagnosis.bottleneck
    made["parts_ns_per_step"], made["parts_share"] = named(of.parts_ns_per_step), named(of.parts_share)
    return made


def _breakdown(one: Breakdown) -> told.BreakdownEntry:
    return {
        "rank": one.rank,
        "device": one.device,
        "basis": one.basis,
        "steps": one.steps,
        "unused": one.unused,
        "step_ns": sum(one.parts.values()),
        "behind_ns": one.behind_ns,
        "parts": [
            {
                "category": str(c), "label": LABELS[c].words, "busy": LABELS[c].busy, "ns_per_step": ns,
                "share": one.shares[c],
            }
            for c, ns in sorted(one.parts.items(), key=lambda pair: -pair[1])
        ],
        "ended_last": one.ended_last,
    }  # fmt: skip
