"""TFRecord files, and the events that TensorFlow's summaries write into them."""

from __future__ import annotations

import struct

from tests.kit.wire import message


def record(data: bytes, said: int | None = None) -> bytes:
    """One record: length (or what is said of it), its checksum, the data and their checksum."""
    length = struct.pack("<Q", len(data) if said is None else said)
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def split(data: bytes) -> list[bytes]:
    """The data of the records, up to where a length goes wrong."""
    found, at = [], 0
    while at + 16 <= len(data) and at + 16 + (size := int.from_bytes(data[at : at + 8], "little")) <= len(data):
        found.append(data[at + 12 : at + 12 + size])
        at += 16 + size
    return found


def scalar(tag: str, wall_time: float, value: float) -> bytes:
    """An ``Event`` that holds a summary of one number, as TensorFlow 1 writes it."""
    number = struct.pack("<Bf", 2 << 3 | 5, value)
    return message((1, wall_time), (2, 7), (5, message((1, message((1, tag)) + number))))


def tensor(tag: str, wall_time: float, value: float) -> bytes:
    """The same as TensorFlow 2 writes it."""
    return message(
        (1, wall_time), (5, message((1, message((1, tag), (8, message((1, 1), (4, struct.pack("<f", value))))))))
    )


def masked_crc(data: bytes) -> int:
    """CRC-32C, rotated by 15 bits and with a constant added (tensorflow/core/lib/hash/crc32c.h)."""
    crc = (1 << 32) - 1
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= (1 << 32) - 1
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % (1 << 32)
