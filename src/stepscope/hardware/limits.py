"""How near a device's figures come to its product's: each says where it comes from."""

from __future__ import annotations

from typing import Final

MEMORY_FITS_FROM: Final = 0.9
"""A device has at least this share of its product's nominal memory: error correction and the driver take up to 8 % (a
T4 reports 14.8 of 16 GiB), and the next product has a sixth more or less."""

BANDWIDTH_FITS_WITHIN: Final = 0.02
"""Memory bandwidth by clock and bus is that of the data sheet but for rounding: 898 for 900 GB/s. Products of equal
multiprocessors and memory differ by 5 % at least (an A100 of 80 GB: 1,935 and 2,039 GB/s)."""
