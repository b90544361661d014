"""Device time by phase of the step, ops by where they ran, and kernels by precision (one column is 10 µs)."""

from __future__ import annotations

import pytest
from hypothesis import given

from stepscope.analysis import summary
from stepscope.analysis.facts import Facts
from stepscope.analysis.kernels import KernelTable, precision_of
from stepscope.analysis.phases import Phase
from stepscope.analysis.placement import Placement
from stepscope.names.kernels import Tri
from stepscope.trace import intervals as iv
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream
from tests.kit.random_traces import random_traces
from tests.support import facts_of, facts_of_drawing

US = 1_000

SGEMM = "volta_sgemm_128x128_nn"
HALF_GEMM = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"
PLAIN_GEMM = "sgemm_128x128"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()"
UNKNOWN = "mystery_kernel"

# --- phases ------------------------------------------------------------------------------------------------


def phases(facts: Facts) -> dict[str, int]:
    """Time of the first device by phase, in µs."""
    return {str(phase): ns // US for phase, ns in facts.phases[0].items() if ns}


def launched_in(name: str, cat: str = "op") -> str:
    """The phase of a kernel launched in a range of that name."""
    drawing = TraceDrawing()
    drawing.step(1, 0, 200)
    method = {"op": drawing.host, "ann": drawing.annotation, "py": drawing.python}[cat]
    method(name, 10, 50)
    drawing.kernel(drawing.launch(20), "k", 40, 70)
    (phase,) = phases(facts_of(drawing.events()))
    return phase


@pytest.mark.parametrize(
    ("cat", "name", "phase"),
    [
        ("op", "autograd::engine::evaluate_function: AddmmBackward0", "backward"),
        ("op", "AddmmBackward0", "backward"),
        ("op", "ConvolutionBackward0", "backward"),
        ("op", "aten::cross_entropy_loss", "loss"),
        ("op", "aten::nll_loss_nd", "loss"),
        ("op", "aten::linear", "unknown"),
        ("ann", "forward", "forward"),
        ("ann", "## forward ##", "forward"),
        ("ann", "backward", "backward"),
        ("ann", "Optimizer.zero_grad#SGD.zero_grad", "optimizer"),
        ("ann", "compute loss", "loss"),
        ("ann", "straightforward", "unknown"),
        ("ann", "lossless", "unknown"),
        ("ann", "validation", "unknown"),
        ("py", "nn.Module: ResNet_0", "forward"),
        ("py", "torch/optim/adamw.py(12): step", "optimizer"),
        ("py", "torch/_tensor.py(566): backward", "backward"),
        ("py", "train.py(12): main", "unknown"),
    ],
)
def test_the_name_around_the_launch_says_the_phase(cat: str, name: str, phase: str):
    assert launched_in(name, cat) == phase


def test_an_optimizers_own_range_is_the_optimizer_phase():
    assert launched_in("Optimizer.step#AdamW.step", "ann") == "optimizer"


def test_the_innermost_name_that_says_something_decides():
    facts = facts_of_drawing("""
        main  |[S                                ]
        main  |[forward                  ][O     ]
        main  | [criterion ] [aten::mm ]   [e]
        main  |  [a]           [b]
        gpu0/7|      [a  ]        [b     ]    [e ]
        S = step 1
        forward = ann forward
        O = ann Optimizer.zero_grad#SGD.zero_grad
        criterion = ann criterion
    """)
    assert phases(facts) == {"loss": 50, "forward": 80, "optimizer": 40}


def test_collectives_are_communication_wherever_they_are_launched():
    facts = facts_of_drawing("""
        main   |[S                  ]
        main   |[AddmmBackward0  ]
        main   |  [a]   [n]
        gpu0/7 |     [a ]
        gpu0/20|           [n     ]
        S = step 1
        n = kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL
    """)
    assert phases(facts) == {"backward": 40, "communication": 80}


def test_communication_counts_only_where_nothing_hides_it():
    facts = facts_of_drawing("""
        main   |[S                     ]
        main   |[n][AddmmBackward0 ]
        main   |     [a]
        gpu0/7 |         [a    ]
        gpu0/20|      [n           ]
        S = step 1
        n = kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL
    """)
    assert phases(facts) == {"backward": 70, "communication": 70}


def test_the_start_of_an_arrow_to_the_backward_is_forward_work():
    d = TraceDrawing()
    d.step(1, 0, 400)
    linear = d.host("aten::linear", 0, 50)
    d.host("aten::addmm", 5, 40)
    d.kernel(d.launch(10), "k", 30, 20)
    d.kernel(d.launch(60), "other", 70, 30)
    backward = d.host("autograd::engine::evaluate_function: AddmmBackward0", 200, 50, thread="autograd")
    d.kernel(d.launch(210, thread="autograd"), "k", 230, 40)
    d.backward_of(linear, backward)
    assert phases(facts_of(d.events())) == {"forward": 20, "backward": 40, "unknown": 30}


def test_without_arrows_sequence_numbers_connect_forward_and_backward():
    def trained(sequence: int) -> dict[str, int]:
        d = TraceDrawing()
        d.step(1, 0, 400)
        d.host("aten::linear", 0, 50, **{"Sequence number": 7})
        d.kernel(d.launch(10), "k", 30, 20)
        d.host("AddmmBackward0", 200, 50, thread="autograd", **{"Sequence number": sequence})
        d.kernel(d.launch(210, thread="autograd"), "k", 230, 40)
        return phases(facts_of(d.events()))

    assert trained(7) == {"forward": 20, "backward": 40}
    assert trained(8) == {"unknown": 20, "backward": 40}


def test_what_has_no_launch_has_no_phase():
    facts = facts_of_drawing("""
        main  |[S                ]
        main  |[forward       ]
        main  | [a]    [b]
        gpu0/7|    [a][x  ][b]
        S = step 1
        forward = ann forward
    """)
    assert phases(facts) == {"forward": 30 + 30, "unknown": 50}


def test_phases_cover_the_used_steps_and_no_more():
    drawing = TraceDrawing()
    for number in range(5):
        start = 100 * number
        drawing.step(number, start, 100)
        drawing.annotation("forward", start, 50)
        drawing.kernel(drawing.launch(start + 10), "k", start + 20, 10 * (number + 1))
    facts = facts_of(drawing.events())
    assert phases(facts) == {"forward": 20 + 30 + 40}
    per_step = summary.phases_per_step(facts)
    assert per_step is not None
    assert per_step["forward"] == 30 * US
    assert set(per_step) == {*map(str, Phase), "between_steps"}


def test_where_no_phase_is_known_none_is_given():
    facts = facts_of_drawing("""
        main  |[S      ]
        main  |[a]
        gpu0/7|   [a ]
        S = step 1
    """)
    assert summary.phases_per_step(facts) is None


@given(random_traces())
def test_phases_add_up_to_the_busy_time_of_the_used_steps(events: list[Event]):
    facts = facts_of(events)
    for (activity, account), found in zip(facts.devices, facts.phases, strict=True):
        rows = facts.used_rows(account)
        inside = iv.covered_between(activity.busy, account.rows.bounds[:-1], account.rows.bounds[1:])
        assert sum(found.values()) == int(inside[rows].sum())


# --- placement ---------------------------------------------------------------------------------------------


def placement(drawing: str) -> Placement | None:
    return facts_of_drawing(drawing).placement


def test_an_op_is_where_its_work_is():
    found = placement("""
        main  |[S                                     ]
        main  |[aten::linear   ] [aten::stack     ]
        main  | [aten::addmm  ]   [aten::cat     ]
        main  |    [a  ]
        gpu0/7|        [a          ]
        S = step 1
    """)
    assert found == Placement(1, 1, 160 * US, 130 * US)
    assert found.device_share_by_count == 0.5
    assert found.device_share_by_time == pytest.approx(130 / 290)


def test_ops_that_only_describe_tensors_are_nowhere():
    found = placement("""
        main  |[S                              ]
        main  |[aten::view ] [aten::detach   ]
        main  |               [detach      ]
        main  |[aten::empty] [aten::mm ]
        S = step 1
    """)
    assert found is not None
    assert (found.host_ops, found.device_ops) == (1, 0)


def test_several_kernels_of_an_op_are_one_op():
    found = placement("""
        main  |[S                   ]
        main  |[aten::softmax     ]
        main  | [a] [b]
        gpu0/7|    [a ][b ]
        S = step 1
    """)
    assert found == Placement(0, 1, 0, 80 * US)


def test_ops_outside_the_used_steps_do_not_count():
    drawing = TraceDrawing()
    for number in range(5):
        start = 100 * number
        drawing.step(number, start, 100)
        drawing.host("aten::mm", start, 40)
        drawing.kernel(drawing.launch(start + 10), "k", start + 20, 10)
    found = facts_of(drawing.events()).placement
    assert found == Placement(0, 3, 0, 30 * US)


@pytest.mark.parametrize(
    "drawing",
    [
        """
        main  |[S      ]
        main  |[a]
        gpu0/7|   [a ]
        S = step 1
        """,
        """
        main  |[S             ]
        main  |[a][aten::mm ]
        gpu0/7|   [a ]
        S = step 1
        """,
    ],
    ids=["no op was recorded", "no launch lies in an op"],
)
def test_what_is_not_connected_is_not_placed(drawing: str):
    assert placement(drawing) is None


def test_without_ops_that_compute_there_are_no_shares():
    found = placement("""
        main  |[S             ]
        main  |[aten::view  ]
        S = step 1
    """)
    assert found == Placement(0, 0, 0, 0)
    assert found.device_share_by_count is None
    assert found.device_share_by_time is None


# --- kernels -----------------------------------------------------------------------------------------------


def kernels(*ran: tuple[str, int], types: list[str] | None = None) -> KernelTable:
    """The table of one step that ran kernels of some µs one after another, inside an op with input types."""
    drawing = TraceDrawing()
    total = sum(dur for _, dur in ran)
    drawing.step(1, 0, total + 100)
    if types is not None:
        drawing.host("aten::mm", 0, 10 * len(ran) + 10, **{"Input type": types})
    at = 20
    for i, (name, dur) in enumerate(ran):
        drawing.kernel(drawing.launch(5 + 10 * i, 2), name, at, dur)
        at += dur
    return facts_of(drawing.events()).kernels


def test_kernels_are_grouped_by_name_longest_first():
    table = kernels((ADD, 10), (SGEMM, 50), (ADD, 15))
    assert [(use.name, use.count, use.total_ns) for use in table.uses] == [(SGEMM, 1, 50 * US), (ADD, 2, 25 * US)]
    assert (table.count, table.total_ns) == (3, 75 * US)


def test_collectives_and_copies_are_no_kernels():
    facts = facts_of_drawing("""
        main   |[S               ]
        main   |[n][c][a]
        gpu0/20|   [n ]
        gpu0/7 |      [c  ][a ]
        S = step 1
        n = kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL
        c = copy HtoD 4096 Pinned
    """)
    assert [use.name for use in facts.kernels.uses] == ["a"]


def test_only_kernels_of_the_used_steps_count_each_on_its_device():
    drawing = TraceDrawing()
    for number in range(5):
        start = 100 * number
        drawing.step(number, start, 100)
        drawing.kernel(drawing.launch(start), "k", start + 10, 20)
        drawing.kernel(drawing.launch(start + 20), "k", start + 30, 7, Stream(1, 7))
    found = facts_of(drawing.events()).kernels.uses
    assert [(use.device, use.count, use.total_ns) for use in found] == [(0, 3, 60 * US), (1, 3, 21 * US)]


def test_the_name_tells_the_precision_and_where_it_does_not_the_op():
    assert [use.precision for use in kernels((HALF_GEMM, 9), types=["float", "float"]).uses] == ["fp16"]
    (use,) = kernels((UNKNOWN, 9), types=["c10::BFloat16", "c10::BFloat16"]).uses
    assert (use.precision, use.precision_reason) == ("bf16", "the input types of the op that launched it")
    (use,) = kernels((UNKNOWN, 9)).uses
    assert use.precision is None
    assert "neither" in use.precision_reason


def test_one_name_under_ops_of_two_precisions_is_two_uses():
    drawing = TraceDrawing()
    drawing.step(1, 0, 300)
    for at, kind in ((0, "float"), (100, "c10::Half")):
        drawing.host("aten::mm", at, 50, **{"Input type": [kind]})
        drawing.kernel(drawing.launch(at + 10), UNKNOWN, at + 20, 30)
    uses = facts_of(drawing.events()).kernels.uses
    assert {(use.precision, use.count, use.total_ns) for use in uses} == {("fp32", 1, 30 * US), ("fp16", 1, 30 * US)}


def test_shares_of_precision_are_of_what_is_known():
    found = precision_of(kernels((HALF_GEMM, 30), (SGEMM, 10), (ADD, 20), (UNKNOWN, 40)))
    assert found.low_by_count == pytest.approx(1 / 3)
    assert found.low_by_time == pytest.approx(30 / 60)
    assert found.known_by_time == pytest.approx(60 / 100)


def test_tensor_cores_are_used_or_not_or_it_is_not_known():
    found = precision_of(kernels((HALF_GEMM, 30), (SGEMM, 10), (ADD, 20), (PLAIN_GEMM, 15), (UNKNOWN, 25)))
    assert found.tensor_core_by_time == pytest.approx({Tri.YES: 0.30, Tri.NO: 0.30, Tri.UNKNOWN: 0.40})


def test_only_matrix_work_that_certainly_does_not_use_them_is_to_blame():
    found = precision_of(kernels((HALF_GEMM, 30), (SGEMM, 10), (ADD, 20), (PLAIN_GEMM, 15), (UNKNOWN, 25)))
    assert [use.name for use in found.eligible_unused] == [SGEMM]
    assert found.eligible_unused_ns == 10 * US


def test_without_kernels_nothing_is_said():
    found = precision_of(kernels())
    assert (found.low_by_count, found.low_by_time, found.known_by_time) == (None, None, None)
    assert found.tensor_core_by_time == {}


def test_kernels_of_no_length_have_no_shares_by_time():
    drawing = TraceDrawing()
    drawing.step(1, 0, 100)
    drawing.kernel(drawing.launch(0), HALF_GEMM, 10, 0)
    drawing.kernel(drawing.launch(10), SGEMM, 20, 0)
    drawing.memset(drawing.call("cudaMemsetAsync", 20, 5), 30, 10)
    found = precision_of(facts_of(drawing.events()).kernels)
    assert (found.low_by_count, found.low_by_time, found.known_by_time) == (0.5, None, None)
