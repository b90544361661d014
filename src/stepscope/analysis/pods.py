"""The devices of a host beside each other, what they counted, and what hosts exchanged over the network."""

from __future__ import annotations

import numpy as np

from stepscope.analysis.facts import Facts
from stepscope.record import record
from stepscope.regex import regex
from stepscope.trace import intervals as iv
from stepscope.trace.tables import TrackKind

_MEGASCALE = "/device:CUSTOM:Megascale Trace"
_GRAPH = regex(r"device_\d+_gid_")
"""Begins the name of an exchange; each device that takes part has its own number (XProf's ExtractDeviceIdFromGraphKey
and kGraphNameRe in xprof/convert/megascale_perfetto). Actions are called ``NetworkSend END`` and so on."""


def ended_last(facts: Facts) -> dict[int, int]:
    """Per device in how many used steps it ended after all others; of one device nothing."""
    accounts = [account for account in facts.working if account.rows.device is not None]
    steps = [step for step in facts.used if all(account.step_row(step) is not None for account in accounts)]
    if len(accounts) < 2 or not steps:
        return {}
    ends = np.array([account.windows(account.step_rows(tuple(steps)))[1] for account in accounts])
    alone = (ends == ends.max(axis=0)).sum(axis=0) == 1
    counts = np.bincount(ends.argmax(axis=0)[alone], minlength=len(accounts)).tolist()
    return {account.rows.device: count for account, count in zip(accounts, counts, strict=True)
            if account.rows.device is not None}  # fmt: skip


@record
class CounterUse:
    """Values that a device counted in the used steps, as the profile calls them; their unit is not recorded."""

    device: int
    name: str
    count: int
    least: float
    mean: float
    most: float


def counters(facts: Facts) -> list[CounterUse]:
    """What devices counted: power, utilisation, hardware counters."""
    table, tracks = facts.trace.counters, facts.trace.tracks
    if not len(table) or not facts.used:
        return []
    steps = list(facts.used)
    window = iv.union(facts.markers.start[steps], facts.markers.start[steps] + facts.host_step_ns[steps])
    inside = iv.covered_between(window, table.time_ns, table.time_ns + 1) > 0
    rows = np.flatnonzero(inside & (tracks.device[table.track] >= 0) & ~np.isnan(table.value))
    device, name = tracks.device[table.track[rows]], table.name[rows]
    uses = []
    for number, code in sorted(set(zip(device.tolist(), name.tolist(), strict=True))):
        value = table.value[rows[(device == number) & (name == code)]]
        said = float(value.min()), float(value.mean()), float(value.max())
        uses.append(CounterUse(number, facts.trace.strings[code], value.size, *said))
    return sorted(uses, key=lambda use: (use.name, use.device))


@record
class NetworkUse:
    """What Megascale does for exchanges between slices of TPUs, by its name, in the whole profile."""

    name: str
    count: int
    ns: int
    median_ns: int
    longest_ns: int


def network(facts: Facts) -> list[NetworkUse]:
    """What the hosts did to exchange data over the network, those that took longest first."""
    slices, tracks, strings = facts.trace.slices, facts.trace.tracks, facts.trace.strings
    processes = [strings[code] if code >= 0 else "" for code in tracks.process.tolist()]
    mine = np.array([name.startswith(_MEGASCALE) for name in processes], np.bool_)
    mine &= tracks.kind == TrackKind.OTHER
    rows = np.flatnonzero(mine[slices.track])
    by_name: dict[str, list[int]] = {}
    for code, ns in zip(slices.name[rows].tolist(), slices.dur_ns[rows].tolist(), strict=True):
        by_name.setdefault(_GRAPH.sub("", strings[code], count=1), []).append(ns)
    uses = [NetworkUse(name, len(took), sum(took), int(np.median(took)), max(took)) for name, took in by_name.items()]
    return sorted(uses, key=lambda use: (-use.ns, use.name))
