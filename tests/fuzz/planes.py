"""A small XPlane file with planes of every kind, written field by field (tsl/profiler/protobuf/xplane.proto)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.kit.wire import message, packed

EPOCH_US = 1_700_000_000_000_000

Event = tuple[str, int, int, Mapping[str, Any]]
"""Name, start and duration in us, statistics."""


class Plane:
    """A plane under construction; names of events and statistics are numbered as they come."""

    def __init__(self, name: str, **stats: Any) -> None:
        self._events: dict[str, int] = {}
        self._keys: dict[str, int] = {}
        self._shared: dict[str, Mapping[str, Any]] = {}
        self._fields: list[tuple[int, Any]] = [
            (2, name),
            *[(6, self._stat(key, value)) for key, value in stats.items()],
        ]

    def line(self, id: int, name: str, events: Sequence[Event], time_ns: int = EPOCH_US * 1000) -> Plane:
        made = [
            (
                4,
                message(
                    (1, self._id(name)),
                    (2, start * 10**6),
                    (3, dur * 10**6),
                    *[(4, self._stat(k, v)) for k, v in stats.items()],
                ),
            )
            for name, start, dur, stats in events
        ]
        self._fields.append((3, message((1, id), (2, name), (3, time_ns), *made)))
        return self

    def about(self, event: str, **stats: Any) -> Plane:
        """Statistics that all events of a name share."""
        self._id(event)
        self._shared[event] = stats
        return self

    def bytes(self) -> bytes:
        names = [
            (
                4,
                message(
                    (1, id),
                    (
                        2,
                        message(
                            (1, id), (2, name), *[(5, self._stat(k, v)) for k, v in self._shared.get(name, {}).items()]
                        ),
                    ),
                ),
            )
            for name, id in self._events.items()
        ]
        return message(
            *self._fields,
            *names,
            *[(5, message((1, id), (2, message((1, id), (2, key))))) for key, id in self._keys.items()],
        )

    def _id(self, event: str) -> int:
        return self._events.setdefault(event, len(self._events) + 1)

    def _stat(self, key: str, value: Any) -> bytes:
        id = self._keys.setdefault(key, len(self._keys) + 1)
        kind = {float: 2, int: 4, str: 5, bytes: 6}[type(value)]
        if key == "hlo_module":  # a text that all share
            kind, value = 7, self._keys.setdefault(value, len(self._keys) + 1)
        return message((1, id), (kind, value))


def hlo() -> bytes:
    """An ``HloProto`` of two instructions with scope, source, stack frames and replica groups."""
    location = message((1, 1), (2, 1), (3, 12), (4, 1))
    frames = message((1, "train.py"), (2, "step"), (3, location), (4, message((1, 1))))
    scope = message((1, "dot_general"), (2, "jit(step)/dot_general"), (3, "train.py"), (4, 12), (15, 1))
    groups = message((1, packed(0, 1)))
    instructions = [
        message((1, "fusion.1"), (2, "fusion"), (7, scope), (35, 5), (36, packed(6))),
        message((1, "all-reduce.1"), (2, "all-reduce"), (49, groups), (35, 6), (7, message((4, 14)))),
        message((1, "p.1"), (2, "parameter"), (3, message((2, 11), (3, packed(8, 8)))), (35, 7)),
    ]
    computation = message((1, "main"), *[(2, one) for one in instructions], (5, 9))
    return message((1, message((1, "jit_step"), (2, "main"), (3, computation), (5, 3), (6, 9), (25, frames))))


def xspace(program: bytes = b"") -> bytes:
    """Every kind of plane: host threads, a GPU with streams, a TPU with derived lines, modules, the environment.

    ``program`` takes the place of the compiled one.
    """
    python: list[Event] = []
    pool: list[Event] = []
    stream: list[Event] = []
    steps: list[Event] = []
    modules: list[Event] = []
    ops: list[Event] = []
    for step in range(3):
        at = 1000 * step
        python += [
            ("train", at, 990, {"_r": 1, "step_num": step}),
            ("$train.py:7 main", at + 1, 980, {}),
            ("PjitFunction(step)", at + 100, 120, {}),
            ("cuLaunchKernel", at + 150, 8, {"correlation_id": 10 + step}),
            ("TpuExecute", at + 170, 9, {"run_id": step, "_pt": 5, "_p": 70 + step}),
            ("cuMemcpyHtoDAsync", at + 200, 9, {"correlation_id": 50 + step}),
        ]
        pool += [
            ("ThunkExecutor::Execute", at + 180, 300, {"_ct": 5, "_c": 70 + step}),
            (
                "dot.1",
                at + 190,
                90,
                {
                    "hlo_op": "dot.1",
                    "hlo_module": "jit_step",
                    "run_id": step,
                    "device_ordinal": step % 2,
                    "program_id": 3,
                },
            ),
        ]
        stream += [
            (
                "loop_fusion",
                at + 300,
                200,
                {
                    "correlation_id": 10 + step,
                    "kernel_details": "regs:32 static_shared:64 dynamic_shared:0 grid:8,1,1 block:128,1,1 occ_pct:75.5",
                    "hlo_op": "fusion.1",
                    "hlo_module": "jit_step",
                    "program_id": 3,
                    "theoretical_occupancy_pct": 75.5,
                },
            ),
            (
                "MemcpyH2D",
                at + 510,
                40,
                {
                    "correlation_id": 50 + step,
                    "memcpy_details": "kind_src:pageable kind_dst:device size:4096 dest:0 async:1",
                },
            ),
            ("Memset", at + 560, 4, {"Memset_details": "kind:device size:512 dest:0 async:1"}),
        ]
        steps.append((str(step), at, 900, {}))
        modules.append(("jit_step(3)", at + 10, 800, {"run_id": step}))
        ops += [
            ("%fusion.1 = f32[8,8] fusion(%p)", at + 20, 300, {}),
            ("%all-reduce.1 = f32[8,8] all-reduce(%x)", at + 400, 100, {"bytes_accessed": 4096}),
            ("infeed.1", at + 600, 60, {"device_offset_ps": at * 10**6, "device_duration_ps": 99}),
        ]
    memory: list[Event] = [
        (
            "MemoryAllocation",
            5,
            0,
            {
                "requested_bytes": 64,
                "allocation_bytes": 256,
                "addr": 1 << 40,
                "bytes_allocated": 999,
                "allocator_name": "BFC",
            },
        ),
        ("MemoryDeallocation", 9, 0, {"addr": 1 << 40, "allocation_bytes": 256}),
    ]
    planes = (
        Plane("/host:CPU").line(1, "python", python).line(2, "tf_XLAEigen/77", pool).line(3, "allocator", memory),
        Plane("/device:GPU:0", core_count=108, memory_size=1 << 36, compute_cap_major=8, device_vendor="Nvidia")
        .line(7, "Stream #7(Compute,MemcpyH2D)", stream)
        .line(8, "XLA Modules", modules)
        .line(9, "_counters_", [("power", 10, 0, {"power": 250})]),
        Plane("/device:TPU:0", peak_teraflops_per_second=197.5)
        .line(1, "Steps", steps)
        .line(2, "XLA Modules", modules)
        .line(3, "XLA Ops", ops)
        .about(
            "%fusion.1 = f32[8,8] fusion(%p)",
            hlo_category="convolution fusion",
            flops=1 << 20,
            tf_op="jit(step)/dot",
            source="train.py:12",
            program_id=3,
            bytes_accessed=512,
        ),
        Plane("/host:metadata").about("jit_step(3)", **{"Hlo Proto": program or hlo(), "program_id": 3}),
        Plane("Task Environment", profile_start_time=EPOCH_US * 1000, profile_stop_time=EPOCH_US * 1000 + 3_000_000),
    )
    return message(*[(1, plane.bytes()) for plane in planes], (2, "an error"), (3, "a warning"), (4, "host-7"))
