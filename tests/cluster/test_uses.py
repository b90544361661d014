"""What takes time and memory by name, over the ranks of a job."""

from __future__ import annotations

from math import nan
from pathlib import Path

import numpy as np

from stepscope import pipeline
from stepscope.analysis.alike import alike
from stepscope.cluster.limits import RANKS_OF_A_USE, USES_KEPT
from stepscope.cluster.uses import Uses, dearest, spreads, uses_of
from tests.cluster.jobs import data_parallel, facts_of, simulate
from tests.kit import example_ranks
from tests.kit.builder import TraceDrawing
from tests.kit.ledger import Ledger
from tests.support import facts_of as facts_of_events
from tests.support import real_facts

MIB = 1 << 20


def of(**values: float) -> Uses:
    return Uses(tuple((name, "") for name in values), np.array([*values.values()]), np.full(len(values), 2.0))


def test_a_name_is_the_mean_of_the_ranks_that_have_it_with_the_least_and_the_most():
    gemm, add = dearest(spreads([3, 5, 9], [of(gemm=10, add=1), of(gemm=40), of(gemm=10, add=4)]))
    assert (gemm.name, gemm.ranks, gemm.mean, gemm.count) == (("gemm", ""), 3, 20, 2.0)
    assert [(one.rank, one.value) for one in gemm.each] == [(5, 40), (3, 10), (9, 10)]
    assert (add.ranks, add.mean, [one.rank for one in add.each]) == (2, 2, [9, 3])


def test_a_thousand_ranks_are_as_few_rows_and_keep_those_that_stand_out():
    names = {f"kernel {k}": 100.0 + k for k in range(80)}
    found = dearest(spreads(range(1000), [of(**names | {"kernel 7": 900.0} if rank == 137 else names)
                                          for rank in range(1000)]))  # fmt: skip
    assert len(found) == USES_KEPT
    assert found[0].name == ("kernel 79", "")
    assert {len(one.each) for one in found} == {RANKS_OF_A_USE}
    (odd,) = spreads(range(1000), [of(k=900.0 if rank == 137 else 100.0) for rank in range(1000)])
    assert (odd.each[0].rank, odd.ranks, odd.mean) == (137, 1000, 101)


def test_the_kernels_of_a_job(tmp_path: Path):
    """One rank's kernels take twice as long."""
    job = simulate(4, data_parallel(lambda rank, step: {"scale": 2.0} if rank == 2 else {}, world=4))
    facts = facts_of(job, tmp_path)
    found = {one.name[0]: one for one in spreads(facts.ranks, [partial.uses.kernels for partial in facts.partials])}
    gemm = found["gemm_0"]
    assert (gemm.ranks, gemm.each[0].rank, gemm.count) == (4, 2, 4.0)
    assert 1.9 < gemm.each[0].value / gemm.each[-1].value < 2.2
    assert gemm.mean == round(sum(one.value for one in gemm.each) / 4)


def test_the_report_of_a_job_has_them():
    document = pipeline.open(example_ranks.FOLDER).document()
    found = document["analyses"]["over_ranks"]
    loader = found["stages"][0]
    assert (loader["name"], loader["each"][0]["rank"]) == ("in the loader", example_ranks.LATE)
    for rank in range(example_ranks.WORLD):
        own = pipeline.open(example_ranks.FOLDER / f"rank{rank}.json.gz").document()["analyses"]
        (told,) = [one for one in loader["each"] if one["rank"] == rank]
        assert told["ns_per_step"] == own["input"]["wait_ns_per_step"]


def test_ops_and_layers_of_a_rank_are_per_step():
    facts = real_facts("kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz")
    uses, steps = uses_of(facts), len(facts.used)
    assert facts.ops is not None
    (conv,) = [one for one in facts.ops.by_type if (one.op, one.side) == ("aten::miopen_convolution", "device")]
    at = uses.ops.names.index(("aten::miopen_convolution", "device"))
    assert uses.ops.value[at] == conv.device_self_ns / steps
    assert uses.ops.count[at] == conv.count / steps
    layers = alike(facts.layers[0].layers)
    assert uses.layers.names[0] == (layers[0].path, "")
    assert uses.layers.value[0] == layers[0].whole.own_ns / steps


def test_memory_of_a_rank():
    drawing = TraceDrawing()
    ledger = Ledger(drawing, in_use=100 * MIB, reserved=200 * MIB)
    drawing.step(7, 0, 1_000)
    drawing.host("aten::linear", 20, 100)
    ledger.give(700, ledger.take(30, 60 * MIB))
    drawing.kernel(drawing.launch(100), "k", 110, 800)
    uses = uses_of(facts_of_events(drawing.events())).memory
    found = dict(zip(uses.names, uses.value.tolist(), strict=True))
    assert found["peak", "device"] == 160 * MIB
    assert found["reserved", "device"] == 200 * MIB
    assert found["before_profile", "device"] == 100 * MIB
    assert np.isnan(uses.count).all()
    (peak,) = [
        one for one in spreads([0, 1], [uses, Uses((("peak", "device"),), np.array([200.0 * MIB]), np.array([nan]))])
        if one.name == ("peak", "device")
    ]  # fmt: skip
    assert (peak.mean, peak.each[0].rank, peak.count) == (180 * MIB, 1, None)
