"""Notices from the manifest that ``stepscope run`` leaves beside a profile: what was asked for, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from stepscope.analysis.categories import Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from stepscope.diagnosis.evidence import SHOWN, has_python, host_share
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.limits import BOTTLENECK_SHARE, HOST_SHARE, LINE_LOOKS, LINE_SHARE
from stepscope.diagnosis.notices.recorded import host_unrecorded, no_lines
from stepscope.units import format_ns, format_share

Manifest = Mapping[str, Any]

_STARTING = "starting the profiler"
"""What the recorder calls the attempt of which a lighter one may come."""


def lighter(_: Facts, manifest: Manifest) -> Notice | None:
    """The profiler did not start with all that was asked for."""
    failed = [failure["what"] for failure in manifest["failures"] if failure["when"] == _STARTING]
    asked, switches = manifest["options"], _possible(manifest)
    less = [name for name, switch in switches.items() if asked.get(name) and not switch["on"]]
    if not failed or not less:
        return None
    return Notice(
        "profile_lighter", f"Recorded without {' and '.join(less)}: with them the profiler did not start ({failed[0]})."
    )


def stopped_early(_: Facts, manifest: Manifest) -> Notice | None:
    """The window ended before it had its steps."""
    window = manifest["window"]
    if manifest.get("periods") is not None:
        return None  # it tells of the last window alone
    if not window or window["ended"] in (None, "recorded") or window["steps"] >= manifest["options"]["active"]:
        return None
    text = f"Recording ended early: {window['ended']}."
    unrecorded = manifest["step_ns"]["unrecorded"]
    if not window["steps"] and unrecorded is not None:
        text += f" It holds no whole step; before it, a step took {format_ns(int(unrecorded))}."
    return Notice("profile_stopped_early", text)


def switches(facts: Facts, manifest: Manifest) -> Notice | None:
    """What was left out would have told more of what this profile loses its time to."""
    off = [
        f"{switch['adds']} ({how})"
        for name, switch in _possible(manifest).items()
        if switch["on"] is False and not manifest["options"].get(name) and name in _MATTERS
        for matters, how in [_MATTERS[name]]
        if matters(facts)
    ]
    return Notice("profile_switches", f"Not recorded, and worth knowing here: {'; '.join(off)}.") if off else None


def lines(facts: Facts, _: Manifest) -> Notice | None:
    """Lines of the job that its thread was at, where the profile says little of them."""
    looks, strings = facts.trace.looks, facts.trace.strings
    count = len(looks)
    if count < LINE_LOOKS or not (host_unrecorded(facts) or no_lines(facts)):
        return None
    rows = zip(looks.file.tolist(), looks.line.tolist(), looks.function.tolist(), strict=True)
    most = [each for each in Counter(rows).most_common(SHOWN) if each[1] >= LINE_SHARE * count]
    if not most:
        return None
    told = ", ".join(
        f"`{PurePath(strings[file]).name}:{line}` in `{strings[function]}` {format_share(seen / count)}"
        for (file, line, function), seen in most
    )
    return Notice(
        "profile_lines_sampled",
        f"Where the thread that runs the steps was while they were recorded, by {count:,} looks at it: {told}."
        " Lines that wait for the device are among them.",
    )


def _possible(manifest: Manifest) -> dict[str, Any]:
    """The switches, without what is recorded in another way alone: profile_no_lines, profile_host_unrecorded say in
    which."""
    return {name: switch for name, switch in manifest["switches"].items() if not switch.get("instead")}


def _host_matters(facts: Facts) -> bool:
    return not has_python(facts) and host_share(facts) >= HOST_SHARE


def _kernels_matter(facts: Facts) -> bool:
    return bool(facts.activities) and _share(facts, Category.COMPUTE) >= BOTTLENECK_SHARE


def _placement_matters(facts: Facts) -> bool:
    return bool(facts.activities) and _share(facts, Category.HOST_COMPUTE) >= HOST_SHARE


def _share(facts: Facts, category: Category) -> float:
    parts = mean_parts(facts)
    total = sum(parts.values())
    return parts.get(category, 0) / total if total else 0.0


_PLACEMENT_LOG = (
    "`tf.debugging.set_log_device_placement(True)` in the script, and its stderr in a file beside the profile: "
    "`2> placement.log`"
)
_MATTERS: dict[str, tuple[Callable[[Facts], bool], str]] = {
    "stacks": (_host_matters, "leave `--no-stacks` out"),
    "shapes": (_kernels_matter, "`stepscope run --shapes`"),
    "device_placement": (_placement_matters, _PLACEMENT_LOG),
}
"""Switch -> where it matters, and how it is turned on. XLA_HLO_DEBUG has a notice of its own."""

NOTICES: tuple[Callable[[Facts, Manifest], Notice | None], ...] = (lighter, stopped_early, switches, lines)

_FIRST = frozenset({"profile_lighter", "profile_stopped_early"})
"""What became of what was asked for: short reports cut the list of notices off, and how many come of what the steps
show is chance."""


def together(told: Iterable[Notice], facts: Facts, manifest: Manifest) -> list[Notice]:
    """The notices on a profile that stepscope recorded, and those of its manifest, in the order of reading."""
    ours = notices(facts, manifest)
    first = [notice for notice in ours if notice.code in _FIRST]
    return [*first, *told, *(notice for notice in ours if notice.code not in _FIRST)]


def notices(facts: Facts, manifest: Manifest) -> list[Notice]:
    """All that one should know of how a profile came about; a manifest that is none of ours says nothing."""
    try:
        told = [notice(facts, manifest) for notice in NOTICES]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    return [notice for notice in told if notice is not None]
