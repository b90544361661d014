"""Each check on machines on which it must say one thing and not another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.doctor import CHECKS, Case, CheckOutcome, Host, ProgramEnd, State, examine, frameworks, gpu, machine
from stepscope.doctor.case import PROBE
from stepscope.doctor.known import KNOWN
from stepscope.doctor.machine import COMPILER_PROBE
from tests.doctor.machines import (
    CLOSED_DRIVER,
    GIB,
    JAX,
    OPEN_DRIVER,
    PARAMS,
    TENSORFLOW,
    TORCH,
    Machine,
    case,
    packages,
    says,
    smi,
    with_amd,
    with_nvidia,
)  # fmt: skip

OK, WARNING, PROBLEM, ABSENT = State.OK, State.WARNING, State.PROBLEM, State.NOT_APPLICABLE


def told(outcome: CheckOutcome, state: State, *words: str) -> None:
    """The outcome is of this state, says these words, and has a cure exactly where one is needed."""
    assert outcome.state is state, outcome
    text = f"{outcome.sentence} {outcome.cure or ''}"
    assert [word for word in words if word not in text] == []
    assert (outcome.cure is not None) == (state in (WARNING, PROBLEM))
    assert outcome.sentence.endswith((".", ")")) or ":" in outcome.sentence


# --- the list -----------------------------------------------------------------------------------------------------


def test_checks_have_ids_of_their_own():
    assert len({check.id for check in CHECKS}) == len(CHECKS)


def test_a_sound_machine_has_nothing_to_cure():
    for sound in (Machine(), with_nvidia(8), with_amd()):
        outcomes = {check.id: outcome for check, outcome in examine(case(sound))}
        cured = {"environment"} if type(sound) is Machine and not sound.scripts else set()  # It has no framework.
        assert {check for check, outcome in outcomes.items() if outcome.cure} == cured


def test_every_check_answers_where_nothing_can_be_asked():
    class Mute(Machine):
        def run(self, command, seconds, environ=None):
            return None

        def free_bytes(self, folder):
            return None

    silent = Mute(beside={}, needed=(), folder=None, stdout="unknown")
    for _, outcome in examine(case(silent)):
        assert isinstance(outcome, CheckOutcome)
        assert outcome.sentence


def test_this_machine_can_be_examined():
    outcomes = examine(Case(Host()))
    assert [check for check, _ in outcomes] == list(CHECKS)
    assert {check.id: outcome.state for check, outcome in outcomes}["environment"] in (OK, WARNING)


# --- the machine --------------------------------------------------------------------------------------------------


def test_python_and_packages():
    told(machine.python(case(Machine())), OK, "Python 3.12", "/usr/bin/python3")
    told(machine.python(case(Machine(python_version=(3, 10)))), PROBLEM, "3.10", "3.11 or later")
    told(machine.python(case(Machine(beside={"numba": "0.61"}))), PROBLEM, "numpy", "pip install numpy")
    old = Machine(beside={"numpy": "1.9.5", "numba": "0.61"})
    told(machine.python(case(old)), PROBLEM, "1.9.5", "1.26", "--upgrade")
    told(machine.python(case(Machine(beside={"numpy": "1.26", "numba": "0.100"}))), OK)


def test_compiled_loops():
    def says_of(ran: ProgramEnd | None) -> CheckOutcome:
        return machine.compiler(case(Machine(scripts={COMPILER_PROBE: ran})))

    told(says_of(says(numba="0.61.0", folder="/c")), OK, "0.61.0", "/c")
    told(says_of(says(numba="0.61.0", folder=None)), WARNING, "STEPSCOPE_CACHE")
    broken = ProgramEnd(
        1, '{"numba": null, "folder": null}\n', "Traceback\nImportError: Numba needs NumPy 2.2 or less.\n"
    )
    told(says_of(broken), WARNING, "Numba needs NumPy 2.2 or less", "pip install --upgrade numba numpy")
    told(says_of(ProgramEnd(None)), WARNING, "no answer")
    told(says_of(None), WARNING, "no answer")
    told(says_of(ProgramEnd(-11, "", "")), WARNING, "it said nothing")
    told(machine.compiler(case(Machine(variables={"NUMBA_DISABLE_JIT": "1"}))), WARNING, "unset NUMBA_DISABLE_JIT")
    told(machine.compiler(case(Machine(variables={"NUMBA_DISABLE_JIT": "0"}))), OK)


@pytest.mark.parametrize(("encoding", "state"), [("utf-8", OK), ("UTF8", OK), ("cp1252", WARNING), ("ascii", WARNING)])
def test_the_terminal(encoding, state):
    told(machine.terminal(case(Machine(stdout=encoding))), state, encoding)


@pytest.mark.parametrize(
    ("files", "state", "words"),
    [
        ({}, ABSENT, ()),
        ({"/proc/meminfo": "MemTotal: 99 kB\nMemAvailable:   8388608 kB\n"}, OK, ("8.00 GiB",)),
        ({"/proc/meminfo": "MemAvailable:   1048576 kB\n"}, WARNING, ("1.00 GiB",)),
        (
            {
                "/proc/meminfo": "MemAvailable:   8388608 kB\n",
                "/sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
                "/sys/fs/cgroup/memory.current": f"{3 * GIB}\n",
            },
            WARNING,
            ("1.00 GiB", "docker run --memory"),
        ),
        (
            {
                "/proc/meminfo": "MemAvailable:   8388608 kB\n",
                "/sys/fs/cgroup/memory.max": "max\n",
                "/sys/fs/cgroup/memory.current": "5\n",
            },
            OK,
            ("8.00 GiB",),
        ),
        (
            {
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
            },
            ABSENT,
            (),
        ),
    ],
)
def test_memory(files, state, words):
    told(machine.memory(case(Machine(files=files))), state, *words)


def test_disk():
    told(machine.disk(case(Machine())), OK, "50.0 GiB", "/tmp")
    told(machine.disk(case(Machine(free=GIB // 2))), WARNING, "512 MiB", "TMPDIR")
    told(machine.disk(case(Machine(free=1 << 20))), PROBLEM, "1.00 MiB")
    told(machine.disk(case(Machine(folder=None))), PROBLEM, "TMPDIR")


@pytest.mark.parametrize(
    ("files", "variables", "kind"),
    [
        ({}, {}, None),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, {}, None),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({"/proc/1/cgroup": "12:pids:/kubepods/burstable/pod1\n"}, {}, "kubernetes"),
        ({"/.dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/proc/1/cgroup": "1:name=systemd:/lxc/box\n"}, {}, "lxc"),
    ],
)
def test_containers(files, variables, kind):
    here = case(Machine(files=files, variables=variables))
    told(machine.container(here), OK if kind else ABSENT, *([kind] if kind else []))


def test_wsl():
    told(machine.wsl(case(Machine(files={"/proc/version": "Linux version 6.8.0-40-generic"}))), ABSENT)
    linux = Machine(files={"/proc/version": "Linux version 5.15.167.4-microsoft-standard-WSL2"})
    told(machine.wsl(case(linux)), WARNING, "pytorch/kineto#762", "stepscope doctor PROFILE")


# --- devices ------------------------------------------------------------------------------------------------------

PCI = {"/sys/bus/pci/devices/0000:41:00.0/vendor": "0x10de\n", "/sys/bus/pci/devices/0000:41:00.0/class": "0x030200\n"}
SOUND_CARD = {path: text.replace("0x0302", "0x0403") for path, text in PCI.items()}


def test_nvidia_gpus():
    told(gpu.nvidia_gpu(case(Machine())), ABSENT)
    told(gpu.nvidia_gpu(case(with_nvidia(2))), OK, "2 × NVIDIA H100", "550.54.15")
    mixed = with_nvidia(programs={"nvidia-smi": smi("NVIDIA T4", "NVIDIA L4")})
    told(gpu.nvidia_gpu(case(mixed)), OK, "1 × NVIDIA T4, 1 × NVIDIA L4")
    complaint = "Failed to initialize NVML: Driver/library version mismatch\n"
    failing = with_nvidia(programs={"nvidia-smi": ProgramEnd(18, complaint)})
    told(gpu.nvidia_gpu(case(failing)), PROBLEM, "version mismatch", "Reboot")
    hanging = with_nvidia(programs={"nvidia-smi": ProgramEnd(None)})
    told(gpu.nvidia_gpu(case(hanging)), PROBLEM)
    without_smi = with_nvidia()
    del without_smi.programs["nvidia-smi"]
    told(gpu.nvidia_gpu(case(without_smi)), OK, "550.54.15", "no nvidia-smi")
    told(gpu.nvidia_gpu(case(Machine(files=PCI))), PROBLEM, "driver is not loaded")
    told(gpu.nvidia_gpu(case(Machine(files=PCI | {"/.dockerenv": ""}))), WARNING, "--gpus all")
    told(gpu.nvidia_gpu(case(Machine(files=SOUND_CARD))), ABSENT)


@pytest.mark.parametrize("value", ["", "-1", " "])
def test_hidden_gpus(value):
    told(gpu.nvidia_gpu(case(with_nvidia(variables={"CUDA_VISIBLE_DEVICES": value}))), WARNING, "CUDA_VISIBLE_DEVICES")
    told(gpu.nvidia_gpu(case(with_nvidia(variables={"CUDA_VISIBLE_DEVICES": "0"}))), OK)
    told(gpu.amd_gpu(case(with_amd(variables={"ROCR_VISIBLE_DEVICES": value}))), WARNING, "ROCR_VISIBLE_DEVICES")


@pytest.mark.parametrize("text", [CLOSED_DRIVER, OPEN_DRIVER])
def test_the_driver_is_told_from_either_kernel_module(text):
    files = {"/proc/driver/nvidia/version": text.format("440.33.01")}
    assert case(Machine(files=files)).nvidia_driver == "440.33.01"


def test_nvidia_permission():
    told(gpu.nvidia_permission(case(Machine())), ABSENT)
    told(gpu.nvidia_permission(case(with_nvidia())), OK, "Every user")
    told(gpu.nvidia_permission(case(with_nvidia(restricted=True))), WARNING, "hardware counters",
         "NVreg_RestrictProfilingToAdminUsers=0")  # fmt: skip
    old = with_nvidia(restricted=True, driver="430.50")
    told(gpu.nvidia_permission(case(old)), PROBLEM, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")
    boundary = with_nvidia(restricted=True, driver="440.33.01")
    told(gpu.nvidia_permission(case(boundary)), WARNING)
    unknown = with_nvidia(
        restricted=True, programs={"nvidia-smi": ProgramEnd(1)}, files={"/proc/driver/nvidia/version": ""}
    )
    told(gpu.nvidia_permission(case(unknown)), PROBLEM)
    inside = with_nvidia(restricted=True, files={"/.dockerenv": ""})
    told(gpu.nvidia_permission(case(inside)), WARNING, "--cap-add=SYS_ADMIN")
    for capabilities, state in (("0000000000200000", OK), ("000001ffffffffff", OK), ("00000000a80425fb", WARNING)):
        files = {"/proc/self/status": f"CapInh:\t0\nCapEff:\t{capabilities}\n"}
        told(gpu.nvidia_permission(case(with_nvidia(restricted=True, files=files))), state)


def test_cupti():
    told(gpu.cupti(case(Machine())), ABSENT)
    told(gpu.cupti(case(with_nvidia())), OK, "/env/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12")
    bare = with_nvidia()
    del bare.files["/env/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12"]
    told(gpu.cupti(case(bare)), WARNING, "nvidia-cuda-cupti-cu12", "LD_LIBRARY_PATH")
    bare.scripts[PROBE] = packages({"cuda": "13.0"}, torch="2.13.0")
    told(gpu.cupti(case(bare)), WARNING, "pip install nvidia-cuda-cupti`")
    for path, variables in (
        ("/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", {}),
        ("/opt/cuda/extras/CUPTI/lib64/libcupti.so", {"CUDA_HOME": "/opt/cuda"}),
        ("/my/libcupti.so.12", {"LD_LIBRARY_PATH": "/else:/my"}),
        ("/env/site-packages/nvidia/cu13/lib/libcupti.so.13", {}),
    ):
        found = replace(bare, files=bare.files | {path: ""}, variables=variables)
        told(gpu.cupti(case(found)), OK, path)


def test_amd():
    told(gpu.amd_gpu(case(Machine())), ABSENT)
    told(gpu.amd_gpu(case(with_amd())), OK, "6.4.1")
    told(gpu.amd_gpu(case(with_amd(unusable=("/dev/kfd",)))), PROBLEM, "usermod -aG render,video")
    inside = with_amd(unusable=("/dev/kfd",), files={"/.dockerenv": ""})
    told(gpu.amd_gpu(case(inside)), PROBLEM, "--device=/dev/kfd")
    unseen = {path: text.replace("10de", "1002") for path, text in PCI.items()} | {"/.dockerenv": ""}
    told(gpu.amd_gpu(case(Machine(files=unseen))), WARNING, "--device=/dev/kfd")
    told(gpu.amd_tracer(case(Machine())), ABSENT)
    told(gpu.amd_tracer(case(with_amd())), OK, "librocprofiler-sdk.so.1")
    told(gpu.amd_tracer(case(Machine(files={"/dev/kfd": ""}))), WARNING, "roctracer")


@pytest.mark.parametrize("variable", gpu.INJECTED)
def test_another_profiler_in_the_environment(variable):
    told(gpu.other_profiler(case(Machine(variables={variable: "/opt/tool.so"}))), PROBLEM, f"unset {variable}")


def test_another_profiler_loaded_or_running():
    told(gpu.other_profiler(case(Machine())), OK)
    told(gpu.other_profiler(case(Machine(variables={"LD_PRELOAD": "/usr/lib/libjemalloc.so"}))), OK)
    preloaded = "/opt/nvidia/nsight-systems/libToolsInjectionProxy64.so"
    told(gpu.other_profiler(case(Machine(variables={"LD_PRELOAD": preloaded}))), PROBLEM, "LD_PRELOAD")
    told(gpu.other_profiler(case(Machine(files={"/proc/77/comm": "nsys\n"}))), WARNING, "nsys", "77")
    counters = Machine(files={"/proc/78/comm": "nv-hostengine\n"})
    told(gpu.other_profiler(case(counters)), WARNING, "dcgmi profile --pause")
    told(gpu.other_profiler(case(Machine(files={"/proc/79/comm": "python3\n"}))), OK)


# --- frameworks ---------------------------------------------------------------------------------------------------


def test_the_python_of_the_job():
    for framework in ("torch", "jax", "tensorflow", "tensorflow_cpu"):
        given = {PROBE: packages(**{framework: "2.9.0"})}
        told(frameworks.environment(case(Machine(scripts=given))), OK, "3.11.9")
    told(frameworks.environment(case(Machine())), WARNING, "nothing can be recorded there", "--python PATH")
    for ran, words in (
        (None, "cannot be started"),
        (ProgramEnd(None), "no answer"),
        (ProgramEnd(1, "", "SyntaxError: invalid syntax"), "SyntaxError"),
        (ProgramEnd(0, "hello"), "hello"),
        (ProgramEnd(0, "[1]"), "[1]"),
        (ProgramEnd(0, ""), "it said nothing"),
    ):
        told(frameworks.environment(case(Machine(scripts={PROBE: ran}))), PROBLEM, words, "--python PATH")


def test_captures_from_servers():
    told(machine.grpc(case(Machine())), ABSENT, "pip install grpcio")
    told(machine.grpc(case(Machine(beside={"grpcio": "1.70.0"}))), OK, "grpcio 1.70.0")


def test_two_profiler_plugins_of_tensorboard():
    """Seen with TensorBoard 2.21: ``ValueError: Duplicate plugins for name profile``."""

    def plugins(**versions: str) -> CheckOutcome:
        return frameworks.tensorboard(case(Machine(scripts={PROBE: packages(**versions)})))

    told(plugins(), ABSENT, "no profiler plugin")
    told(plugins(xprof="2.24.2"), OK, "xprof 2.24.2")
    told(plugins(tensorboard_plugin_profile="2.19.0"), OK, "tensorboard-plugin-profile 2.19.0")
    told(plugins(tensorboard_plugin_profile="2.21.1", xprof="2.21.1"), OK, "xprof 2.21.1")
    told(plugins(tensorboard_plugin_profile="2.19.0", xprof="2.24.2"), WARNING, "Duplicate plugins", "pip uninstall")


def of(framework, ran: ProgramEnd, machine_: Machine, deep: dict[str, ProgramEnd] | None = None) -> CheckOutcome:
    here = replace(machine_, scripts={PROBE: ran, **(deep or {})})
    outcome = framework(case(here, deep=deep is not None))
    assert (len(here.started) > 1) == (deep is not None and "not installed" not in outcome.sentence) or outcome.cure
    return outcome


CUDA = {"cuda": "12.6"}


def test_torch():
    told(of(frameworks.torch, packages(), Machine()), ABSENT)
    told(of(frameworks.torch, packages(CUDA, torch="2.8.0"), with_nvidia()), OK, "2.8.0", "CUDA 12.6")
    told(of(frameworks.torch, packages(torch="2.8.0+cpu"), Machine()), OK, "the CPU alone")
    told(of(frameworks.torch, packages(torch="2.8.0+cpu"), with_nvidia()), PROBLEM, "build for CUDA")
    told(of(frameworks.torch, packages(torch="2.8.0+cpu"), with_amd()), PROBLEM, "build for ROCm")
    records = ["CPU", "CUDA"]
    for usable, recorded, state, words in (
        (True, records, OK, "records CPU, CUDA"),
        (True, ["CPU"], PROBLEM, "profiler cannot record"),
        (False, records, PROBLEM, "finds no GPU"),
    ):
        deep = {TORCH: says(usable=usable, count=1, records=recorded)}
        told(of(frameworks.torch, packages(CUDA, torch="2.8.0"), with_nvidia(), deep), state, words)
    failing = (
        (ProgramEnd(1, "", "ImportError: libcudart.so"), "libcudart.so"),
        (ProgramEnd(None), "no answer"),
        (None, "no answer"),
    )
    for ran, words in failing:
        told(of(frameworks.torch, packages(CUDA, torch="2.8.0"), with_nvidia(), {TORCH: ran}), PROBLEM, words)


def test_jax():
    told(of(frameworks.jax, packages(), Machine()), ABSENT)
    told(of(frameworks.jax, packages(jax="0.7.0", jaxlib="0.7.0"), Machine()), OK, "0.7.0")
    told(of(frameworks.jax, packages(jax="0.7.0", jaxlib="0.7.0"), with_nvidia()), PROBLEM, "jax[cuda12]")
    told(of(frameworks.jax, packages(jax="0.7.0"), with_amd()), PROBLEM, "ROCm")
    told(of(frameworks.jax, packages(jax="0.7.0", jax_cuda12_plugin="0.7.0"), with_nvidia()), OK, "jax-cuda12-plugin")
    with_plugin = packages(jax="0.7.0", jax_cuda12_plugin="0.7.0")
    told(of(frameworks.jax, with_plugin, with_nvidia(), {JAX: says(backend="gpu", count=8)}), OK, "8 gpu devices")
    told(of(frameworks.jax, with_plugin, with_nvidia(), {JAX: says(backend="cpu", count=1)}), PROBLEM, "on the CPU")
    told(
        of(frameworks.jax, with_plugin, with_nvidia(), {JAX: ProgramEnd(1, "", "RuntimeError: x")}),
        PROBLEM,
        "RuntimeError",
    )


def test_tensorflow():
    told(of(frameworks.tensorflow, packages(), Machine()), ABSENT)
    told(of(frameworks.tensorflow, packages(tensorflow="2.19.0"), with_nvidia()), OK, "2.19.0")
    told(of(frameworks.tensorflow, packages(tensorflow_cpu="2.19.0"), Machine()), OK)
    told(of(frameworks.tensorflow, packages(tensorflow_cpu="2.19.0"), with_nvidia()), PROBLEM, "tensorflow[and-cuda]")
    installed = packages(tensorflow="2.19.0")
    told(of(frameworks.tensorflow, installed, with_nvidia(), {TENSORFLOW: says(count=0)}), PROBLEM, "finds no GPU")
    told(of(frameworks.tensorflow, installed, with_nvidia(), {TENSORFLOW: says(count=2)}), OK, "2 GPUs")


# --- known failures -----------------------------------------------------------------------------------------------


def applying(ran: ProgramEnd, machine_: Machine | None = None) -> set[str]:
    here = case(replace(machine_ or Machine(), scripts={PROBE: ran}))
    found = set()
    for known in KNOWN:
        outcome = known.check(here)
        assert outcome.state in (WARNING, ABSENT)
        if outcome.state is WARNING:
            told(outcome, WARNING, known.source)
            found.add(known.source.split("/")[1])
    return found


@pytest.mark.parametrize(
    ("ran", "machine_", "sources"),
    [
        (packages(), None, set()),
        (packages({"cuda": "11.8"}, torch="2.3.1+cu118"), None, {"pytorch#135003"}),
        (packages({"cuda": "12.1"}, torch="2.3.0"), None, {"pytorch#150957"}),
        (packages({"cuda": "12.6"}, torch="2.8.0"), None, set()),
        (packages({"cuda": "12.8"}, torch="2.10.0"), None, {"pytorch#192021"}),
        (packages({"cuda": "13.0"}, torch="2.11.0"), None, set()),
        (packages({"hip": "6.4.1"}, torch="2.9.0"), None, {"kineto#1268"}),
        (packages({"hip": "7.0.1"}, torch="2.9.0"), None, {"kineto#1268", "kineto#1338", "rocm-systems#1327"}),
        (packages({"hip": "7.1.0"}, torch="2.11.0"), None, {"kineto#1338"}),
        (packages({"hip": "7.1.0"}, torch="2.12.0"), None, set()),
        (packages({"xpu": "20250100"}, torch="2.12.0"), Machine(os="win32"), {"torch-xpu-ops#3350"}),
        (packages({"xpu": "20250100"}, torch="2.12.0"), None, set()),
        (packages({"xpu": "20250100"}, torch="2.13.0"), Machine(os="win32"), set()),
        (packages(torch="2.2.0+cpu"), Machine(variables={"KINETO_USE_DAEMON": "1"}), {"pytorch#112389"}),
        (packages(torch="2.2.0+cpu"), None, set()),
        (packages(CUDA, torch="2.8.0"), Machine(variables={"KINETO_USE_DAEMON": "1"}), set()),
        (packages(jax="0.10.0"), with_nvidia(8), {"jax#40260"}),
        (packages(jax="0.10.0"), with_nvidia(4), set()),
        (packages(jax="0.9.2"), with_nvidia(8), set()),
        (packages(torch_xla="2.9.0"), None, {"xla#7841"}),
        (packages(torch="weird"), None, set()),
    ],
)
def test_known_failures_apply_to_what_they_were_reported_for(ran, machine_, sources):
    assert {source.split("/")[-1] for source in applying(ran, machine_)} == sources


def test_parameters_of_the_driver_may_be_any_text():
    for text in ("", "\0\0", "RmProfilingAdminOnly:", "RmProfilingAdminOnly: x"):
        told(gpu.nvidia_permission(case(Machine(files={PARAMS: text}))), ABSENT)
