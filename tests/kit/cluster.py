"""Whole jobs: ranks that compute, exchange data and wait for each other, each recorded on a clock of its own.

Every rank runs a program of ops per step; a collective ends on all its members a transfer after the last of them came.
The truth is what was planted and what the simulation did: who came last, what everyone waited, how clocks differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.kit.drawing import LOADER
from tests.kit.events import US, Event, Stream, Thread
from tests.kit.kineto_writer import write_kineto

COMPUTE, COMM = 7, 20
CALL_NS, LATENCY_NS, RETURN_NS = 3 * US, 5 * US, 2 * US
START_NS = 500_000_000
"""True time at which the job begins; clocks may be behind by less."""

KERNELS = {
    "all_reduce": ("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    "all_gather": ("_allgather_base", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"),
    "all_to_all": ("all_to_all", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
    "send_recv": ("send", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"),
}


@dataclass(frozen=True, slots=True)
class Op:
    """One op of a rank's step: ``compute``, ``input``, ``python`` or ``collective``; times in ns."""

    what: str
    ns: int
    name: str = ""
    members: tuple[int, ...] = ()
    kind: str = "all_reduce"
    elements: int = 1 << 20
    overlaps: bool = False
    """Compute goes on beside the collective."""
    stream: int = COMM


Program = Callable[[int, int], Sequence[Op]]
"""The ops of a rank in a step."""


@dataclass(frozen=True, slots=True)
class Clock:
    """How a rank's clock runs: ``offset + drift x time`` ahead of the true one."""

    offset_ns: float = 0.0
    drift: float = 0.0

    def read(self, true_ns: int) -> int:
        """What it shows."""
        return round(true_ns + self.offset_ns + self.drift * (true_ns - START_NS))


@dataclass(slots=True)
class Met:
    """A collective that took place: when each member came, and the end."""

    members: tuple[int, ...]
    step: int
    came: dict[int, int]
    end: int

    @property
    def last(self) -> int:
        """The member that came last."""
        return max(self.came, key=lambda rank: self.came[rank])

    def waited(self, rank: int) -> int:
        """What a member waited for the last one."""
        return max(self.came.values()) - self.came[rank]


@dataclass(slots=True)
class _Rank:
    rank: int
    now: int = START_NS
    compute_free: int = 0
    comm_free: dict[int, int] = field(default_factory=dict)
    """By stream."""
    correlation: int = 100
    events: list[Event] = field(default_factory=list)

    def host(self, cat: str, name: str, ns: int, **args: object) -> None:
        self.events.append(Event(cat, name, Thread("main"), self.now, ns, args=args))  # type: ignore[arg-type]
        self.now += ns

    def call(self, name: str, ns: int = CALL_NS) -> None:
        self.correlation += 1
        call = Event("cuda_runtime", name, Thread("main"), self.now, ns, self.correlation)
        self.events.append(call)
        self.now += ns

    def kernel(self, name: str, begin: int, end: int, stream: int, **args: object) -> None:
        place = Stream(0, stream)
        self.events.append(Event("kernel", name, place, begin, end - begin, self.correlation, args=args))


@dataclass(slots=True)
class Cluster:
    """A simulated job."""

    world: int
    clocks: dict[int, Clock]
    ranks: dict[int, _Rank]
    met: list[Met]
    groups: dict[tuple[int, ...], str]
    hosts: Callable[[int], str]

    def bytes_of(self, rank: int, steps: tuple[int, int] | None = None) -> bytes:
        """A rank's profile, or the part of it with some steps (first, one behind the last)."""
        clock, state = self.clocks[rank], self.ranks[rank]
        kept = [event for event in state.events if steps is None or self._inside(event, steps, rank)]
        events = [self._moved(event, clock) for event in kept]
        header = {
            "distributedInfo": {
                "backend": "nccl",
                "rank": rank,
                "world_size": self.world,
                "pg_count": len(self.groups),
                "pg_config": [
                    {"pg_name": name, "pg_desc": name, "pg_size": len(members), "ranks": list(members)}
                    for members, name in self.groups.items()
                    if rank in members
                ],
            },
            "host_name": self.hosts(rank),
        }
        return write_kineto(events, header=header)

    def write(self, folder: Path, ranks: Sequence[int] | None = None) -> Path:
        """Write the ranks' profiles, by the names PyTorch gives them: nothing in the name says the rank."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.world) if ranks is None else ranks:
            (folder / f"{self.hosts(rank)}_{4000 + 7 * rank}.pt.trace.json").write_bytes(self.bytes_of(rank))
        return folder

    def _moved(self, event: Event, clock: Clock) -> Event:
        start, end = clock.read(event.start_ns), clock.read(event.end_ns)
        return replace(event, start_ns=start, dur_ns=end - start)

    def _inside(self, event: Event, steps: tuple[int, int], rank: int) -> bool:
        marks = [e for e in self.ranks[rank].events if e.name.startswith("ProfilerStep#")]
        kept = [e for e in marks if steps[0] <= int(e.name.split("#")[1]) < steps[1]]
        return kept[0].start_ns <= event.start_ns < kept[-1].end_ns

    def waited(self, rank: int, steps: Sequence[int]) -> float:
        """What a rank waited for others per step, on the true clock."""
        return sum(met.waited(rank) for met in self.met if rank in met.members and met.step in steps) / len(steps)


def simulate(
    world: int,
    program: Program,
    steps: int = 8,
    clocks: dict[int, Clock] | None = None,
    hosts: Callable[[int], str] = lambda rank: f"node{rank:03}",
) -> Cluster:
    """Run a job's programs, rank by rank up to where each must wait for others."""
    ranks = {rank: _Rank(rank) for rank in range(world)}
    groups: dict[tuple[int, ...], str] = {tuple(range(world)): "0"}
    met: list[Met] = []
    for step in range(steps):
        begun = {rank: state.now for rank, state in ranks.items()}
        left = {rank: list(program(rank, step)) for rank in ranks}
        _run(ranks, left, groups, met, step)
        for rank, state in ranks.items():
            _finish(state)
            name, took = f"ProfilerStep#{step}", state.now - begun[rank]
            state.events.append(Event("user_annotation", name, Thread("main"), begun[rank], took))
    known = {rank: (clocks or {}).get(rank, Clock()) for rank in ranks}
    return Cluster(world, known, ranks, met, groups, hosts)


def _run(
    ranks: dict[int, _Rank],
    left: dict[int, list[Op]],
    groups: dict[tuple[int, ...], str],
    met: list[Met],
    step: int,
) -> None:
    waiting: dict[int, tuple[Op, int]] = {}
    while any(left.values()) or waiting:
        moved = False
        for rank, state in ranks.items():
            while left[rank] and rank not in waiting:
                op = left[rank].pop(0)
                moved = True
                if op.what == "collective":
                    groups.setdefault(op.members, str(len(groups)))
                    waiting[rank] = op, _launch_collective(state, op)
                else:
                    _run_op(state, op)
        by_group: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for rank, (op, _) in waiting.items():
            by_group[op.members].append(rank)
        for members, present in by_group.items():
            if len(present) == len(members):
                _meet(ranks, {rank: waiting.pop(rank) for rank in present}, groups, met, step)
                moved = True
        assert moved, "ranks wait for each other for ever"


def _run_op(state: _Rank, op: Op) -> None:
    if op.what == "input":
        state.host("user_annotation", LOADER, op.ns)
    elif op.what == "python":
        state.host("python_function", op.name or "train.py(61): log_metrics", op.ns)
    else:
        state.now += 4 * US
        state.call("cudaLaunchKernel")
        begin = max(state.compute_free, state.now + LATENCY_NS)
        state.compute_free = begin + op.ns
        state.kernel(op.name or "sm80_gemm", begin, state.compute_free, COMPUTE)


def _launch_collective(state: _Rank, op: Op) -> int:
    state.now += 4 * US
    state.call("cudaLaunchKernel")
    return max(state.compute_free, state.comm_free.get(op.stream, 0), state.now + LATENCY_NS)


def _meet(
    ranks: dict[int, _Rank],
    came: dict[int, tuple[Op, int]],
    groups: dict[tuple[int, ...], str],
    met: list[Met],
    step: int,
) -> None:
    """A collective whose members have all come."""
    op = next(iter(came.values()))[0]
    end = max(at for _, at in came.values()) + op.ns
    name, kernel = KERNELS[op.kind]
    for rank, (own, at) in came.items():
        args = {
            "Collective name": name if op.kind != "send_recv" or rank == min(came) else "recv",
            "In msg nelems": own.elements,
            "Out msg nelems": own.elements,
            "Group size": len(op.members),
            "dtype": "Float",
            "Process Group Name": groups[op.members],
        }
        state = ranks[rank]
        state.kernel(kernel, at, end, own.stream, **args)
        state.comm_free[own.stream] = end
        if not own.overlaps:
            state.compute_free = end
    met.append(Met(op.members, step, {rank: at for rank, (_, at) in came.items()}, end))


def _finish(state: _Rank) -> None:
    """Wait for the device, as ``.item()`` of the loss does."""
    state.compute_free = max(state.compute_free, *state.comm_free.values(), 0)
    state.now += 4 * US
    state.call("cudaLaunchKernel")
    begin = max(state.compute_free, state.now + LATENCY_NS)
    state.compute_free = begin + 50 * US
    state.kernel("multi_tensor_apply_adam", begin, state.compute_free, COMPUTE)
    state.call("cudaStreamSynchronize", max(state.compute_free - state.now, 0) + RETURN_NS)
