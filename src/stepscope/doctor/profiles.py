"""Why a profile cannot be read, or lacks its device events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.doctor.outcome import CheckOutcome, ok, problem, warning
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.pipeline import Profile
    from stepscope.trace.trace import Trace

CAPS = {
    1 << 21: (
        "TensorFlow's and XLA's tracers keep at most 2,097,152 events of the host",
        "Record fewer steps, or set host_tracer_level to 1.",
    ),
}
"""Numbers of events at which a tool stops (openxla/xprof#265), and what to do."""

ASKING_FOR_DEVICES = {
    "PyTorch": "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    "JAX": "see that `jax.devices()` names it in the job",
    "TensorFlow": "see that `tf.config.list_physical_devices()` names it in the job",
    "PyTorch/XLA": "see that PJRT_DEVICE names it in the job",
}
"""How a job comes to use, and record, a device, by framework."""

CURES = {
    "profile_device_missing": "Run `stepscope doctor` where the profile was recorded: it looks at permissions, at "
    "CUPTI or ROCm's tracer, and for other profilers.",
    "profile_event_cap": "Read the .xplane.pb beside it, which holds all; or record with a higher "
    "TF_PROFILER_TRACE_VIEWER_MAX_EVENTS.",
    "profile_ops_unplaced": "Read the .xplane.pb beside it, which tells the device of each op.",
    "profile_sampled": "Record fewer steps without a filter, and all of them.",
    "profile_nsight_message": "Read the messages in Nsight Systems' diagnostics summary; record again with its advice.",
    "profile_graphs_whole": "Record with `nsys profile --cuda-graph-trace=node`.",
    "profile_other_processes": "Export one report per process (`nsys profile -o report.%p`) to read the others.",
    "profile_no_collectives": "Record with a current version of the framework, whose profiler names collectives.",
}
"""What to do about a notice, where it is more than knowing it."""

_CURED = ("profile_few_steps", "profile_no_steps")
"""Notices that say what to do themselves."""

_PROBLEMS = ("profile_device_missing",)
_VERBS = ("is ", "holds ", "has ", "ends ", "looks ", "cannot ")
"""How readers' sentences go on behind the file's name."""
_CHECK = "Check the path, and whether the file is whole."
_LOST = "Record it again; look for a full disk, and for a job that was killed while it wrote."


@dataclass(frozen=True, slots=True)
class Examined:
    """What is to be said of one profile."""

    path: str
    outcomes: tuple[tuple[str, CheckOutcome], ...]
    """Code and outcome, worst first."""


def examine(path: str) -> Iterator[Examined]:
    """Read the profiles that a path leads to and say what is wrong with each."""
    from stepscope import pipeline  # What reading needs is not loaded where no profile is named.
    from stepscope.formats.find import find

    try:
        sources = find(path).sources
    except StepscopeError as error:
        yield Examined(path, (("unreadable", _unreadable(error, path)),))
        return
    for source in sources:
        try:
            outcomes = _outcomes(pipeline.read(source))
        except StepscopeError as error:
            outcomes = (("unreadable", _unreadable(error, str(source.path))),)
        yield Examined(str(source.path), outcomes)


def _unreadable(error: StepscopeError, path: str) -> CheckOutcome:
    """The reader's sentence says what is wrong before a semicolon and what to do behind it."""
    what, _, cure = str(error).splitlines()[0].partition("; ")
    what = what.removeprefix(path).lstrip(": ").rstrip(".")
    words = f"It {what}." if what.startswith(_VERBS) else f"It cannot be read: {what}."
    return problem(words, f"{cure[:1].upper()}{cure[1:].rstrip('.')}." if cure else _CHECK)


def _outcomes(profile: Profile) -> tuple[tuple[str, CheckOutcome], ...]:
    trace = profile.trace
    outcomes = [
        (notice.code, _no_device(trace) if notice.code == "profile_no_device" else _about(notice.code, notice.text))
        for notice in profile.notices
    ]
    told = [(code, outcome) for code, outcome in outcomes if outcome is not None]
    if (cap := _cap(trace)) is not None:
        told.append(("profile_capped", cap))
    if not told:
        devices = len(trace.info.devices)
        counted = f"{devices} device{'s' * (devices != 1)}" if devices else "the host alone"
        whole = f"{trace.info.format}: {len(trace.slices):,} slices of {counted}; nothing is missing."
        return (("complete", ok(whole)),)
    return tuple(sorted(told, key=lambda item: item[0] not in _PROBLEMS))


def _no_device(trace: Trace) -> CheckOutcome:
    """Why a profile holds neither work of a device nor a call to one: it was not asked for, or there was none."""
    options = trace.info.header.get("profile_options")
    if isinstance(options, dict) and options.get("device_tracer_level") == 0:
        return warning("It was recorded with device_tracer_level=0, which leaves devices out.", "Leave it at 1.")
    asking = ASKING_FOR_DEVICES.get(trace.info.framework or "")
    return warning(
        "It holds no work of a device and no call to one: the job ran on the CPU alone, or its profiler was not asked "
        "for devices.",
        "If it should use one, " + (f"{asking}; " if asking else "")
        + "there, `stepscope doctor --deep --python PYTHON` tells which devices the job's framework sees.",
    )  # fmt: skip


def _about(code: str, text: str) -> CheckOutcome | None:
    """What a notice means for the recording; None where it is merely to be known."""
    if code in _PROBLEMS:
        return problem(text, CURES[code])
    if code in _CURED:
        return warning(text, None)
    if code in CURES:
        return warning(text, CURES[code])
    return warning(text, _LOST) if code.startswith("damaged_") else None


def _cap(trace: Trace) -> CheckOutcome | None:
    for cap, (why, cure) in CAPS.items():
        if cap in (trace.completeness.events, len(trace.slices)):
            return warning(f"It holds exactly {cap:,} events: {why}, so that its end is probably missing.", cure)
    return None
