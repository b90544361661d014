"""Thresholds of the replay and of the changes: each says where it comes from."""

from __future__ import annotations

from typing import Final

# --- what-if ------------------------------------------------------------------------------------------------------

MATCHED_LAUNCHES_SHARE: Final = 0.95
"""No replay with fewer of the device's ops traced to their launch."""

REPLAY_ERROR: Final = 0.05
"""A replay further off the measured step time than this predicts nothing. On the real traces the median is under 0.1 %
and the worst 1.3 %."""

REPLAY_RESIDUAL_SHARE: Final = 0.10
"""Nor one that keeps more of the step as measured, as nothing recorded explains it."""

# --- findings -----------------------------------------------------------------------------------------------------

LOADER_SLOWER: Final = 0.5
"""A worker takes up to this much longer for what the loop's process does: caches, memory and the machine's clock are
shared, and what a virtual machine calls two cores may be two threads of one, by which the loop is slowed as well.
Measured with PyTorch 2.13 on two virtual cores: 9 to 15 % with one worker, 18 to 47 % with two, by the hour, and the
loop by 15 to 36 % while one worked."""

LOADER_HANDOVER_NS: Final = 500_000
LOADER_SEND_NS: Final = 1_500_000
"""What taking a batch of two tensors takes the loop's process, and what sending it takes the worker. Measured with
PyTorch 2.13: 0.25 ms for each tensor in the loop, 0.4 to 0.7 ms and 0.5 ms per MB in the worker."""

LOADER_START_NS: Final = 50_000_000
LOADER_STEPS: Final = 1_000
"""What starting a worker takes (30 ms measured for one that is forked), over so many steps: of a job of fewer nobody
counts milliseconds."""

MOST_WORKERS: Final = 16
"""More workers are never advised: what so many do not hide is too much work."""

UNKNOWN_CORES: Final = 8
"""Nor more than this where the number of cores is not recorded: machines with GPUs have so many for each."""

LAUNCH_GAP_NS: Final = 1_000_000
"""A longer gap is one long call (initialisation, a host op), not launch-bound work."""
