"""What must never be taken for the same collective, and of how many ranks a group is that is not told whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope import pipeline
from stepscope.analysis.categories import Category
from stepscope.analysis.exchange.collectives import KINDS
from stepscope.analysis.exchange.groups import Group
from stepscope.cluster.bandwidth import Traffic, traffic
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.matching import Matched
from stepscope.cluster.partial import Partial
from stepscope.inputs.source import Source
from stepscope.names.collectives import Collective
from stepscope.trace.tables import I64, NULL, Bools
from tests.cluster.jobs import clocks, data_parallel, facts_of, simulate
from tests.kit.cluster import Op, Program
from tests.kit.events import US, Event, Stream, Thread
from tests.kit.kineto_writer import write_kineto
from tests.kit.traces import real_trace

SIZES = (1 << 20, 1 << 19, 1 << 18)


def buckets(kind: str = "all_reduce", world: int = 2) -> Program:
    """Three collectives of a step, each of a size of its own."""

    def program(rank: int, step: int) -> list[Op]:
        members = tuple(range(world))
        return [
            op
            for elements in SIZES
            for op in (
                Op("compute", (300 + 40 * rank) * US, "gemm"),
                Op("collective", 200 * US, members=members, kind=kind, elements=elements),
            )
        ]

    return program


def without(partial: Partial, lost: Callable[[I64], Bools]) -> Partial:
    """A rank whose profile lacks some of its collectives, by their place in the step."""
    place = np.arange(len(partial.collectives)) % len(SIZES)
    return replace(partial, collectives=partial.collectives.where(~lost(place)))


def sizes_met(facts: JobFacts, found: Matched) -> set[tuple[int, ...]]:
    """The sizes that ranks put into what is taken for one collective."""
    met = set()
    for column in found.at.T[found.present.sum(axis=0) > 1]:
        tables = [facts.partials[lane.partial].collectives for lane in found.lanes]
        met.add(tuple(int(table.bytes[row]) for table, row in zip(tables, column, strict=True)))
    return met


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("kind", ["all_reduce", "all_gather"])
def test_unequal_sizes_are_not_one_collective(kind: str, numbered: bool, tmp_path: Path) -> None:
    """Each rank lacks another of three: as many are left on both, of which one has the same size."""
    facts = facts_of(simulate(2, buckets(kind), clocks=clocks(3, 2)), tmp_path)
    partials = [without(facts.partials[0], lambda at: at == 0), without(facts.partials[1], lambda at: at == 2)]
    if not numbered:
        partials = [replace(one, steps=replace(one.steps, number=np.full(8, NULL))) for one in partials]
    facts = combine(partials)
    (group,) = facts.groups
    assert all(len(set(sizes)) == 1 for sizes in sizes_met(facts, group.matched))
    if numbered:
        assert sizes_met(facts, group.matched) == {(4 * SIZES[1], 4 * SIZES[1])}
        assert not group.told[group.matched.present.sum(axis=0) < 2].any()
        assert {one.bytes for one in traffic(facts)} == {
            4 * size * (2 if kind == "all_gather" else 1) for size in SIZES
        }
        assert {(one.count, one.per_step) for one in traffic(facts)} == {(6, 1.0)}


def test_sizes_that_one_rank_does_not_record_are_not_looked_at(tmp_path: Path) -> None:
    facts = facts_of(simulate(2, buckets(), clocks=clocks(3, 2)), tmp_path)
    table = facts.partials[1].collectives
    silent = replace(facts.partials[1], collectives=replace(table, bytes=np.full(len(table), NULL)))
    (group,) = combine([facts.partials[0], silent]).groups
    assert group.matched.present.all()


def test_all_to_alls_match_by_type_and_not_at_all_in_sampled_profiles(tmp_path: Path) -> None:
    facts = facts_of(simulate(2, buckets("all_to_all"), clocks=clocks(3, 2)), tmp_path)

    def typed(partial: Partial, widths: tuple[int, ...]) -> Partial:
        table = partial.collectives
        return replace(partial, collectives=replace(table, element=np.resize(np.array(widths, np.int64), len(table))))

    apart = [typed(facts.partials[0], (8, 1, 4)), typed(facts.partials[1], (1, 4, 8))]
    (group,) = combine(apart).groups
    widths = {
        tuple(int(one.collectives.element[row]) for one, row in zip(apart, column, strict=True))
        for column in group.matched.at.T
    }
    assert widths == {(8, 8), (1, 1), (4, 4)}
    (group,) = combine([replace(one, sampled=True) for one in facts.partials]).groups
    assert group.matched.present.sum(axis=0).max() == 1


def test_what_few_of_very_many_ranks_have_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.cluster.matching._MOST_CELLS", 10)
    facts = facts_of(simulate(3, buckets(world=3)), tmp_path)
    partials = [facts.partials[0], *(without(one, lambda at: at > 0) for one in facts.partials[1:])]
    (group,) = combine(partials).groups
    assert group.matched.at.shape == (3, 8)
    assert group.matched.present.all()


# --- groups that nothing names ---------------------------------------------------------------------------------------


def unnamed(facts: JobFacts) -> list[Partial]:
    """As profiles of an older PyTorch have it: neither the group's name nor its size."""
    return [
        replace(one, collectives=replace(one.collectives, groups=(Group("stream 20"),) * len(one.collectives.groups)))
        for one in facts.partials
    ]


def only(found: list[Traffic]) -> Traffic:
    (one,) = found
    return one


def test_a_group_of_unknown_size_is_not_whole_while_ranks_are_missing(tmp_path: Path) -> None:
    """The last rank is not here: what the others wait for it must not pass for transfer."""
    extra = lambda rank, step: {"input": 4e6} if rank == 3 else {}  # noqa: E731
    job = simulate(4, data_parallel(extra, world=4), clocks=clocks(4, 4))
    facts = combine(unnamed(facts_of(job, tmp_path / "two", [0, 1])))
    assert facts.world_size == 4
    one = only(traffic(facts))
    assert (one.bound, one.size, one.bus_bandwidth, one.link_bandwidth) == (True, None, None, None)
    assert one.algorithm_bandwidth is not None
    assert facts.mean_parts.get(Category.COLLECTIVE_TRANSFER, 0) == 0
    whole = combine(unnamed(facts_of(job, tmp_path / "all")))
    one = only(traffic(whole))
    assert (one.bound, one.size) == (False, 4)
    assert one.transfer_ns == pytest.approx(200_000, rel=0.01)


def test_who_knows_a_groups_size_tells_the_others(tmp_path: Path) -> None:
    facts = facts_of(simulate(2, data_parallel(world=2)), tmp_path)
    first, second = unnamed(facts)
    known = replace(first, collectives=replace(first.collectives, groups=(Group("stream 20", None, 64),)))
    facts = combine([known, second])
    (group,) = facts.groups
    assert (group.matched.members, len(group.matched.lanes)) == (64, 2)
    assert only(traffic(facts)).bound


@pytest.mark.parametrize(
    ("op", "kernel", "dims", "ranks"),
    [
        ("c10d::_allgather_base_", "ncclKernel_AllGather", [[640], [10], []], 64),
        ("c10d::_reduce_scatter_base_", "ncclKernel_ReduceScatter", [[10], [640], [], []], 64),
        ("c10d::_allgather_base_", "ncclKernel_AllGather", [[64], [10], []], None),
        ("c10d::alltoall_base_", "ncclKernel_SendRecv", [[640], [10], []], None),
    ],
)
def test_output_and_input_tell_the_ranks(
    op: str, kernel: str, dims: list[list[int]], ranks: int | None, tmp_path: Path
) -> None:
    """The range inside names the input alone; the op around it tells both."""
    inner = {"Input Dims": [[dims[1][0]]], "Input type": ["float"]}
    outer = {"Input Dims": dims, "Input type": ["float", "float", *("" for _ in dims[2:])]}
    main = Thread("main")
    events = [
        Event("user_annotation", "ProfilerStep#1", main, 0, 900 * US),
        Event("cpu_op", op, main, 10 * US, 80 * US, args=outer),
        Event("cpu_op", "record_param_comms", main, 20 * US, 50 * US, args=inner),
        Event("cuda_runtime", "cudaLaunchKernel", main, 30 * US, 5 * US, 7),
        Event("kernel", kernel, Stream(0, 20), 100 * US, 500 * US, 7),
        Event("cuda_runtime", "cudaStreamSynchronize", main, 100 * US, 700 * US, 8),
    ]
    path = tmp_path / "rank0.json"
    path.write_bytes(write_kineto(events, header={"distributedInfo": {"rank": 0, "world_size": 128}}))
    table = pipeline.open_profile(path).facts.collectives
    assert [group.size for group in table.groups] == [ranks]
    assert (table.bytes.tolist(), table.element.tolist()) == ([4 * dims[1][0]], [4])


@pytest.mark.real
def test_a_real_pair_of_128(tmp_path: Path) -> None:
    """By hand from both files: of six all-reduces two have one size, in the step that both are in; the gathers are
    16 MiB in and 1 GiB out."""
    for rank in range(2):
        shutil.copy(real_trace(f"kineto/a100_rank{rank}_of_128.json.gz"), tmp_path)
    read = [pipeline.reduce_rank(Source(path)) for path in sorted(tmp_path.iterdir())]
    facts = combine([one for one in read if isinstance(one, Partial)])
    shared = {
        (KINDS[kind], int(size), int(step))
        for group in facts.groups
        for kind, size, step, ranks in zip(
            group.matched.kind, group.matched.bytes, group.matched.step, group.matched.present.sum(axis=0), strict=True
        )
        if ranks == 2
    }
    assert shared == {
        (Collective.ALL_REDUCE, 4 * 19_618_307, 551),
        (Collective.ALL_REDUCE, 4 * 5_716_654, 552),
        (Collective.ALL_GATHER, 1 << 24, 551),
        (Collective.ALL_GATHER, 1 << 24, 552),
    }
    found = {(one.kind, one.bytes): one for one in traffic(facts)}
    gather = found.pop((Collective.ALL_GATHER, 1 << 30))
    assert (gather.size, gather.bound) == (64, True)
    assert gather.bus_bandwidth == pytest.approx(63 / 64 * (1 << 30) / gather.transfer_ns * 1e9)
    assert gather.bus_bandwidth is not None
    assert gather.bus_bandwidth >= 20e9
    # Of the others' group nothing tells the size: two files are not 128 ranks.
    assert {(one.size, one.bus_bandwidth, one.bound) for one in found.values()} == {(None, None, True)}
    assert {one.bytes for one in found.values() if one.kind is Collective.ALL_TO_ALL} == {
        3_072,
        11_386_880,
        406_752_128,
    }
