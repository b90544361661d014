"""What kind of program a profile is of: purpose, versions and makes, from what it shows."""

from __future__ import annotations

import dataclasses

import pytest

import stepscope
from stepscope.analysis.analyse import analyse
from stepscope.analysis.workload import Purpose, Workload
from stepscope.formats.beside.versions import of_version
from stepscope.formats.writers import WRITERS
from stepscope.names import versions
from stepscope.names.purposes import infers, serves, trains, trains_on_device, vendor_of_call, vendor_of_device
from tests.kit.builder import TraceDrawing
from tests.kit.events import Event, FlowEnd
from tests.kit.kineto_form import Form
from tests.kit.kineto_writer import write_kineto
from tests.kit.traces import REPOSITORY
from tests.support import real_facts, trace_of, trace_of_bytes


def steps(*names: str, kernel: str = "gemm") -> list[Event]:
    """Three steps of one kernel, each launched inside ranges of these names."""
    drawing = TraceDrawing()
    for number in range(3):
        start = number * 1_000
        drawing.step(number, start, 1_000)
        for depth, name in enumerate(names):
            drawing.host(name, start + 10 + depth, 500, "python_function" if ".py(" in name else "cpu_op")
        drawing.kernel(drawing.launch(start + 100), kernel, start + 120, 600)
    return drawing.events()


def workload(events: list[Event], form: Form | None = None) -> Workload:
    return analyse(trace_of_bytes(write_kineto(events, form))).workload


@pytest.mark.parametrize(
    ("names", "kernel", "purpose"),
    [
        (("Optimizer.step#SGD.step",), "k", Purpose.TRAINING),
        (("AddmmBackward0",), "k", Purpose.TRAINING),
        (("aten::mm",), "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", Purpose.TRAINING),
        (("aten::mm",), "sm90_xmma_wgrad_implicit_gemm_indexed_bf16", Purpose.TRAINING),
        (("aten::mm",), "igemm_wrw_gtcx2_nhwc_bf16", Purpose.TRAINING),
        (("aten::mm",), "flash_bwd_dq_dk_dv_loop_kernel", Purpose.TRAINING),
        (("vllm/v1/worker/gpu_model_runner.py(1210): execute_model",), "k", Purpose.SERVING),
        (("aten::mm",), "void vllm::rms_norm_kernel<c10::BFloat16>", Purpose.SERVING),
        (("vllm/engine.py(3): step", "AddmmBackward0"), "k", Purpose.TRAINING),
        (("diffusers/pipelines/flux/pipeline_flux.py(640): __call__",), "k", Purpose.INFERENCE),
        (("nn.Module: Net_0",), "k", Purpose.INFERENCE),
        (("nn.Module: Net_0", "aten::cross_entropy_loss"), "k", Purpose.UNKNOWN),
        (("aten::mm",), "sm80_xmma_dgrad_implicit_gemm_indexed_f16f16", Purpose.UNKNOWN),
        (("aten::mm",), "gemm", Purpose.UNKNOWN),
    ],
)
def test_purpose(names, kernel, purpose):
    assert workload(steps(*names, kernel=kernel)).purpose is purpose


def test_the_forward_pass_of_a_transposed_convolution_is_no_training():
    assert not trains_on_device("cudnn_dgrad2d_nhwc")
    assert not trains_on_device("ConvolutionBwdData_nhwc")
    assert trains_on_device("ConvolutionBwdWeights_nhwc")


def test_arrows_from_forward_to_backward_tell_of_training():
    events = steps("aten::mm", "aten::add")
    first, second = (next(e for e in events if e.name == name) for name in ("aten::mm", "aten::add"))
    linked = {id(first): FlowEnd(1, True), id(second): FlowEnd(1, False)}
    events = [dataclasses.replace(e, flows=(linked[id(e)],)) if id(e) in linked else e for e in events]
    assert workload(events).purpose is Purpose.TRAINING


def test_names_that_say_nothing_of_the_purpose():
    for name in ("collective-pipeliner-backward", "aten::mm", "train", "vllm.py(3): main"):
        assert not trains(name)
        assert not serves(name)
        assert not infers(name)


@pytest.mark.parametrize(
    ("form", "oldest", "newest"),
    [
        (Form(generation="2021"), None, (1, 8)),
        (Form(generation="2022"), (1, 11), (1, 12)),
        (Form(generation="2023"), (1, 11), (2, 1)),
        (Form(), (2, 4), None),
    ],
    ids=["2021", "2022", "2023", "2025"],
)
def test_the_way_a_file_is_written_bounds_the_version(form, oldest, newest):
    found = workload(steps("aten::mm"), form)
    assert (found.oldest, found.newest) == (oldest, newest)
    assert found.may_be_since((2, 0)) == (newest is None or newest >= (2, 0))


def test_names_know_better_than_a_clock():
    old = workload(steps("torch/_dynamo/eval_frame.py(574): _fn"), Form(generation="2022"))
    assert (old.oldest, old.newest) == ((2, 0), None)


def test_a_dialect_that_contradicts_itself_says_nothing():
    assert versions.of_kineto({"Operator"}, {"baseTimeNanoseconds"}) == versions.Range()


@pytest.mark.parametrize(
    ("day", "newest"), [(1_500_000_000, None), (1_623_142_623, (1, 8)), (1_669_783_687, (1, 13)), (1_800_000_000, None)]
)
def test_versions_of_a_date(day, newest):
    assert versions.of_date("PyTorch", day * 10**9).newest == newest


def test_versions_survive_saving_and_exporting(tmp_path):
    path = tmp_path / "old.json"
    path.write_bytes(write_kineto(steps("aten::mm"), Form(generation="2021")))
    one = stepscope.open(path)
    assert one.trace.info.framework_newest == (1, 12)
    for writer in WRITERS:
        if writer.name in ("stepscope", "xplane", "chrome"):
            out = tmp_path / f"out{writer.suffixes[0]}"
            writer.write(one.trace, out)
            assert stepscope.open(out).facts.workload == one.facts.workload, writer.name


def test_a_manifest_knows_the_version():
    trace = trace_of(steps("aten::mm"))
    told = of_version(trace, {"framework": "torch", "framework_version": "2.13.0+cu130"})
    assert analyse(told).workload.newest == (2, 13)
    for manifest in (None, {}, {"framework": "jax", "framework_version": "0.8.0"}, {"framework": "torch"}):
        assert of_version(trace, manifest) is trace


def test_makes():
    assert workload(steps()).vendors == {"NVIDIA"}
    assert workload(steps(), Form(vendor="amd")).vendors == {"AMD"}
    nameless = trace_of_bytes(write_kineto(steps(), Form(vendor="amd"), header={"deviceProperties": []}))
    info = dataclasses.replace(nameless.info, devices=())
    assert analyse(dataclasses.replace(nameless, info=info)).workload.vendors == {"AMD"}
    assert (vendor_of_call("hipLaunchKernel"), vendor_of_call("cuLaunchKernelEx")) == ("AMD", "NVIDIA")
    assert (vendor_of_call("urEnqueueKernelLaunch"), vendor_of_call("launch"), vendor_of_call("currentTime")) == (
        "Intel",
        None,
        None,
    )
    assert vendor_of_device("Intel(R) Data Center GPU Max 1550") == "Intel"
    assert (vendor_of_device("ARTEMIS"), vendor_of_device("MTIA v2")) == ("Meta", "Meta")


def test_devices_that_are_the_host_have_no_maker_of_accelerators():
    cpus = stepscope.open(REPOSITORY / "examples" / "profiles" / "jax_eight_devices.xplane.pb.gz").facts
    assert cpus.workload.vendors == {"CPU"}


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "purpose", "newest"),
    [
        ("kineto/v100_resnet50_workers0.json.gz", Purpose.TRAINING, (1, 8)),
        ("kineto/mi210_gpu_only.json.gz", Purpose.TRAINING, None),
        ("kineto/mi300_vllm_decode.json.gz", Purpose.SERVING, None),
        ("kineto/h100_qwen05b.json.gz", Purpose.INFERENCE, None),
        ("xplane/tpu_v6e_4_chips.xplane.pb", Purpose.UNKNOWN, None),
    ],
)
def test_real_profiles(name, purpose, newest):
    found = real_facts(name).workload
    assert (found.purpose, found.newest) == (purpose, newest)
