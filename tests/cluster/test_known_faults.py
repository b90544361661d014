"""What other tools' analyses of collectives are known to get wrong, and ours must not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepscope import pipeline
from stepscope.cluster.bandwidth import traffic
from stepscope.cluster.findings import diagnose
from stepscope.cluster.job import JobFacts, combine
from stepscope.cluster.partial import Partial
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.notices.recorded import NO_LINES
from stepscope.inputs.source import Source
from stepscope.names.collectives import Collective, message_bytes
from stepscope.names.kernels import describe
from stepscope.report import document as report
from stepscope.report.rank_sections import sections
from tests.cluster.jobs import MS, WORLD, clocks, data_parallel, facts_of, simulate
from tests.kit.cluster import Op, Program
from tests.kit.events import US
from tests.report import documents

LATE = 2


def late(rank: int, step: int) -> dict[str, float]:
    return {"python": 3 * MS} if rank == LATE else {}


def stragglers(facts: JobFacts) -> list[int]:
    assert facts.blame is not None
    return [facts.ranks[facts.blame.lanes[one.lane].partial] for one in facts.blame.stragglers]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", Collective.ALL_REDUCE),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Collective.ALL_REDUCE),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Collective.REDUCE_SCATTER),
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", Collective.SEND_RECV),
        ("void vllm::cross_device_reduce_2stage<__half, 8>(RankData*)", Collective.ALL_REDUCE),
        ("hipMemsetAsync_kernel", None),
        ("void hip_elementwise_kernel<float>(float*)", None),
        ("void at::native::reduce_kernel<512, 1>(at::native::ReduceOp)", None),
        ("triton_red_fused__to_copy_all_reduce_sum_0", None),
    ],
)
def test_names_of_all_generations_and_of_nothing_else(name: str, kind: Collective | None) -> None:
    """Prefixes miss newer kernels, or take every kernel of one vendor."""
    assert describe(name).collective is kind


@pytest.mark.parametrize("dtype", ["Float8_e4m3fn", "Float8_e5m2fnuz", "f8e4m3fn", "BFloat16", "Bool", "ComplexFloat"])
def test_no_type_is_without_a_size(dtype: str) -> None:
    assert message_bytes(1, dtype) is not None


def test_windows_that_are_shifted_and_ranks_that_are_missing_do_not_stop_it(tmp_path: Path) -> None:
    """Equal counts on all ranks are no condition, nor is their order of time on clocks that are seconds apart."""
    job = simulate(WORLD, data_parallel(late), steps=12, clocks=clocks(11))
    partials = []
    for rank in (0, 1, 2, 4, 5, 7):
        path = tmp_path / f"rank{rank}.json"
        path.write_bytes(job.bytes_of(rank, (rank % 3, 12 - rank % 2)))
        partial = pipeline.reduce_rank(Source(path))
        assert isinstance(partial, Partial)
        partials.append(partial)
    facts = combine(partials)
    assert facts.missing == [3, 6]
    assert stragglers(facts) == [LATE]
    (group,) = facts.groups
    for column, number in enumerate(group.matched.step.tolist()):
        there = {group.matched.lanes[row].partial for row in np.flatnonzero(group.matched.at[:, column] >= 0)}
        wanted = {k for k, rank in enumerate(facts.ranks) if rank % 3 <= number < 12 - rank % 2}
        assert there == wanted


def test_waiting_is_told_on_clocks_that_are_seconds_apart(tmp_path: Path) -> None:
    """Raw times, or times less the least, would call rank 5 late by its clock alone."""
    known = clocks(12)
    known[5] = replace(known[5], offset_ns=400e6)
    facts = facts_of(simulate(WORLD, data_parallel(late), clocks=known), tmp_path)
    assert stragglers(facts) == [LATE]
    (one,) = traffic(facts)
    assert one.transfer_ns == pytest.approx(200 * US, rel=0.02)


def test_one_fast_collective_does_not_make_all_others_wait(tmp_path: Path) -> None:
    """Transfer is from the last arrival, not the shortest duration over ranks: where all come late alike in turn, the
    shortest is transfer only for whoever came last."""

    def program(rank: int, step: int) -> list[Op]:
        drawn = random.Random(f"{rank}/{step}")
        ops = [Op("compute", round(1000 * US * drawn.uniform(0.5, 1.5)), "gemm")]
        return [*ops, Op("collective", (200 if step % 2 else 600) * US, members=(0, 1, 2, 3))]

    facts = facts_of(simulate(4, program, steps=10, clocks=clocks(13, 4)), tmp_path)
    (group,) = facts.groups
    ends = np.where(group.matched.present, group.end, 0).max(axis=0)
    took = ends - group.at
    assert took == pytest.approx([600 * US if step % 2 == 0 else 200 * US for step in group.matched.step], rel=0.02)


def test_no_rank_is_late_where_all_are_alike_to_the_nanosecond(tmp_path: Path) -> None:
    """A spread of nothing is no infinite significance."""
    facts = facts_of(simulate(4, data_parallel(world=4, noise=0.0), clocks=clocks(14, 4)), tmp_path)
    assert not {one.rule for one in diagnose(facts).findings} & {"straggler", "rank_skew", "slow_link"}


def experts(uneven: float) -> Program:
    """All-to-alls to which rank 1 sends more than the others, and computes more behind."""

    def program(rank: int, step: int) -> list[Op]:
        times = uneven if rank == 1 else 1.0
        return [
            Op("compute", 500 * US, "gemm"),
            Op("collective", 300 * US, members=(0, 1, 2, 3), kind="all_to_all", elements=round((1 << 20) * times)),
            Op("compute", round(400 * US * times), "expert_gemm"),
            Op("collective", 300 * US, members=(0, 1, 2, 3), kind="all_to_all", elements=round((1 << 20) * times)),
        ]

    return program


@pytest.mark.parametrize("uneven", [1.0, 3.0])
def test_uneven_experts_are_told_by_their_bytes_and_blamed(uneven: float, tmp_path: Path) -> None:
    """Kernels called SendRecv are an all-to-all where the profile says so; sizes that vary are one kind."""
    facts = facts_of(simulate(4, experts(uneven), clocks=clocks(15, 4)), tmp_path)
    (one,) = traffic(facts)
    assert (one.kind, one.per_step) == (Collective.ALL_TO_ALL, 2)
    assert one.imbalance == pytest.approx(uneven / ((3 + uneven) / 4))
    assert stragglers(facts) == ([1] if uneven > 1 else [])
    if uneven > 1:
        assert facts.blame is not None
        (found,) = facts.blame.stragglers
        assert facts.cause_of(facts.blame.lanes[found.lane], found.waited_ns).cause == "uneven_work"


def test_gigabytes_are_decimal(tmp_path: Path) -> None:
    """GB/s of 1024³ bytes under the name of 10⁹ are 7 % too few."""
    facts = facts_of(simulate(4, data_parallel(world=4), clocks=clocks(16, 4)), tmp_path)
    document = documents.check(report.of_job(facts, diagnose(facts)))
    ranks, collectives = (document["analyses"][key] for key in ("ranks", "collectives"))
    table = sections(ranks, collectives)[-1]
    at = [column.title for column in table.columns].index("algorithm GB/s")
    assert table.rows[0][at] == f"{collectives[0]['algorithm_bandwidth'] / 1e9:.3g}"


def test_no_collective_in_a_job_is_said_and_no_zero(tmp_path: Path) -> None:
    def program(rank: int, step: int) -> list[Op]:
        return [Op("compute", 500 * US, "gemm")]

    facts = facts_of(simulate(4, program), tmp_path)
    assert "job_no_collectives" in {notice.code for notice in diagnose(facts).notices}
    assert traffic(facts) == []
    assert facts.blame is None


@pytest.mark.parametrize(("others", "who"), [(False, "All ranks: "), (True, "Rank 2: ")])
def test_a_rank_without_stacks_is_set_apart_only_where_others_have_them(others: bool, who: str, tmp_path: Path) -> None:
    """The notice stands where lines are missed, which may be on one rank alone."""
    facts = facts_of(simulate(3, data_parallel(world=3)), tmp_path)
    missed = Notice(NO_LINES, "No Python code was recorded.")
    own = [
        replace(one, python=others and one.rank != 2, notices=(missed,) if one.rank == 2 else ())
        for one in facts.partials
    ]
    (told,) = (notice.text for notice in diagnose(combine(own)).notices if notice.code == NO_LINES)
    assert told == f"{who}No Python code was recorded."
