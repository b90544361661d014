"""The sentences and labels that pages show beside the report's figures: the terminal's, so that both say the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.analysis.workload import Workload
from stepscope.capture.results import Recording, recordings
from stepscope.cluster.rules import DECLARED
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, Remedies, remedy
from stepscope.report import comparison, finding_phrases, gradients, input_sections, labels, phrases, proof
from stepscope.report.memory_sections import CATEGORIES as MEMORY
from stepscope.report.memory_sections import SPACES, USES
from stepscope.report.rank_sections import CAUSES
from stepscope.units import format_ns, format_share
from stepscope.web.sources import source_of

if TYPE_CHECKING:
    from stepscope.document.comparison import ComparisonDocument
    from stepscope.document.findings import FindingEntry
    from stepscope.document.report import Report as Document
    from stepscope.document.steps import SummaryEntry

_DEVICE: Remedies = {
    PYTORCH: "Record `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]` on a machine with a GPU.",
    JAX: "Record on a machine whose device JAX uses: `jax.profiler.trace(folder)` then writes its activity.",
    TENSORFLOW: "Record on a machine whose device TensorFlow uses: `tf.profiler.experimental.start(folder)`.",
    TORCH_XLA: "Record on a machine with the device: `xp.trace` writes its activity.",
    None: "Record the device's activity too.",
}
_OPS: Remedies = {
    PYTORCH: "Record `activities=[ProfilerActivity.CPU, …]`; with `record_shapes=True, with_stack=True, "
    "with_modules=True` ops have shapes, lines and modules.",
    JAX: "`jax.profiler.trace` records ops on its devices; `jax.named_scope` names layers.",
    None: "Record the framework's ops.",
}
_LAYERS: Remedies = {
    PYTORCH: "Record `with_modules=True, with_stack=True`; without a stack modules are not known.",
    JAX: "Name layers with `jax.named_scope`, or use modules of Flax or Haiku, which do.",
    TENSORFLOW: "Name layers with `tf.name_scope`, or use layers of Keras, which do.",
    None: "Mark layers with ranges of the profiler.",
}
_INPUT: Remedies = {
    PYTORCH: "Iterate a `DataLoader` inside the profile; what its workers do is not recorded by PyTorch.",
    JAX: "Stages of `tf.data` are recorded where the host tracer is on; mark other loading with "
    "`jax.profiler.TraceAnnotation` or `stepscope.annotate`.",
    TENSORFLOW: "Stages of `tf.data` are recorded where the host tracer is on.",
    None: "Mark where batches are loaded with `stepscope.annotate`.",
}


def words(document: Document) -> dict[str, Any]:
    """Every sentence and label the pages show for one report."""
    told, _ = finding_phrases.told_and_untold(document)
    workload = Workload(document["profile"]["framework"])
    findings = document["findings"] + document["analyses"].get("minor_findings", [])
    recording = _recording(document)
    command = proof.command_of(document)
    return {
        "header": phrases.header(document),
        "damage": phrases.damage(document),
        "step_time": _tile(_step_time(document)),
        "headlines": list(map(_tile, phrases.headlines(document))),
        "narrow": None if phrases.is_job(document) else _tile(phrases.narrow_kernels(document)),
        "gradients": gradients.sentence(document),
        "partial": phrases.is_partial(document["summary"]),
        "untimed": phrases.is_capture(document["summary"]),
        "healthy": phrases.is_healthy(document["summary"]),
        "told": [finding["id"] for finding in told],
        "without_findings": None if told else phrases.without_findings(document["summary"]),
        "findings": {finding["id"]: _finding(finding, document, command) for finding in findings},
        "plan": finding_phrases.plan(document),
        "replayed": finding_phrases.replayed(document["whatif"]),
        "notices": [phrases.notice(item) for item in document["profile"]["notices"]],
        "steps": phrases.step_names(document),
        "categories": {
            name: {"words": labels.words(name, document["summary"]["bottleneck"]), "busy": one.busy}
            for name, one in labels.CATEGORIES.items()
        },
        "phases": labels.PHASES,
        "memory": MEMORY,
        "spaces": SPACES,
        "uses": USES,
        "causes": CAUSES,
        "files": [phrases.file_line(file) for file in document["profile"]["files"]],
        "capture": _capture(recording),
        "input_note": input_sections.note(taken) if (taken := document["analyses"].get("input")) else "",
        "missing": {
            "device": "" if document["profile"].get("accelerators") == 0 else remedy(_DEVICE, workload),
            "ops": remedy(_OPS, workload),
            "layers": remedy(_LAYERS, workload),
            "input": remedy(_INPUT, workload),
        },
    }


def words_of_comparison(document: ComparisonDocument) -> dict[str, Any]:
    """The sentences of a comparison, one per finding in the document's order."""
    return {
        "sentence": comparison.sentence(document),
        "scaling": list(comparison.scaling(document)),
        "achieved": comparison.achieved(document),
        "findings": list(map(comparison.finding, document["findings"])),
    }


def _step_time(document: Document) -> phrases.Headline:
    """The step time as verdict and bars have it: the mean, of several devices that of their own steps."""
    summary = document["summary"]
    told, (median, p95, mean) = phrases.step_time(summary), _times(summary)
    used, slow = summary["steps_used"], summary["steps_slow"]
    entries = [e for e in document["analyses"].get("breakdown", ()) if e["step_ns"] and not e.get("unused")]
    several = len(entries) > 1 and not phrases.is_job(document)
    if not told.known or mean is None or median is None or (used < 2 and not several):
        return told
    ns = sum(summary["parts_ns_per_step"].values()) if several else mean
    spread = f"mean of {f'the {used} usual' if slow else used} step{'s' * (used > 1)}"
    if several:
        spread += f" of each of {len(entries)} devices"
    elif format_ns(median) != format_ns(ns):
        spread += f", median {format_ns(median)}{f' of all {used + slow}' if slow else ''}"
    if p95 is not None and not several:
        spread += f", 95 % of the steps under {format_ns(p95)} (p95)"
    if (unrecorded := summary.get("unrecorded_step_ns")) is not None:
        spread += f", {format_ns(unrecorded)} when not recorded, which savings are told of"
    where = {"device": "on the device, ", "host": "on the host, "}.get(summary["step_basis"] or "", "")
    return phrases.Headline("step time", format_ns(ns), f"{where}{spread}")


def _times(summary: SummaryEntry) -> tuple[int | None, int | None, int | None]:
    times = summary["step_time_ns"]
    return times["median"], times["p95"], times.get("mean")


def _tile(headline: phrases.Headline) -> tuple[str, str | dict[str, str], str]:
    return headline.name, headline.value if headline.known else {"untold": headline.value}, headline.rest


def _finding(finding: FindingEntry, document: Document, command: list[str] | None) -> dict[str, Any]:
    first = next(iter(finding["where"]), None)
    return {
        "saving": finding_phrases.saving(finding, document["summary"]),
        "trust": finding_phrases.trust(finding),
        "places": phrases.places(finding["where"]),
        "sites": finding_phrases.fix_set(finding),
        "pages": DECLARED[finding["rule"]].pages,
        "panel": DECLARED[finding["rule"]].panel,
        "source": source_of(first, document),
        "proof": proof.of_finding(finding, document, command),
    }


def _recording(document: Document) -> Recording | None:
    """What the manifest beside the profile says of its capture, where `stepscope run` or `profile` wrote one."""
    path = Path(document["profile"]["files"][0]["path"])
    return next((each for each in recordings(path.parent, 0) if path in each.profiles), None)


def _capture(recording: Recording | None) -> list[tuple[str, str]]:
    if recording is None:
        return [("capture overhead", "not recorded: no capture manifest beside the file")]
    try:
        return _captured(recording)
    except (KeyError, TypeError, ValueError, OverflowError):
        return [("capture overhead", "not recorded: the capture manifest beside the file is none of stepscope's")]


def _captured(each: Recording) -> list[tuple[str, str]]:
    window, times = each.facts.get("window") or {}, each.facts.get("step_ns") or {}
    first, steps = window.get("first_step"), window.get("steps")
    overhead = each.facts.get("overhead")
    cost = "not recorded: too few steps ran without recording"
    if overhead and times.get("recorded") is not None and times.get("unrecorded") is not None:
        recorded, otherwise = format_ns(times["recorded"]), format_ns(times["unrecorded"])
        cost = f"a step took {recorded} while recorded and {otherwise} otherwise ({overhead:.2f} ×)"
    made = [("capture overhead", cost)]
    if steps and first is not None:
        made.append(("steps recorded", f"{first} to {first + steps - 1}"))
    if each.looking_share is not None:
        made.append(("looking up lines", f"{format_share(each.looking_share)} of the recorded time"))
    if each.facts.get("command"):
        made.append(("command", " ".join(map(str, each.facts["command"]))))
    return made
