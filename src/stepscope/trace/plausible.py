"""What a file says of its run where no run can be so: left out, and counted, once for every format.

What follows counts ranks, lays out arrays by them and writes numbers into documents: a rank of -2**63 or a job of
10**200 ranks is a mistake of the file, or an attack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from stepscope.trace import tables as t
from stepscope.trace.trace import Completeness, Device, Info, Loss

MOST_RANKS = 1 << 20
"""Ranks of a job; the largest known have some hundred thousand devices."""
_MOST = (1 << 63) - 1
_DEEPEST = 32
"""Levels of the file's own keys that are kept."""
_LISTED = 8


def plausible(info: Info, completeness: Completeness, tables: Mapping[str, t.Table]) -> tuple[Info, Completeness]:
    """The run and its losses without what cannot be; columns of counts lose impossible ones in place."""
    odd: list[str] = []
    info = dataclasses.replace(
        info,
        rank=_within(odd, "its rank", info.rank, 0, MOST_RANKS - 1),
        world_size=_within(odd, "the number of ranks", info.world_size, 1, MOST_RANKS),
        origin_epoch_ns=_within(odd, "the date", info.origin_epoch_ns, 0, _MOST),
        devices=tuple(device for given in info.devices if (device := _device(odd, given)) is not None),
        process_groups=tuple(_group(odd, group) for group in info.process_groups),
        host=None if info.host is None else _text(info.host),
        header=_cleaned(odd, info.header),
    )
    for table in tables.values():
        for name, least in _bounded(type(table)) if len(table) else ():  # type: ignore[arg-type]  # it has a hash
            values = getattr(table, name)
            if len(wrong := np.flatnonzero((values < least) & (values != t.NULL))):
                values[wrong] = t.NULL
                odd.append(name.replace("_", " "))
    if not odd:
        return info, completeness
    named = list(dict.fromkeys(odd))
    listed = ", ".join(named[:_LISTED]) + (f" and {len(named) - _LISTED} more" if len(named) > _LISTED else "")
    lost = Loss("implausible", len(odd), f"Left out, as no run can have what the file says: {listed}")
    return info, dataclasses.replace(completeness, losses=(*completeness.losses, lost))


@cache
def _bounded(kind: type[Any]) -> list[tuple[str, int]]:
    """The columns of a table that have a least value, with it."""
    of = [(declared.name, declared.metadata["least"]) for declared in dataclasses.fields(kind)]
    return [(name, least) for name, least in of if least is not None]


def _within(odd: list[str], name: str, value: int | None, least: int, most: int) -> int | None:
    if value is None or least <= value <= most:
        return value
    odd.append(name)
    return None


def _device(odd: list[str], given: Device) -> Device | None:
    """A device; None where its number is none."""
    if _within(odd, "a device's number", given.id, 0, _MOST >> 32) is None:
        return None
    capability = given.compute_capability
    if capability is not None and not all(0 <= part < 1_000 for part in capability):
        odd.append("a device's compute capability")
        capability = None
    counts: dict[str, Any] = {
        name: _within(odd, f"a device's {name.replace('_', ' ')}", getattr(given, name), 0, _MOST)
        for name in ("memory_bytes", "multiprocessors", "clock_khz", "memory_bandwidth")
    }
    name = None if given.name is None else _text(given.name)
    return dataclasses.replace(given, name=name, compute_capability=capability, **counts)


def _group(odd: list[str], group: Mapping[str, Any]) -> Mapping[str, Any]:
    """A process group, without its ranks where some are none."""
    cleaned: dict[str, Any] = _cleaned(odd, group)
    ranks = cleaned.get("ranks")
    if isinstance(ranks, list) and not all(type(one) is int and 0 <= one < MOST_RANKS for one in ranks):
        odd.append("the ranks of a group")
        del cleaned["ranks"]
    return cleaned


def _cleaned(odd: list[str], value: Any, depth: int = 0) -> Any:
    """The file's own keys as any format can hold them: no numbers beyond 64 bits, no halves of characters."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) and not -_MOST - 1 <= value <= _MOST:
        odd.append("a number of its header")
        return None
    if isinstance(value, Mapping | list) and depth >= _DEEPEST:
        odd.append("what lies deep in its header")
        return None
    if isinstance(value, Mapping):
        return {_text(str(key)): _cleaned(odd, one, depth + 1) for key, one in value.items()}
    if not isinstance(value, list) or _are_numbers(value):
        return value
    return [_cleaned(odd, one, depth + 1) for one in value]


def _are_numbers(values: list[Any]) -> bool:
    """Whether all are whole numbers of 64 bits: every rank's file has the ranks of its groups, thousands of them."""
    return set(map(type, values)) == {int} and min(values) >= -_MOST - 1 and max(values) <= _MOST


def _text(text: str) -> str:
    """Without halves of characters, which no encoding can write."""
    return text.encode("utf-8", "replace").decode()
