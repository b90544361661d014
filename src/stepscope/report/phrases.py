"""The sentences of a report, made from the document's figures and shared by terminal and markdown.

Text is raw here: each renderer makes names safe for its own medium.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from stepscope.analysis.limits import FINDING_SHARE
from stepscope.diagnosis.limits import PRECISION_KNOWN, PRECISION_UNKNOWN
from stepscope.report import labels
from stepscope.units import NOT_RECORDED, format_bytes, format_count, format_ns, format_share

if TYPE_CHECKING:
    from stepscope.document.profile import DeviceEntry, FileEntry, NoticeEntry
    from stepscope.document.report import Report as Document
    from stepscope.document.steps import SummaryEntry, TwoSharesEntry

Place = Mapping[str, Any]
""":class:`stepscope.document.findings.WhereEntry`, or as much of it as there is."""
_RANKS_NAMED = 3


def header(document: Document) -> list[str]:
    """What was read, in short pieces: files (of a job their folder), framework, devices, ranks, steps."""
    profile, summary = document["profile"], document["summary"]
    pieces = [
        _folder(profile["files"]) if is_job(document) else _files(profile["files"]),
        profile["framework"] or profile["format"],
        _devices(profile["devices"]) or ("on the CPU" if profile.get("accelerators") == 0 else "no device recorded"),
    ]
    ranks = [rank for rank in profile["ranks"] if rank is not None]
    if len(ranks) == 1:
        world = profile.get("world_size")
        pieces.append(f"rank {ranks[0]} of {world}" if world else f"rank {ranks[0]}")
    elif ranks:
        world = profile.get("world_size")
        pieces.append(f"{len(ranks)} of {world} ranks" if world and world != len(ranks) else f"{len(ranks)} ranks")
    steps = document["steps"] if len(ranks) < 2 else {step["number"] or step["index"] for step in document["steps"]}
    pieces.append(_steps(len(steps), summary))
    return pieces


def is_job(document: Document) -> bool:
    """Whether the report is of several ranks together."""
    return "ranks" in document["analyses"]


def _folder(files: list[FileEntry]) -> str:
    """The name of the folder that all files are in."""
    folders = [os.path.dirname(os.path.abspath(file["path"])) for file in files]
    return os.path.basename(os.path.commonpath(folders)) or _files(files)


def _files(files: list[FileEntry]) -> str:
    first = os.path.basename(files[0]["path"]) or files[0]["path"]
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


_KINDS = {"gpu": "GPU", "tpu": "TPU", "cpu": "CPU device"}


def _devices(devices: list[DeviceEntry]) -> str:
    names = Counter(device["name"] or _KINDS.get(device["kind"] or "", "device") for device in devices)
    return ", ".join(f"{count} × {name}" if count > 1 else name for name, count in names.items())


def _steps(count: int, summary: SummaryEntry) -> str:
    if not count:
        return "no steps"
    if is_capture(summary):
        return "no step timed"
    if is_whole(summary):
        return "the whole profile as one step"
    noun = "step" if count == 1 else "steps"
    used = "" if summary["steps_used"] == count else f", {summary['steps_used']} used"
    if summary["steps_slow"]:
        used += f", {summary['steps_slow']} much longer"
    return f"{count} {'inferred ' if summary['inferred'] else ''}{noun}{used}"


class Headline(NamedTuple):
    """A figure that people look at first, and what belongs to it."""

    name: str
    value: str
    rest: str = ""
    between: str = " "
    known: bool = True
    """Whether the value is one, not why there is none."""

    @property
    def text(self) -> str:
        """Both in a line."""
        return f"{self.value}{self.between}{self.rest}" if self.rest else self.value


def step_time(summary: SummaryEntry) -> Headline:
    """The step time with its spread, or why there is none."""
    if is_capture(summary):
        took = format_ns(sum(summary["parts_ns_per_step"].values()))
        what = f"{'the whole profile' if is_whole(summary) else 'a recorded iteration'} takes {took}"
        return Headline("step time", "not timed", what, ", ", known=False)
    median, p95 = summary["step_time_ns"]["median"], summary["step_time_ns"]["p95"]
    if median is None:
        return Headline("step time", NOT_RECORDED, known=False)
    used, slow = summary["steps_used"], summary["steps_slow"]
    spread = f"median, 95 % of the steps under {format_ns(p95)} (p95)" if p95 is not None else ""
    if not spread and used:
        spread = "a single step" if used + slow == 1 else f"median of {used + slow} steps"
    mean = summary["step_time_ns"].get("mean")
    if used > 1 and mean is not None and (slow or format_ns(mean) != format_ns(median)):
        spread += f", mean {f'of the {used} usual ones ' if slow else ''}{format_ns(mean)}"
    where = {"device": "on the device", "host": "on the host"}.get(summary["step_basis"] or "", "")
    if (unrecorded := summary.get("unrecorded_step_ns")) is not None:
        spread += f"{', ' if spread else ''}{format_ns(unrecorded)} when not recorded, which savings are told of"
    rest = ", ".join(piece for piece in (where, spread) if piece)
    return Headline("step time", format_ns(median), rest, " " if where else ", ")


def headlines(document: Document) -> list[Headline]:
    """The three numbers people look at first; of a job the one that its ranks have together.

    Of a profile without a device those that are known, if any: the header says that there is none.
    """
    summary = document["summary"]
    busy, without = summary["device_busy_share"], summary["device_busy_share_without_collectives"]
    of = "of the profile" if is_capture(summary) else "of the step time"
    other = f" ({format_share(without)} without collectives)" if without is not None and without != busy else ""
    duty = summary.get("duty_cycle_share")
    told = [_share("device busy", busy, f"{of}{other}")]
    if not is_job(document):
        told += [
            *([Headline("devices", text)] if (text := _devices_apart(document)) else []),
            *([Headline("duty cycle", format_share(duty), f"{of} in compiled modules")] if duty is not None else []),
            two_shares("ops on device", summary["device_ops_share"]),
            narrow_kernels(document),
        ]
    return told if document["profile"]["devices"] else [one for one in told if one.known]


def _devices_apart(document: Document) -> str:
    """What differs between the devices of one profile: what their own steps take, and which of them is the last; empty
    where they differ by less than is worth a fix."""
    entries = [e for e in document["analyses"].get("breakdown", ()) if e["step_ns"] and not e.get("unused")]
    mean = document["summary"]["step_time_ns"].get("mean")
    if len(entries) < 2 or not mean:
        return ""
    last, steps = max(entries, key=lambda e: int(e.get("behind_ns") or 0)), [int(e["step_ns"]) for e in entries]
    if max(last.get("behind_ns") or 0, max(steps) - min(steps)) < FINDING_SHARE * mean:
        return ""
    least, most = format_ns(min(steps)), format_ns(max(steps))
    own = f"own steps take {least}" if least == most else f"own steps take {least} to {most}"
    if not last.get("behind_ns"):
        return f"{own}, each at times of its own"
    return f"{own}; device {last['device']} is the last to end them, {format_ns(last['behind_ns'])} after the first"


def bar_note(document: Document) -> str:
    """Over what the bar's parts are means, where that is not one profile's steps alone."""
    count = len(document["profile"]["ranks"])
    return f"means over {count} ranks, late ones among them" if is_job(document) and count > 1 else ""


def two_shares(name: str, shares: TwoSharesEntry) -> Headline:
    """A share by count and by time."""
    by_count, by_time = shares["by_count"], shares["by_time"]
    if by_time is None:
        return _share(name, by_count, "by count")
    other = "" if by_count is None else f", {format_share(by_count)} by count"
    return Headline(name, format_share(by_time), f"by time{other}")


def _share(name: str, share: float | None, of: str) -> Headline:
    return Headline(name, format_share(share), "" if share is None else of, known=share is not None)


def narrow_kernels(document: Document) -> Headline:
    """How much of a profile's kernels is in 16 bits or fewer."""
    summary = document["summary"]
    return low_precision(summary["low_precision_share"], summary.get("precision_known_share"))


def low_precision(shares: TwoSharesEntry, known: float | None) -> Headline:
    """The share of kernels in 16 bits or fewer; ``known`` is the share of kernel time whose precision is known."""
    name, by_time = "16-bit kernels", shares["by_time"]
    if by_time is None or known is None or known >= PRECISION_KNOWN:
        return two_shares(name, shares)
    if known < PRECISION_UNKNOWN:
        what = f"the precision of {format_share(1 - known)} of kernel time is not known"
        return Headline(name, "not determined", what, ": ", known=False)
    return Headline(
        name, format_share(by_time), f"of the {format_share(known)} of kernel time whose precision is known"
    )


def is_whole(summary: SummaryEntry) -> bool:
    """Whether the profile has no steps, and stands for one."""
    return bool(summary.get("step_source") == "whole profile")


def where(place: Place | None) -> str:
    """One place as a line of text, most exact locator first; empty where nothing of it was recorded."""
    if place is None:
        return ""
    pieces = []
    if place["file"] is not None:
        line = "" if place["line"] is None else f":{place['line']}"
        at = f"{place['file']}{line}"
        if place.get("defined"):
            pieces.append(f"in {place['function']}, which begins at {at}")
        elif place["line"] is None and place["function"] is not None:
            pieces.append(f"in {place['function']} ({at})")
        else:
            pieces.append(at if place["function"] is None else f"{at} in {place['function']}")
    elif place["function"] is not None:
        pieces.append(f"in {place['function']}")
    for key, word in (("op", "op"), ("module", "module"), ("annotation", "annotated")):
        if place[key] is not None:
            pieces.append(f"{word} {place[key]}")
    return " · ".join(pieces)


def places(given: Sequence[Place]) -> list[str]:
    """The places of a finding, a line each; where there are several, with the time that passes in each."""
    told = [(line, place.get("ns_per_step")) for place in given if (line := where(place))]
    return [line if ns is None or len(told) < 2 else f"{line} · {format_ns(ns)}" for line, ns in told]


BEGINS = "+"
"""Behind a line in a table: that of the function's beginning."""


def locator(place: Place | None) -> str:
    """The most exact part of a place alone, for a table."""
    if place is None:
        return ""
    if place["file"] is not None:
        if place["line"] is None:
            return place["file"] if place["function"] is None else f"{place['file']} in {place['function']}"
        return f"{place['file']}:{place['line']}{BEGINS if place.get('defined') else ''}"
    return next((place[key] for key in ("function", "op", "module", "annotation") if place[key] is not None), "")


def step_names(document: Document) -> dict[int | None, str]:
    """What people know each step by, by its index: the marker's number, else the index."""
    return {
        step["index"]: str(step["index"] if step["number"] is None else step["number"]) for step in document["steps"]
    }


def damage(document: Document) -> str | None:
    """What to say first of a profile that could not be read whole."""
    if document["profile"]["complete"]:
        return None
    losses = document["profile"].get("losses")
    of_ranks = [loss["text"] for loss in losses or () if loss["code"].startswith("rank_")]
    if of_ranks:
        more = len(of_ranks) - _RANKS_NAMED
        told = [*of_ranks[:_RANKS_NAMED], *([f"Nor could {more} more."] if more > 0 else []), "This covers the rest."]
        return " ".join(told)
    if losses is not None and not any(loss["lost_events"] or loss["lost_bytes"] for loss in losses):
        return "This file is damaged; all its events could be read, and the notices say what was mended."
    return "Part of this profile could not be read: this covers the rest, and the notices say what was lost."


def notice(item: NoticeEntry) -> str:
    """A notice as one line, with its count where it has one that the words do not say."""
    count, text = item["count"], item["text"]
    if count is None or count == 1 or item.get("says_count"):
        return str(text)
    return f"{text} ({format_count(count)}×)"


_NO_SHARE = ("device", "capture", "unknown")
"""Bottlenecks of which it says enough, or nothing at all, how much is worked."""


def without_findings(summary: SummaryEntry) -> str:
    """What to say when no rule found anything: good news only where the device sets the pace."""
    works = sum(share for name, share in summary["parts_share"].items() if labels.works(name))
    if 2 * works > 1 and summary["bottleneck"] not in _NO_SHARE:
        who = "the device works" if summary["step_basis"] == "device" else "the host computes"
        return f"No remedy was found: {who} {format_share(works)} of each step."
    bound = labels.bottleneck(summary["bottleneck"])
    return f"{'Nothing to fix' if is_healthy(summary) else 'No remedy'} was found: {bound}."


def is_healthy(summary: SummaryEntry) -> bool:
    """Whether the device's own work sets the step time."""
    return bool(summary["bottleneck"] == "device")


def is_capture(summary: SummaryEntry) -> bool:
    """Whether graphs are captured in what was recorded: no step of it ran."""
    return bool(summary["bottleneck"] == "capture")


def is_partial(summary: SummaryEntry) -> bool:
    """Whether the device's activity is lost, at least in part: how its time divides is then not known."""
    return bool(summary["step_basis"] == "device" and summary["device_busy_share"] is None)


def file_line(item: FileEntry) -> str:
    """One input file with its size and events."""
    return f"{item['path']}, {format_bytes(item['bytes'])}, {format_count(item['events'])} events"
