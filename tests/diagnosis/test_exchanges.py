"""exposed_collective by what is exchanged: each kind has a finding and a cure of its own, and time counts once."""

from __future__ import annotations

import doctest

import pytest

from stepscope.analysis.workload import Purpose, Workload
from stepscope.diagnosis import exchange_remedies
from stepscope.diagnosis.exchange_remedies import reducing
from stepscope.diagnosis.finding import Finding
from stepscope.diagnosis.remedies import remedy
from stepscope.names import parallelism
from stepscope.names.parallelism import Layout
from tests.diagnosis.loops import CALL, diagnosed, facts_with, loop
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, Stream

US = 1_000
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def exchanging(
    *exchanged: tuple[str, str, int], compute_us: int = 8_000, around: str = "", beside: bool = False, **args: object
) -> list[Event]:
    """Each step computes, then exchanges: by a host op ("" for none) and a kernel of a name, for so many µs each, one
    after another or all at once."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, compute_us)
        at = start + CALL + compute_us
        for i, (op, kernel, us) in enumerate(exchanged):
            begin = start + 20 * (i + 1)
            if around:
                drawing.host(around, begin, 12, "python_function" if "(" in around else "user_annotation")
            if op:
                drawing.host(op, begin, 10)
            call = drawing.launch(begin + 1, CALL)
            drawing.kernel(call, kernel, at, us, Stream(0, 20 + i * beside), **args)
            at += 0 if beside else us

    length = max(us for _, _, us in exchanged) if beside else sum(us for _, _, us in exchanged)
    return loop(compute_us + length + CALL, step)


def found(events: list[Event]) -> list[Finding]:
    diagnosis = diagnosed(events)
    return [f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == "exposed_collective"]


def only(events: list[Event]) -> Finding:
    (finding,) = found(events)
    return finding


@pytest.mark.parametrize(
    ("op", "kernel", "title", "cure"),
    [
        ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "All-reduces", "bucket_cap_mb"),
        ("", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "All-reduces", "bucket_cap_mb"),
        ("c10d::_allgather_base_", "ncclDevKernel_AllGather_RING_LL", "All-gathers and", "prefetching"),
        ("c10d::_reduce_scatter_base_", "ncclDevKernel_Generic", "All-gathers and", "prefetching"),
        ("c10d::alltoall_base_", SEND_RECV, "All-to-alls", "even out what each"),
        ("c10d::broadcast_", "ncclDevKernel_Broadcast_RING_LL", "Broadcasts", "seeds"),
        ("c10d::send", SEND_RECV, "Sends and receives", "batch_isend_irecv"),
        ("c10d::barrier", "ncclDevKernel_AllReduce_Sum_u8_RING_LL", "Barriers", "leave the barrier out"),
        ("", "ncclDevKernel_Generic", "Communication with other", "does not say what is exchanged"),
        ("", "void deep_ep::intranode::dispatch<8, 768, 4096>(int4*)", "All-to-alls", "experts"),
    ],
)
def test_each_kind_has_a_cure_of_its_own(op: str, kernel: str, title: str, cure: str) -> None:
    finding = only(exchanging((op, kernel, 2_000)))
    assert finding.title.startswith(title)
    assert finding.title.endswith("that nothing hides")
    assert cure in finding.fix
    assert ("bucket_cap_mb" in finding.fix) is (cure == "bucket_cap_mb")
    assert finding.cost_ns_per_step == 2_000 * US


def test_a_kernel_that_sends_and_receives_is_not_taken_for_a_pipeline() -> None:
    finding = only(exchanging(("", SEND_RECV, 2_000)))
    assert finding.title == "Communication with other devices that nothing hides"
    assert "which all-to-alls do too" in finding.why
    assert "pipeline" not in finding.fix


def test_kinds_are_findings_of_their_own_and_each_cure_takes_its_own_away() -> None:
    events = exchanging(
        ("c10d::alltoall_base_", SEND_RECV, 3_000),
        ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1_000),
    )
    first, second = found(events)
    assert (first.title.split(" that")[0], second.title.split(" that")[0]) == ("All-to-alls", "All-reduces")
    assert [f.cost_ns_per_step for f in (first, second)] == [3_000 * US, 1_000 * US]
    assert first.saving_ns_per_step == pytest.approx(3_000 * US, abs=20 * US)
    assert second.saving_ns_per_step == pytest.approx(1_000 * US, abs=20 * US)
    assert second.saving_after_ns_per_step == pytest.approx(1_000 * US, abs=20 * US)


def test_links_carry_one_thing_at_a_time_whatever_is_hidden() -> None:
    """Of two kinds of 3 ms each beside 4 ms of compute a step cannot hide more than to 6 ms."""
    events = exchanging(
        ("c10d::alltoall_base_", SEND_RECV, 3_000),
        ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 3_000),
        compute_us=4_000,
    )
    first, second = found(events)
    assert first.predicted_step_ns == pytest.approx(7_000 * US, abs=30 * US)
    assert second.saving_after_ns_per_step == pytest.approx(1_000 * US, abs=30 * US)


def test_what_runs_at_once_counts_once() -> None:
    events = exchanging(
        ("c10d::alltoall_base_", SEND_RECV, 3_000),
        ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2_000),
        beside=True,
    )
    (finding,) = found(events)
    assert finding.title.startswith("All-to-alls")
    assert finding.cost_ns_per_step == 3_000 * US


def test_kinds_too_small_each_are_told_together() -> None:
    events = exchanging(
        ("c10d::alltoall_base_", SEND_RECV, 70),
        ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 75),
        ("c10d::broadcast_", "ncclDevKernel_Broadcast_RING_LL", 80),
    )
    finding = only(events)
    assert finding.title == "Communication with other devices that nothing hides"
    assert finding.cost_ns_per_step == 225 * US


def test_sizes_ranks_and_speed_are_told_where_they_are_recorded() -> None:
    args = {"Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "Group size": 8}
    args |= {"dtype": "Float", "Process Group Name": "0", "Process Group Description": "default_pg"}
    events = exchanging(("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2_000), **args)
    why = only(events).why
    assert "1 all-reduce per step (4.00 MiB, among 8 ranks) takes 2.00 ms" in why
    assert "Each link carries at least 3.67 GB/s meanwhile" in why  # 4 MiB · 2 · 7/8 in 2 ms
    bare = only(exchanging(("", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2_000))).why
    assert "MiB" not in bare
    assert "link" not in bare


@pytest.mark.parametrize(
    ("around", "op", "kernel", "cure"),
    [
        ("## sdd_input_dist ##", "c10d::alltoall_base_", SEND_RECV, "TrainPipelineSparseDist"),
        ("nn.Module: DeepseekV2MoE_0", "c10d::alltoall_base_", SEND_RECV, "Tokens go to their experts"),
        ("DistributedDataParallel.forward", "c10d::broadcast_", "ncclDevKernel_Broadcast", "broadcast_buffers=False"),
        ("FullyShardedDataParallel.forward", "c10d::_allgather_base_", "ncclDevKernel_AllGather", "forward_prefetch"),
        ("FSDP::all_gather", "c10d::_allgather_base_", "ncclDevKernel_AllGather", "set_modules_to_forward_prefetch"),
        ("deepspeed/runtime/zero/stage3.py(9): f", "c10d::_allgather_base_", "ncclDevKernel_AllGather", "overlap_comm"),
        ("nn.Module: RowParallelLinear_1", "c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", "cut across devices"),
        ("torch/distributed/pipelining/stage.py(2): f", "c10d::send", SEND_RECV, "micro-batches"),
    ],
)
def test_names_around_the_launch_say_what_the_exchange_is_for(around: str, op: str, kernel: str, cure: str) -> None:
    fix = only(exchanging((op, kernel, 2_000), around=around)).fix
    assert cure in fix
    assert "bucket_cap_mb" not in fix


@pytest.mark.parametrize(
    ("around", "description", "cure"),
    [
        ("megatron/core/tensor_parallel/mappings.py(25): _reduce", "default_pg", "cut across devices"),
        ("train.py(9): f", "TENSOR_MODEL_PARALLEL_GROUP", "cut across devices"),
        ("train.py(9): f", "mesh_tp", "cut across devices"),
        ("train.py(9): f", "default_pg", "does not say what is reduced"),
        ("metrics.py(10): sync_metrics", "default_pg", "every N steps"),
        ("torchmetrics/metric.py(400): _sync_dist", "default_pg", "every N steps"),
    ],
)
def test_groups_and_files_say_what_is_reduced(around: str, description: str, cure: str) -> None:
    args = {"Process Group Name": "3", "Process Group Description": description, "Group size": 8}
    events = exchanging(("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", 2_000), around=around, **args)
    fix = only(events).fix
    assert cure in fix
    assert ("bucket_cap_mb" in fix) is ("does not say" in cure)


@pytest.mark.parametrize("around", ["distributed_c10d.py(2500): all_gather_object", "metrics.py(10): sync_metrics"])
def test_what_is_gathered_for_reports_is_not_taken_for_parameters(around: str) -> None:
    fix = only(exchanging(("c10d::_allgather_base_", "ncclDevKernel_AllGather", 2_000), around=around)).fix
    assert "metrics or Python objects" in fix
    assert "prefetching" not in fix
    unsaid = only(exchanging(("c10d::_allgather_base_", "ncclDevKernel_AllGather", 2_000))).fix
    assert "does not say what is gathered" in unsaid


@pytest.mark.parametrize(
    ("dtype", "elements", "halved", "few"),
    [("Float", 1 << 28, True, False), ("BFloat16", 1 << 28, False, False), ("BFloat16", 1 << 23, False, True)],
)
def test_gradients_are_told_what_fits_their_bytes(dtype: str, elements: int, halved: bool, few: bool) -> None:
    args = {"Collective name": "allreduce", "In msg nelems": elements, "Group size": 8, "dtype": dtype}
    around = "DistributedDataParallel.backward"
    fix = only(exchanging(("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum", 2_000), around=around, **args)).fix
    assert ("bf16_compress_hook" in fix) is halved
    assert ("bucket or two of the default" in fix) is few
    assert ("both sides of the default" in fix) is not few


def reducing_all(*sent: tuple[int, str, int], around: str = "", device: str = "NVIDIA H100 80GB HBM3") -> Finding:
    """All-reduces of so many elements of a type among 8 ranks, for so many µs each, one after another."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 8_000)
        at = start + CALL + 8_000
        for i, (elements, dtype, us) in enumerate(sent):
            begin = start + 20 * (i + 1)
            if around:
                drawing.host(around, begin, 12, "user_annotation")
            args = {"Collective name": "allreduce", "In msg nelems": elements, "Group size": 8, "dtype": dtype}
            call = drawing.launch(begin + 1, CALL)
            drawing.kernel(call, "ncclDevKernel_AllReduce_Sum", at, us, Stream(0, 20), **args)
            at += us
        drawing.annotation("Optimizer.step#SGD.step", start + 900, 10)

    length = sum(us for _, _, us in sent)
    header = {"deviceProperties": [{"id": 0, "name": device}]}
    diagnosis = diagnosed(loop(8_000 + length + CALL, step), header=header)
    (finding,) = [f for f in (*diagnosis.findings, *diagnosis.minor) if f.rule == "exposed_collective"]
    return finding


MIB = 1 << 20


@pytest.mark.parametrize(
    ("elements", "us", "device", "late"),
    [
        (8 * MIB, 4_000, "NVIDIA H100 80GB HBM3", True),  # 14.7 of 450 GB/s
        (8 * MIB, 9_000, "AMD Instinct MI300X", True),
        (512 * MIB, 4_000, "NVIDIA H100 80GB HBM3", False),
        (8 * MIB, 4_000, "Accelerator 9000", False),  # nobody knows its link
    ],
)
def test_where_so_little_is_sent_that_ranks_must_be_late_that_is_said_first(
    elements: int, us: int, device: str, late: bool
) -> None:
    finding = reducing_all((elements, "Float", us), around="DistributedDataParallel.backward", device=device)
    assert finding.fix.startswith("Look for who is late first") is late
    assert ("most of it is waiting for a rank that is late" in finding.why) is late
    assert ("only the profiles of all ranks tell how much" in finding.why) is not late
    assert finding.confidence == ("low" if late else "medium")
    assert "bucket_cap_mb" in finding.fix


@pytest.mark.parametrize(
    ("count", "around", "joined"),
    [(8, "DistributedDataParallel.backward", True), (1, "train", False), (8, "nn.Module: RowParallelLinear_1", False)],
)
def test_where_messages_are_too_small_for_the_link_they_are_joined_first(count: int, around: str, joined: bool) -> None:
    finding = reducing_all(*[(1_000, "Float", 190)] * count, around=around)
    assert "Each is too small for its link" in finding.why
    assert finding.fix.startswith("Reduce gradients in buckets instead of tensor by tensor") is joined
    assert "Look for who is late" not in finding.fix


@pytest.mark.parametrize("around", ["DistributedDataParallel.backward", ""])
@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ([(MIB, "Float")], "They are sent in 32 bits; in 16 they are half the bytes"),
        ([(3 * MIB, "Float"), (MIB, "Byte")], "Of the bytes 92.3 % are sent in 32 bits; in 16 those are half"),
        ([(MIB, "Float"), (6 * MIB, "BFloat16")], None),
        ([(MIB, "BFloat16"), (100, "Byte"), (100, "Long")], None),
        ([(MIB, "Float"), (MIB, "Unheard")], "Where they are sent in 32 bits"),
    ],
)
def test_only_what_has_32_bits_is_half_in_16(around: str, sent: list[tuple[int, str]], told: str | None) -> None:
    finding = reducing_all(*((elements, dtype, 1_000) for elements, dtype in sent), around=around)
    assert ("bf16_compress_hook" in finding.fix) is (told is not None)
    assert told is None or told in finding.fix
    assert ("does not say what is reduced" in finding.fix) is not around


@pytest.mark.parametrize("kernel", ["void deep_ep::intranode::dispatch<8, 768>(int4*)", "ncclDevKernel_AllReduce_Sum"])
def test_an_exchange_that_takes_the_whole_step_is_told_without_a_saving(kernel: str) -> None:
    """Hiding it gains nothing; fewer bytes do."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start + 1, CALL), kernel, start + 10, 3_980, Stream(0, 20))
        drawing.kernel(drawing.launch(start + 10, CALL), "k", start + 30, 1_500)
        drawing.sync(start + 20, 3_975)

    finding = only(loop(4_000, step))
    assert finding.saving_ns_per_step is None
    assert finding.not_determined is not None
    assert "sending fewer bytes does" in finding.not_determined


def test_a_broadcast_elsewhere_is_not_that_of_buffers() -> None:
    drawing = TraceDrawing()
    drawing.annotation("DistributedDataParallel.forward", 7_000, 500)
    events = exchanging(("c10d::broadcast_", "ncclDevKernel_Broadcast_RING_LL", 2_000))
    assert "sends the buffers" not in only([*drawing.events(), *events]).fix


def test_launches_are_placed_by_the_time_they_take() -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 4_000)
        for i in range(8):
            drawing.python("train.py(9): many", start + 20 + 20 * i, 12)
            call = drawing.launch(start + 21 + 20 * i, CALL)
            drawing.kernel(call, "ncclDevKernel_AllReduce_Sum", start + CALL + 4_000 + 300 * i, 300, Stream(0, 20))
        drawing.python("train.py(5): one", start + 200, 12)
        call = drawing.launch(start + 201, CALL)
        drawing.kernel(call, "ncclDevKernel_AllReduce_Sum", start + CALL + 6_400, 700, Stream(0, 20))

    finding = only(loop(7_200, step))
    assert [place.line for place in finding.where] == [9, 5]


def serving() -> list[Event]:
    drawing = TraceDrawing()
    drawing.python("nn.Module: Decoder_0", 0, 60_000)
    return drawing.events()


@pytest.mark.parametrize(
    ("op", "kernel", "why"),
    [
        ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "the next layer needs the result at once"),
        ("", "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>()", "the next layer needs the result at once"),
        ("c10d::_allgather_base_", "ncclDevKernel_AllGather_RING_LL", "the next layer needs the result at once"),
        ("c10d::alltoall_base_", SEND_RECV, None),  # the other half of the batch computes beside it
    ],
)
def test_in_inference_nothing_hides_what_the_next_layer_needs(op: str, kernel: str, why: str | None) -> None:
    diagnosis = diagnosed([*serving(), *exchanging((op, kernel, 2_000))])
    finding = next(f for f in diagnosis.findings if f.rule == "exposed_collective")
    assert finding.cost_ns_per_step == 2_000 * US
    if why is None:
        assert finding.saving_ns_per_step == pytest.approx(2_000 * US, abs=20 * US)
        return
    assert (finding.saving_ns_per_step, finding.change, finding.predicted_step_ns) == (None, None, None)
    assert why in (finding.not_determined or "")
    assert diagnosis.whatif.combined_step_ns is None
    assert finding.id not in diagnosis.plan


def test_what_the_host_hides_in_inference_is_no_finding() -> None:
    """What follows is launched long after the exchange: without it the device would only idle longer."""

    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        drawing.kernel(drawing.launch(start, CALL), "k", start + CALL, 995)
        call = drawing.launch(start + 20, CALL)
        drawing.kernel(call, "ncclDevKernel_AllReduce_Sum", start + 1_000, 2_000, Stream(0, 20))
        drawing.host("aten::view", start + 30, 7_900)
        drawing.kernel(drawing.launch(start + 8_000, CALL), "k", start + 8_000 + CALL, 1_990)

    diagnosis = diagnosed([*serving(), *loop(10_000, step)])
    assert "exposed_collective" not in [f.rule for f in diagnosis.findings]
    assert "exposed_collective" in [f.rule for f in diagnosis.minor]


@pytest.mark.parametrize(
    ("op", "kernel", "why"),
    [
        ("c10d::barrier", "ncclDevKernel_AllReduce_Sum_u8_RING_LL", "wait for the late one at the next collective"),
        ("c10d::send", SEND_RECV, "must first be computed by the device that sends it"),
    ],
)
def test_what_waits_for_the_work_of_others_has_no_saving_of_its_own(op: str, kernel: str, why: str) -> None:
    finding = only(exchanging((op, kernel, 2_000)))
    assert (finding.cost_ns_per_step, finding.saving_ns_per_step) == (2_000 * US, None)
    assert why in (finding.not_determined or "")


def test_of_small_kinds_told_together_only_what_can_be_hidden_is_saved() -> None:
    barrier = ("c10d::barrier", "ncclDevKernel_AllReduce_Sum_u8_RING_LL", 75)
    finding = only(exchanging(("c10d::alltoall_base_", SEND_RECV, 75), barrier))
    assert finding.cost_ns_per_step == 150 * US
    assert finding.saving_ns_per_step == pytest.approx(75 * US, abs=20 * US)


@pytest.mark.parametrize(("around", "left_us"), [("DistributedDataParallel.forward", 1_000), ("", 4_000)])
def test_buffers_that_are_not_sent_take_nothing_beside_compute_either(around: str, left_us: int) -> None:
    broadcast = ("c10d::broadcast_", "ncclDevKernel_Broadcast_RING_LL", 4_000)
    finding = only(exchanging(broadcast, compute_us=1_000, around=around))
    assert finding.predicted_step_ns == pytest.approx(left_us * US, abs=30 * US)


@pytest.mark.parametrize(("devices", "said"), [(1, "only the profiles of all ranks"), (2, "the table of collectives")])
def test_where_all_devices_are_here_the_waiting_is_told(devices: int, said: str) -> None:
    def step(drawing: TraceDrawing, number: int, start: int) -> None:
        for device in range(devices):
            drawing.kernel(drawing.launch(start + 20 * device, CALL), "k", start + 50, 4_000, Stream(device, 7))
            call = drawing.launch(start + 20 * device + 10, CALL)
            group = {"Process Group Name": "0", "Group size": 2, "Collective name": "allreduce"}
            drawing.kernel(call, "ncclDevKernel_AllReduce_Sum", start + 4_050, 1_000, Stream(device, 20), **group)

    why = only(loop(5_100, step)).why
    assert said in why
    assert ("2 of 2 devices have it; the figures are those of device" in why) is (devices == 2)


@pytest.mark.parametrize(("make", "fits"), [("NVIDIA", True), ("AMD", True), ("CPU", False), ("Google", False)])
def test_flags_of_xla_for_gpus_are_for_gpus(make: str, fits: bool) -> None:
    workload = Workload("JAX", vendors=frozenset({make}))
    assert ("--xla_gpu_enable_latency" in remedy(exchange_remedies.GRADIENTS, workload)) is fits
    assert ("combine_threshold" in remedy(exchange_remedies.JOIN_SHARDS, workload)) is fits


@pytest.mark.parametrize("purpose", [Purpose.INFERENCE, Purpose.SERVING])
def test_inference_is_told_nothing_of_training(purpose: Purpose) -> None:
    workload = Workload("PyTorch", purpose, vendors=frozenset({"NVIDIA"}))
    texts = [t for t in vars(exchange_remedies).values() if isinstance(t, dict) and None in t]
    told = " ".join(remedy(texts, workload) for texts in texts if texts not in _TRAINING).lower()
    for word in ("gradient", "optimizer", "backward", "rocm", "no_sync", "ddp"):
        assert word not in told
    assert "--enable-flashinfer-allreduce-fusion" in told


_TRAINING = (
    *(exchange_remedies.FSDP1, exchange_remedies.FSDP2, exchange_remedies.ZERO, exchange_remedies.BUFFERS),
    *(exchange_remedies.BESIDE_SHARDS, exchange_remedies.JOIN_GRADIENTS, exchange_remedies.GRADIENTS),
    *(exchange_remedies.REDUCED, reducing._OTHERS_GRADIENTS),
)
"""What is evident there is done in training only, or the neutral words name it."""


def test_a_program_that_serves_is_told_of_its_engine() -> None:
    events = exchanging(("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 2_000))
    fix = only([*serving(), *events]).fix
    assert "--tensor-parallel-size" in fix
    assert "radient" not in fix


def test_names_tell_layouts() -> None:
    assert doctest.testmod(parallelism).failed == 0
    assert parallelism.layouts(["expertise", "temporary", "http", "warp"]) == frozenset()
    assert parallelism.layouts(["mesh_tp"]) == {Layout.TENSOR}
    assert parallelism.layouts(["model.layers.3.mlp.experts"]) == {Layout.EXPERTS}


def test_every_kind_of_exchange_has_a_cure() -> None:
    for exchange in exchange_remedies.Exchange:
        assert exchange_remedies.cures(exchange, (), ())
    facts = facts_with(exchanging(("c10d::alltoall_base_", SEND_RECV, 2_000)))
    assert facts.collectives.kind.size == 6
