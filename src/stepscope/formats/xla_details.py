"""The texts in which GPU profilers write what a kernel, copy or memset is (cupti_collector.cc, rocm_collector.cc)."""

from __future__ import annotations

import re
from typing import NamedTuple

from stepscope.formats.chrome.kineto_schema import copy_direction
from stepscope.regex import regex
from stepscope.trace.tables import NULL, Direction, MemoryKind

MOST_REGISTERS = 1024
"""Registers per thread: 255 on NVIDIA GPUs, 512 on AMD's."""

MOST_SHARED = 1 << 24
"""Bytes of shared memory per block: far above any GPU's."""

_FIELD = regex(r"(\w+):(\S*)")
_LONGEST = 2_048
_SHORT_DIRECTION = regex(r"([HDP])2([HDP])")
_DIRECTIONS = {"HD": Direction.H2D, "DH": Direction.D2H, "DD": Direction.D2D, "PP": Direction.P2P, "HH": Direction.H2H}
_MEMORY = {
    "pageable": MemoryKind.PAGEABLE,
    "pinned": MemoryKind.PINNED,
    "device": MemoryKind.DEVICE,
    "device_static": MemoryKind.DEVICE,
    "array": MemoryKind.DEVICE,
    "managed": MemoryKind.MANAGED,
    "managed_static": MemoryKind.MANAGED,
    "on_chip": MemoryKind.ON_CHIP,
}
_COPY = regex(r"(?i)^(?:(?:cuda|hip|cu)?memcpy|copy(?:host|device|peer)(?:to|$))")
_MEMSET = regex(r"(?i)^(?:(?:cuda|hip|cu)?memset|fillbuffer)")


class KernelDetails(NamedTuple):
    """What a launch asked for; NULL or None where not recorded."""

    grid: str | None = None
    block: str | None = None
    registers: int = NULL
    shared_memory: int = NULL
    occupancy_pct: float = float("nan")


class CopyDetails(NamedTuple):
    """What a copy moved."""

    bytes: int = NULL
    source: MemoryKind = MemoryKind.UNKNOWN
    target: MemoryKind = MemoryKind.UNKNOWN
    direction: Direction = Direction.UNKNOWN
    """Which only stepscope's own files say."""


def kernel_details(text: str) -> KernelDetails:
    """Read ``regs:32 static_shared:0 dynamic_shared:1024 grid:8,1,1 block:256,1,1 occ_pct:50``.

    >>> kernel_details(" grid:16,1,1 block:512,1,1 private_mem:0 group_mem:64 occ_pct:0").shared_memory
    64
    """
    fields = dict(_FIELD.findall(text[:_LONGEST]))
    registers, *shared = (_whole(fields.get(key)) for key in ("regs", "static_shared", "dynamic_shared", "group_mem"))
    known = [size for size in shared if size is not None]
    # Registers beyond any GPU's are memory that was never written, and so is what stands beside them.
    sane = registers is None or registers <= MOST_REGISTERS
    return KernelDetails(
        grid=_dimensions(fields.get("grid")),
        block=_dimensions(fields.get("block")),
        registers=registers if registers is not None and sane else NULL,
        shared_memory=sum(known) if known and sane and sum(known) <= MOST_SHARED else NULL,
        occupancy_pct=occupancy(_number(fields.get("occ_pct"))),
    )


def occupancy(percent: float) -> float:
    """A share of 100, NaN for what cannot be one: profilers write 0 where they could not tell."""
    return percent if 0 < percent <= 100 else float("nan")


def copy_details(text: str) -> CopyDetails:
    """Read ``kind_src:pinned kind_dst:device size:4096 dest:0 async:1`` or a memset's ``kind:device num_bytes:64``."""
    fields = dict(_FIELD.findall(text[:_LONGEST]))
    size = _whole(fields.get("size", fields.get("num_bytes")))
    return CopyDetails(
        NULL if size is None else size,
        _memory(fields.get("kind_src")),
        _memory(fields.get("kind_dst")),
        Direction.__members__.get(fields.get("direction", ""), Direction.UNKNOWN),
    )


def direction_of(name: str, details: CopyDetails) -> Direction:
    """Which way a copy goes: by its name, else by the memory at its ends.

    >>> direction_of("MemcpyH2D", CopyDetails()).name, direction_of("CopyDeviceToDevice", CopyDetails()).name
    ('H2D', 'D2D')
    """
    if details.direction is not Direction.UNKNOWN:
        return details.direction
    short = _SHORT_DIRECTION.search(name[:_LONGEST])
    if short:
        return _DIRECTIONS.get(short[1] + short[2], Direction.UNKNOWN)
    named = copy_direction(name[:_LONGEST])
    if named is not Direction.UNKNOWN:
        return named
    ends = _side(details.source) + _side(details.target)
    return _DIRECTIONS.get(ends, Direction.UNKNOWN)


def is_copy(name: str) -> bool:
    """Whether a device op is a copy by its name."""
    return _COPY.search(name) is not None


def is_memset(name: str) -> bool:
    """Whether a device op is a memset by its name."""
    return _MEMSET.search(name) is not None


def _side(memory: MemoryKind) -> str:
    return {MemoryKind.PAGEABLE: "H", MemoryKind.PINNED: "H", MemoryKind.DEVICE: "D"}.get(memory, "")


def _memory(text: str | None) -> MemoryKind:
    return _MEMORY.get((text or "").lower(), MemoryKind.UNKNOWN)


def _dimensions(text: str | None) -> str | None:
    return f"[{text.replace(',', ', ')}]" if text and re.fullmatch(r"\d+(,\d+)*", text) else None


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 19 else None


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
