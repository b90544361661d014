"""Notices on profiles that say what no device can have done."""

from __future__ import annotations

from stepscope.analysis.contradictions import contradictions
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.finding import Notice
from stepscope.units import format_ns, format_share


def contradicted(facts: Facts) -> Notice | None:
    """What is impossible in it; nothing is then told of costs or savings."""
    against = contradictions(facts)
    if not against.any:
        return None
    said = [
        text.format(format_share(share))
        for share, text in (
            (against.before_launch, "{} of the device's ops begin before the call that launched them"),
            (against.after_wait, "{} of the waits for the device return before what they wait for has ended"),
            (against.elsewhere, "{} of the device's ops begin long after everything that the host did"),
            (against.repeated, "{} of the device's ops are there a second time"),
            (against.overlapping, "{} of the device's ops begin before the one before them on their stream has ended"),
            (against.numbers_shared, "{} of the launching calls share their number with another one"),
            (against.marked, "{} of the steps' ends lie inside ops, or where the profiler's own code did not run"),
        )
        if share
    ]
    why = [
        text
        for holds, text in (
            (
                against.clocks,
                "The device's times are of another clock or unit than the host's, or its ops carry the numbers of "
                "other calls",
            ),
            (against.twice, "Events were written twice, or a file was joined with itself"),
            (
                against.joined and not against.twice,
                "Several processes were joined into one, or durations are of another unit",
            ),
            (against.markers, "The step markers' times are of another clock than those of what they mark"),
        )
        if holds
    ]  # fmt: skip
    return Notice(
        "profile_contradicts_itself",
        f"No device can have done what this profile says: {'; '.join(said)}. {'. '.join(why)}. Steps, costs and "
        "savings are not to be trusted: use the profile as its profiler wrote it, or record it again.",
    )


def late(facts: Facts) -> Notice | None:
    """The device's clock is behind, or it works on what is not here: nothing is told of costs or savings."""
    against = contradictions(facts)
    if against.late is None or against.any:
        return None
    first, last = format_ns(against.late.first_ns), format_ns(against.late.last_ns)
    by = last if first == last else f"{first}, later {last},"
    return Notice(
        "profile_device_late",
        f"Of all work that the device was free for it began none sooner than {by} after it was told to, although "
        "nothing that was recorded kept it. Either its clock is behind the host's by so much, as in a profile that was "
        "converted or joined, or it worked each time, and as long, on what this profile does not hold: the profile "
        "looks the same either way, and what the device waits for does not. Costs and savings are not determined. Use "
        "the profile as its profiler wrote it; a wait for the device at the end of what is recorded "
        "(`torch.cuda.synchronize()`) tells clocks that are apart.",
        against.late.times,
    )


def ends_early(facts: Facts) -> Notice | None:
    """The device's end is missing."""
    against = contradictions(facts)
    if not against.ends_early or against.any:
        return None
    return Notice(
        "profile_device_ends_early",
        f"The last {format_share(against.in_vain)} of the launches have no op on the device: its end is missing (the "
        "profiler's buffer was full, or it was stopped before the device was done)"
        f"{', in steps that are used: costs are not determined' if against.in_used else ''}. Record fewer steps.",
    )
