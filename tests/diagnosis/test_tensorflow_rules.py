"""What TensorFlow's own names say: phases of a step, gradients packed for a collective, loss scaling, chains of ops."""

from __future__ import annotations

import pytest

from stepscope.analysis.analyse import analyse
from stepscope.analysis.facts import Facts
from stepscope.diagnosis.engine import diagnose
from stepscope.diagnosis.finding import Finding
from tests.formats.xplane.xplane_files import read
from tests.kit.tf_gpu import TfGpuJob

US = 1_000
GEMM, POINTWISE = "volta_sgemm_128x64_nn", "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<float>>()"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
STEPS = 8

Op = tuple[str, str, int]
"""Name, kernel and how long it takes."""


def facts_of(*ops: Op, devices: int = 1, waits: bool = True) -> Facts:
    """A loop of steps that run these ops on each device; collectives run on a stream of their own."""
    job = TfGpuJob(devices=devices)
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                for name, kernel, us in ops:
                    for device in range(devices):
                        job.op(name, kernel, us, device=device, host=6)
            if waits:
                job.wait_for_event()
    return analyse(read(job.data()))


def found(facts: Facts, rule: str) -> list[Finding]:
    return [finding for finding in diagnose(facts).findings if finding.rule == rule]


# Phases


def phases(*ops: Op) -> dict[str, int]:
    """Time of the device per step, in µs."""
    facts = facts_of(*ops)
    return {str(phase): facts.per_step(ns) // US for phase, ns in facts.phases[0].items() if ns}


def test_the_scopes_of_ops_tell_the_phases_of_keras() -> None:
    assert phases(
        ("StatefulPartitionedCall/sequential_1/dense_1/MatMul:MatMul", GEMM, 400),
        ("StatefulPartitionedCall/compile_loss/mse/Mean:Mean", POINTWISE, 30),
        ("StatefulPartitionedCall/gradient_tape/compile_loss/mse/Tile:Tile", POINTWISE, 50),
        ("StatefulPartitionedCall/gradient_tape/sequential_1/dense_1/MatMul:MatMul", GEMM, 700),
        ("StatefulPartitionedCall/adam/Mul_3:Mul", POINTWISE, 90),
        ("Cast:Cast", POINTWISE, 20),
    ) == {"forward": 400, "loss": 30, "backward": 750, "optimizer": 90, "unknown": 20}


def test_the_scopes_of_ops_tell_the_phases_of_graphs_of_old() -> None:
    assert phases(
        ("replica_1/model/conv/Conv2D:Conv2D", GEMM, 400),
        ("replica_1/softmax_cross_entropy_loss/xentropy:SparseSoftmaxCrossEntropyWithLogits", POINTWISE, 30),
        ("training/Adam/gradients/model/conv/Conv2D_grad/Conv2DBackpropFilter:Conv2DBackpropFilter", GEMM, 700),
        ("GradientDescent/update_w1/ResourceApplyGradientDescent:ResourceApplyGradientDescent", POINTWISE, 60),
    ) == {"forward": 400, "loss": 30, "backward": 700, "optimizer": 60}


def test_collectives_are_communication_whatever_their_scope() -> None:
    assert phases(("m/d/MatMul:MatMul", GEMM, 400), ("Adam/CollectiveReduceV2:CollectiveReduceV2", NCCL, 50)) == {
        "forward": 400,
        "communication": 50,
    }


# Gradients packed for a collective

PACKED: tuple[Op, ...] = (
    ("m/d/MatMul:MatMul", GEMM, 2_000),
    ("gradient_tape/m/d/MatMul/MatMul:MatMul", GEMM, 2_000),
    *(("Adam/concat:ConcatV2", POINTWISE, 80),) * 4,
    ("Adam/NcclAllReduce:NcclAllReduce", NCCL, 500),
    *(("Adam/split:SplitV", POINTWISE, 80),) * 4,
    ("Adam/Adam/update/ResourceApplyAdam:ResourceApplyAdam", POINTWISE, 200),
)


def test_gradients_that_tensorflow_packs_around_a_collective_are_copies_for_it() -> None:
    facts = facts_of(*PACKED, devices=2)
    (finding,) = found(facts, "collective_copies")
    assert "8 ops per step copy for collectives (640 µs)" in finding.why
    assert finding.cost_ns_per_step == pytest.approx(640 * US, rel=0.01)
    assert "NcclAllReduce(num_packs=0)" in finding.fix


@pytest.mark.parametrize(
    "ops",
    [
        # A model's own, and one that no collective follows.
        tuple((name.replace("Adam/concat", "m/merge/concat").replace("Adam/split", "m/parts/split"), kernel, us)
              for name, kernel, us in PACKED),
        tuple(op for op in PACKED if op[1] != NCCL),
    ],
)  # fmt: skip
def test_what_a_model_puts_together_is_no_copy_for_a_collective(ops: tuple[Op, ...]) -> None:
    assert not found(facts_of(*ops, devices=2), "collective_copies")


# Loss scaling


ADAM = "Adam/Adam/update/ResourceApplyAdam:ResourceApplyAdam"


def scaling(name: str, *, copies: bool = False, call: str | None = None, update: str = ADAM) -> Facts:
    """Whether the gradients are finite is awaited for 1.5 ms of each step: in an op, or behind a copy to the host."""
    job = TfGpuJob()
    call = name.rpartition("/")[0] + "/" if call is None else call
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                job.op("m/d/MatMul:MatMul", GEMM, 3_000)
                job.op("gradient_tape/m/d/MatMul/MatMul:MatMul", GEMM, 3_000)
                job.op(call + "IsFinite:IsFinite", POINTWISE, 40)
                job.wait_for_event()
                if copies:
                    job.copy("MemcpyD2H", 2, 1, memory="pinned", op=name)
                    job.wait_for_event()
                    job.spend(1_500)
                else:
                    job.host(name, 1_500)
                job.op(update, POINTWISE, 500)
            job.wait_for_event()
    return analyse(read(job.data()))


@pytest.mark.parametrize("name", ["LossScaleOptimizer/cond:If", "StatefulPartitionedCall/loss_scale_optimizer/cond:If"])
@pytest.mark.parametrize("copies", [False, True])
def test_a_dynamic_loss_scale_of_tensorflow_has_a_cure_of_its_own(name: str, copies: bool) -> None:
    found_all = diagnose(scaling(name, copies=copies)).findings
    (finding,) = (f for f in found_all if f.rule == "loss_scaling")
    assert finding.cost_ns_per_step == pytest.approx(1_530 * US, rel=0.05)
    assert "loss_scale_factor=SCALE" in finding.fix
    assert "mixed_bfloat16" in finding.fix
    assert "ops_on_host" not in {f.rule for f in found_all}


CALL = "StatefulPartitionedCall/"


@pytest.mark.parametrize("update", ["cond/then/_28/cond/adam/Mul_6:Mul", "cond/then/_28/cond/cond/true/sgd/Mul_1:Mul"])
@pytest.mark.parametrize("copies", [False, True])
def test_a_dynamic_loss_scale_of_keras_3_stands_in_no_scope(update: str, copies: bool) -> None:
    """Names as Keras 3.15 gives them; TensorFlow calls a tensor on its way to the host after the op that made it."""
    facts = scaling(CALL + "All_4/_51:_HostRecv", copies=copies, call=CALL, update=CALL + update)
    (finding,) = found(facts, "loss_scaling")
    assert finding.cost_ns_per_step == pytest.approx(1_530 * US, rel=0.05)
    # Neither a branch of the model's own nor a check of values beside it is one.
    other = CALL + "cond/then/_28/cond/model/dense/Mul_6:Mul"
    assert not found(scaling(CALL + "All_4/_51:_HostRecv", copies=copies, call=CALL, update=other), "loss_scaling")
    assert not found(scaling(CALL + "All_4/_51:_HostRecv", copies=copies, call="f/", update=CALL + update),
                     "loss_scaling")  # fmt: skip


def test_a_wait_within_the_branch_of_a_loss_scale_goes_with_it() -> None:
    """The call that waits has a name of its own; the host then takes 900 us to launch the update."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1):
            with job.function(), job.executing():
                job.op("gradient_tape/m/d/MatMul/MatMul:MatMul", GEMM, 3_000)
                with job.range("loss_scale_optimizer/cond/Merge/_42:_HostRecv"):
                    job.copy("MemcpyD2H", 2, 1, op="loss_scale_optimizer/cond/Merge/_42:_HostRecv")
                    job.synchronize()
                job.spend(900)
                job.op("Adam/Adam/update/ResourceApplyAdam:ResourceApplyAdam", POINTWISE, 500)
            job.wait_for_event()
    facts = analyse(read(job.data()))
    assert not {"sync_bound", "long_launch"} & {finding.rule for finding in diagnose(facts).findings}
    (finding,) = found(facts, "loss_scaling")
    assert finding.saving_ns_per_step == pytest.approx(900 * US, rel=0.05)


def test_another_branch_is_no_loss_scaling() -> None:
    assert not found(scaling("model/cond:If"), "loss_scaling")
    assert not found(scaling("model/cond:If", copies=True), "loss_scaling")


def test_a_fixed_loss_scale_asks_nobody() -> None:
    assert not found(facts_of(
        ("m/d/MatMul:MatMul", GEMM, 3_000),
        ("gradient_tape/m/d/MatMul/MatMul:MatMul", GEMM, 3_000),
        ("LossScaleOptimizer/truediv:RealDiv", POINTWISE, 40),
    ), "loss_scaling")  # fmt: skip


# Chains of memory-bound ops

CHAIN = ("Mul", "AddV2", "Tanh", "Sub", "Square", "Cast")


def test_memory_bound_ops_in_a_row_are_for_xla_though_nothing_says_what_it_saves() -> None:
    ops = tuple((f"model/act_{k}/{CHAIN[k % 6]}:{CHAIN[k % 6]}", POINTWISE, 250) for k in range(48))
    (finding,) = found(facts_of(*ops), "memory_bound_chain")
    assert finding.cost_ns_per_step == pytest.approx(48 * 250 * US, rel=0.01)
    assert finding.saving_ns_per_step is None
    assert finding.not_determined is not None
    assert "follow each other, 48 in a row on average, once per step" in finding.why
    assert "--tf_xla_auto_jit=2" in finding.fix
    assert "take it where memory is short" in finding.fix


@pytest.mark.parametrize(
    "ops",
    [
        # Two between products, too little of the step, and what reads by index.
        (("m/a/MatMul:MatMul", GEMM, 99), ("m/a/BiasAdd:BiasAdd", POINTWISE, 80), ("m/a/Relu:Relu", POINTWISE, 80)) * 8,
        (("m/a/MatMul:MatMul", GEMM, 9_000), *(("m/a/Relu:Relu", POINTWISE, 100),) * 5),
        (("m/a/MatMul:MatMul", GEMM, 100), *(("m/a/GatherV2:GatherV2", POINTWISE, 400),) * 6),
    ],
)
def test_what_a_network_has_anyway_is_no_chain(ops: tuple[Op, ...]) -> None:
    assert not found(facts_of(*ops), "memory_bound_chain")


# Sessions


def launch_bound(name: str) -> str:
    """What is advised for 400 short kernels per step, in a call of that name."""
    job = TfGpuJob()
    for number in range(STEPS):
        with job.step(number, "train", _r=1), job.range(name):
            for k in range(400):
                job.op(f"model/part_{k}/MatMul:MatMul", GEMM, 2, host=20)
            job.wait_for_event()
    (finding,) = found(analyse(read(job.data())), "launch_bound")
    return finding.fix


def test_a_session_is_told_what_sessions_have() -> None:
    fix = launch_bound("SessionRun")
    assert "session.run" in fix
    assert "global_jit_level" in fix
    assert "`tf.concat`" in fix
    assert "tf.function" not in fix
    assert "model.compile" not in fix


def test_others_are_told_of_functions_and_of_vectorising() -> None:
    fix = launch_bound("EagerExecute")
    assert "tf.function" in fix
    assert "one op over `tf.concat` or `tf.stack` of them" in fix
    assert "`tf.vectorized_map`" in fix
    assert "session.run" not in fix
