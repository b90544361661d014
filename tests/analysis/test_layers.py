"""Cost per layer: modules and scopes, forward and backward, and nothing counted twice or lost."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.analysis.layers import Layer
from stepscope.analysis.limits import LAYER_DEPTH
from tests.kit import xla
from tests.kit.events import Event, Stream, Thread
from tests.kit.planted import CASES
from tests.kit.some import some
from tests.kit.traces import KINETO_TRACES
from tests.support import facts_of, facts_of_drawing, planted_facts, real_facts, trace_of

US = 1_000


def layers(facts: Facts) -> dict[str, Layer]:
    """Of the only device, after checking that the times add up to those of its kernels."""
    (found,) = facts.layers
    assert sum(layer.own_ns for layer in found.layers) + found.outside_ns == found.total_ns
    assert found.total_ns == sum(use.total_ns for use in facts.kernels.uses if use.device == found.device)
    return {layer.path: layer for layer in found.layers}


TWO_MODULES = """
    1 char = 10 us
    main    |[S                                        ]
    main    | [Net                 ]
    main    |  [Conv   ] [Linear ]
    main    |   [C    ]   [l    ]
    main    |    a         b
    autograd|                        [p   ] [q   ]  u
    autograd|                         c      d
    gpu0/7  |     [a ]      [b     ]   [c]   [d   ]  e
    S = step 1
    Net = py nn.Module: Net_0
    Conv = py nn.Module: Conv2d_0
    Linear = py nn.Module: Linear_0
    C = op aten::conv2d {conv}
    l = op aten::linear {linear}
    p = op autograd::engine::evaluate_function:AddmmBackward0 {p}
    q = op autograd::engine::evaluate_function:ConvolutionBackward0 {q}
    u = op aten::copy_
"""


def drawn(conv: str, linear: str, p: str, q: str) -> Facts:
    return facts_of_drawing(TWO_MODULES.format(conv=conv, linear=linear, p=p, q=q))


@pytest.mark.parametrize(
    "links",
    [
        pytest.param(("fwd=1", "fwd=2", "bwd=2", "bwd=1"), id="arrows"),
        pytest.param(
            (
                "Sequence~number=5 Fwd~thread~id=0",
                "Sequence~number=6 Fwd~thread~id=0",
                "Sequence~number=6 Fwd~thread~id=1",
                "Sequence~number=5 Fwd~thread~id=1",
            ),
            id="sequence numbers",
        ),
    ],
)
def test_backward_kernels_belong_to_the_layer_they_differentiate(links):
    found = layers(drawn(*links))
    conv, linear = found["Net_0/Conv2d_0"], found["Net_0/Linear_0"]
    assert (conv.forward_ns, conv.backward_ns) == (40 * US, 60 * US)
    assert (linear.forward_ns, linear.backward_ns) == (80 * US, 30 * US)
    assert list(found) == ["Net_0/Linear_0", "Net_0/Conv2d_0", "Net_0"], "dearest first"
    assert (found["Net_0"].own_ns, found["Net_0"].whole_ns) == (0, 210 * US)


@pytest.mark.parametrize("name", some([name for name in CASES if name not in ("sampled", "cpu_only")], 7))
def test_times_add_up_to_the_kernels(name):
    facts = planted_facts(name)
    for found in facts.layers:
        assert sum(layer.own_ns for layer in found.layers) + found.outside_ns == found.total_ns
        assert found.total_ns == sum(use.total_ns for use in facts.kernels.uses if use.device == found.device)


def test_the_backward_pass_of_a_loop_is_its_models():
    """The planted loop: forward and backward are the model's, the optimizer is nobody's."""
    planted = CASES["healthy"]()
    facts = analyse(trace_of(planted.events))
    net = layers(facts)["Net_0"]
    plan = planted.plan
    kernels = plan.forward + plan.backward
    assert net.kernels == kernels * len(facts.used)
    share = net.own_ns / facts.layers[0].total_ns
    assert share == pytest.approx(kernels / (kernels + plan.optimizer), abs=0.02)
    assert net.backward_ns == pytest.approx(2 * net.forward_ns, rel=0.1)


def test_scopes_of_compiled_ops():
    ops = [
        xla.Op("fusion.1", 20, 30, execute=1, scope="jit(step)/jvp(Net)/Dense_0/dot_general"),
        xla.Op("fusion.2", 50, 50, execute=1, scope="jit(step)/transpose(jvp(Net))/Dense_0/dot_general"),
        xla.Op("fusion.3", 100, 10, execute=1, scope="jit(step)/sub"),
    ]
    host = [xla.HostRange("train", 0, 200, step=1), xla.HostRange("execute", 5, 5)]
    found = layers(analyse(xla.build(xla.Job(host=host, ops=ops))))
    assert (found["Net/Dense_0"].forward_ns, found["Net/Dense_0"].backward_ns) == (30 * US, 50 * US)


def test_modules_without_end_are_one_layer_from_some_depth_on():
    deep = 4 * LAYER_DEPTH
    thread = Thread("main")
    events = [Event("user_annotation", "ProfilerStep#1", thread, 0, 3 * deep * US)]
    events += [
        Event("python_function", f"nn.Module: M_{k}", thread, k * US, (3 * deep - 2 * k - 1) * US) for k in range(deep)
    ]
    events.append(Event("cuda_runtime", "cudaLaunchKernel", thread, (deep + 1) * US, 2 * US, 7))
    events.append(Event("kernel", "k", Stream(0, 7), (deep + 4) * US, 9 * US, 7))
    (path,) = (path for path, layer in layers(facts_of(events)).items() if layer.own_ns)
    assert path.count("/") == LAYER_DEPTH - 1


def test_nothing_is_told_without_modules_and_scopes():
    assert facts_of_drawing("main  |[S    ]\nmain  | a\ngpu0/7|  [a]\nS = step 1").layers == []


@pytest.mark.parametrize("name", KINETO_TRACES)
def test_times_of_real_layers_add_up(name):
    facts = real_facts(name)
    for found in facts.layers:
        assert sum(layer.own_ns for layer in found.layers) + found.outside_ns == found.total_ns
        if found.device is not None:
            assert found.total_ns == sum(use.total_ns for use in facts.kernels.uses if use.device == found.device)


@pytest.mark.real
def test_layers_of_a_real_training_step():
    """ResNet with checkpointing on an MI300: nearly all is some layer's, most of it backward."""
    facts = real_facts("kineto/mi300_resnet_checkpointing_rank0_of_8.json.gz")
    (found,) = facts.layers
    assert found.outside_ns < 0.05 * found.total_ns
    first = found.layers[0]
    assert first.path == "DistributedDataParallel_0/ResNet_0/BatchNorm2d_0"
    assert (first.forward_ns, first.backward_ns) == (497_625, 1_197_629)
