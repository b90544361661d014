"""Tables that number distinct byte strings and distinct lanes, filled by the kernels.

A table is an array of eight-byte words that the kernels reach by address: the first words say where its parts lie, how
large they are and how much is used. A full table makes the kernel return; Python then grows it and calls again.
"""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np

from stepscope.compiled import inlined, native, outlined
from stepscope.formats.chrome.scan.machine import (
    load_byte,
    load_half,
    load_word,
    shift_right,
    store_byte,
    store_half,
    store_word,
)
from stepscope.trace.tables import I64

FULL = -1

# Words of a string table, as byte offsets.
_HASHES, _IDS, _STARTS, _POOL, _MASK, _MAX_STRINGS, _POOL_SIZE, _COUNT, _USED, _SEED = range(0, 80, 8)
# Words of a lane table; the slots follow it: pid, tid, kinds, lane + 1.
_SLOTS, _LANE_MASK, _LANE_COUNT = range(0, 24, 8)
_SLOT_BYTES = 32

# Odd constants of the splitmix64 and Fibonacci-hashing families: they spread bits, nothing else depends on them.
_SPREAD = -0x61C8864680B583EB
_MIX = 0x2127599BF4325C37


@inlined
def hash_bytes(start, length, seed):
    """Hash ``length`` bytes; loads whole words, so eight bytes past the end must be readable."""
    value = (length * _SPREAD) ^ seed
    if length < 8:
        word = load_word(start)
        word = word & ~(-1 << (8 * length)) if length > 0 else 0
        value = (value ^ word) * _MIX
    else:
        last = start + length - 8
        while start < last:
            value = (value ^ load_word(start)) * _MIX
            value ^= shift_right(value, 29)
            start += 8
        value = (value ^ load_word(last)) * _MIX
    value ^= shift_right(value, 32)
    value *= _SPREAD
    value ^= shift_right(value, 29)
    return value


@inlined
def same_bytes(first, second, length):
    """Whether ``length`` bytes at two addresses are equal."""
    if length < 8:
        return length == 0 or ((load_word(first) ^ load_word(second)) & ~(-1 << (8 * length))) == 0
    done = 0
    while done + 8 < length:
        if load_word(first + done) != load_word(second + done):
            return False
        done += 8
    return load_word(first + length - 8) == load_word(second + length - 8)


@outlined
def _insert(table, start, length, value, slot):
    number = load_word(table + _COUNT)
    used = load_word(table + _USED)
    if (
        2 * number > load_word(table + _MASK)
        or number + 2 >= load_word(table + _MAX_STRINGS)
        or used + length + 64 > load_word(table + _POOL_SIZE)
    ):
        return FULL
    pool = load_word(table + _POOL)
    for index in range(length):
        store_byte(pool + used + index, load_byte(start + index))
    store_word(table + _USED, used + length)
    store_word(load_word(table + _STARTS) + 8 * number + 8, used + length)
    store_word(table + _COUNT, number + 1)
    store_word(load_word(table + _HASHES) + 8 * slot, value)
    store_half(load_word(table + _IDS) + 4 * slot, number)
    return number


@inlined
def intern(start, length, table):
    """The number of a byte string, a new one where it was not seen before; ``FULL`` where the table must grow."""
    value = hash_bytes(start, length, load_word(table + _SEED))
    mask = load_word(table + _MASK)
    hashes, ids = load_word(table + _HASHES), load_word(table + _IDS)
    starts, pool = load_word(table + _STARTS), load_word(table + _POOL)
    slot = value & mask
    while True:
        number = load_half(ids + 4 * slot)
        if number < 0:
            return _insert(table, start, length, value, slot)
        if load_word(hashes + 8 * slot) == value:
            at = load_word(starts + 8 * number)
            if load_word(starts + 8 * number + 8) - at == length and same_bytes(pool + at, start, length):
                return number
        slot = (slot + 1) & mask


@outlined
def intern_rare(start, length, table):
    """As :func:`intern`, called instead of inlined."""
    return intern(start, length, table)


@outlined
def lane_number(table, pid, tid, kinds):
    """The number of a lane; ``kinds`` tells integers, texts and absent values apart (see ``rows``)."""
    mask = load_word(table + _LANE_MASK)
    slots = load_word(table + _SLOTS)
    slot = (pid * _SPREAD) ^ (tid * _MIX) ^ kinds
    slot = (slot ^ shift_right(slot, 31)) & mask
    while True:
        at = slots + _SLOT_BYTES * slot
        number = load_word(at + 24)
        if number == 0:
            count = load_word(table + _LANE_COUNT)
            if 2 * count > mask:
                return FULL
            store_word(table + _LANE_COUNT, count + 1)
            store_word(at, pid)
            store_word(at + 8, tid)
            store_word(at + 16, kinds)
            store_word(at + 24, count + 1)
            return count
        if load_word(at) == pid and load_word(at + 8) == tid and load_word(at + 16) == kinds:
            return number - 1
        slot = (slot + 1) & mask


@native
def intern_from_python(start, length, table):
    """The door for Python callers to :func:`intern`."""
    return intern(start, length, table)


@native
def lane_from_python(table, pid, tid, kinds):
    """The door for Python callers to :func:`lane_number`."""
    return lane_number(table, pid, tid, kinds)


@native
def _rehash(hashes, ids, new_hashes, new_ids):
    mask = len(new_ids) - 1
    for old in range(len(ids)):
        if ids[old] >= 0:
            slot = hashes[old] & mask
            while new_ids[slot] >= 0:
                slot = (slot + 1) & mask
            new_hashes[slot] = hashes[old]
            new_ids[slot] = ids[old]


class StringTable:
    """Distinct byte strings in order of appearance; ``address`` is what the kernels take."""

    def __init__(self, slots: int = 1 << 13, pool: int = 1 << 18) -> None:
        self._words = np.zeros(10, np.int64)
        self._words[_SEED // 8] = int.from_bytes(os.urandom(8), "little", signed=True)
        self._allocate(slots, pool)

    @property
    def address(self) -> int:
        """Where the table lies."""
        return self._words.ctypes.data

    def __len__(self) -> int:
        return int(self._words[_COUNT // 8])

    def intern(self, text: bytes) -> int:
        """The number of ``text``."""
        padded = np.frombuffer(text + bytes(8), np.uint8)
        while (number := intern_from_python(padded.ctypes.data, len(text), self.address)) == FULL:
            self.grow(len(text))
        return int(number)

    def grow(self, length: int = 0) -> None:
        """Four times the room for text, and for strings where their number needs it."""
        hashes, ids, starts, pool = self._hashes, self._ids, self._starts, self._pool
        crowded = 4 * len(self) > len(ids)
        self._allocate(len(ids) * 4 if crowded else len(ids), max(len(pool) * 4, len(pool) + length + 64))
        _rehash(hashes, ids, self._hashes, self._ids)
        self._starts[: len(starts)] = starts
        self._pool[: len(pool)] = pool

    def texts(self) -> list[bytes]:
        """The strings, by number."""
        ends = self._starts[: len(self) + 1].tolist()
        blob = self._pool[: ends[-1]].tobytes()
        return [blob[start:end] for start, end in pairwise(ends)]

    def _allocate(self, slots: int, pool: int) -> None:
        self._hashes = np.empty(slots, np.int64)
        self._ids = np.full(slots, -1, np.int32)
        self._starts = np.zeros(slots // 2 + 2, np.int64)
        self._pool = np.empty(pool, np.uint8)
        parts = (self._hashes, self._ids, self._starts, self._pool)
        self._words[:4] = [part.ctypes.data for part in parts]
        self._words[4:7] = slots - 1, len(self._starts), pool


class LaneTable:
    """Distinct (pid, tid) pairs in order of appearance; text is a number of the raw-text table."""

    def __init__(self, slots: int = 1 << 10) -> None:
        self._words = np.zeros(3, np.int64)
        self._allocate(slots)

    @property
    def address(self) -> int:
        """Where the table lies."""
        return self._words.ctypes.data

    def number(self, pid: int, tid: int, kinds: int) -> int:
        """The number of a lane."""
        while (lane := lane_from_python(self.address, pid, tid, kinds)) == FULL:
            self.grow()
        return int(lane)

    def grow(self) -> None:
        """Four times the room."""
        lanes = self.lanes().tolist()
        self._words[_LANE_COUNT // 8] = 0
        self._allocate(len(self._slots) * 4)
        for pid, tid, kinds in lanes:
            lane_from_python(self.address, pid, tid, kinds)

    def lanes(self) -> I64:
        """Rows of (pid, tid, kinds), by number."""
        taken = self._slots[self._slots[:, 3] > 0]
        return taken[np.argsort(taken[:, 3]), :3]

    def _allocate(self, slots: int) -> None:
        self._slots = np.zeros((slots, 4), np.int64)
        self._words[:2] = self._slots.ctypes.data, slots - 1
