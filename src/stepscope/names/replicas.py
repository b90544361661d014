"""Which devices exchange data in a collective of XLA, from its replica groups as HLO text writes them.

Three forms: listed (``{{0,1},{2,3}}``), cut from an array of the numbers 0, 1, 2 … (``[2,2]<=[4]``,
``[4,2]<=[2,4]T(1,0)``), and along some axes of a mesh (``mesh['x'=2,'y'=4] {'y'}``). Source:
xla/hlo/ir/replica_group.h.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np
import numpy.typing as npt

from stepscope.regex import regex

_LISTED = regex(r"\{([\d,]+)\}")
_IOTA = regex(r"\[(\d{1,9}),(\d{1,9})\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?$")
_MESH = regex(r"mesh\[(?P<axes>[^\]]*)\](?:, device_ids=\((?P<ids>[^{]*)\))? \{(?P<used>[^}]*)\}$")
_AXIS = regex(r"'([^']*)'=(\d{1,9})")
_MOST = 1 << 20
"""Devices: more is no machine."""

_Devices = npt.NDArray[np.int64]
Groups = tuple[tuple[int, ...], ...]


def replica_groups(text: str) -> Groups | None:
    """The groups of devices; None where the text names none, or cuts axes of a mesh into parts.

    >>> replica_groups("{{0,1},{2,3}}"), replica_groups("[2,2]<=[2,2]T(1,0)")
    (((0, 1), (2, 3)), ((0, 2), (1, 3)))
    >>> replica_groups("mesh['x'=2,'y'=2] {'x'}")
    ((0, 2), (1, 3))
    """
    if text.startswith("{{"):
        return tuple(tuple(_numbers(part)) for part in _LISTED.findall(text)) or None
    order = _from_mesh(text) if text.startswith("mesh") else _from_iota(text)
    return None if order is None else tuple(tuple(group) for group in order.tolist())


def group_size(text: str) -> int | None:
    """Devices of a group, where all groups are alike.

    >>> group_size("{{0,1},{2,3}}"), group_size("[2,4]<=[8]"), group_size("{{}}")
    (2, 4, None)
    """
    groups = replica_groups(text)
    sizes = {len(group) for group in groups or ()}
    return sizes.pop() if len(sizes) == 1 else None


def _from_iota(text: str) -> _Devices | None:
    match = _IOTA.match(text)
    if match is None:
        return None
    return _cut(_numbers(match[3]), _numbers(match[4] or ""), int(match[1]), int(match[2]))


def _from_mesh(text: str) -> _Devices | None:
    match = _MESH.match(text)
    axes = [(name, int(size)) for name, size in _AXIS.findall(match["axes"])] if match else []
    if match is None or not axes or prod(size for _, size in axes) > _MOST:
        return None
    names = [name for name, _ in axes]
    used = [name.strip("'") for name in match["used"].split(",")]
    if any(name not in names for name in used):
        return None
    along = [names.index(name) for name in used]
    shape = [size for _, size in axes]
    kept = [axis for axis in range(len(axes)) if axis not in along]
    devices = _devices(match["ids"], prod(shape))
    if devices is None:
        return None
    return devices.reshape(shape).transpose(kept + along).reshape(-1, prod(shape[axis] for axis in along))


def _devices(ids: str | None, count: int) -> _Devices | None:
    """The devices of a mesh in its order: 0, 1, 2 … unless it says others."""
    if ids is None:
        return np.arange(count)
    if ids.startswith("["):
        match = re.match(r"\[([\d,]+)\](?:T\(([\d,]+)\))?$", ids)
        return None if match is None else _cut(_numbers(match[1]), _numbers(match[2] or ""), 1, count)
    listed = np.array(_numbers(ids))
    return listed if listed.size == count else None


def _cut(dims: list[int], order: list[int], count: int, size: int) -> _Devices | None:
    if not dims or count * size != prod(dims) or prod(dims) > _MOST:
        return None
    if order and sorted(order) != list(range(len(dims))):
        return None
    return np.arange(prod(dims)).reshape(dims).transpose(order or range(len(dims))).reshape(count, size)


def _numbers(text: str) -> list[int]:
    return [int(part[:18]) for part in text.split(",") if part.isdigit()]
