"""No remedy speaks of what a program is not: all remedies x kinds of workload, by one table of words."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from stepscope.analysis.workload import Purpose, Workload
from stepscope.diagnosis.remedies import (
    JAX,
    PYTORCH,
    TENSORFLOW,
    TORCH_XLA,
    Remedies,
    RemedyPart,
    remedy,
)
from stepscope.names import sync_hints
from tests.kit.misfits import MISFITS, misfits

FRAMEWORKS = {PYTORCH, JAX, TENSORFLOW, TORCH_XLA}
PACKAGES = ("stepscope.diagnosis", "stepscope.cluster", "stepscope.report")

EVIDENCE = {
    "input.NO_WORKERS": (r"DataLoader", "the profile names PyTorch's own loader, whatever the framework"),
    "input.LATE_WORKERS": (r"DataLoader", "the same"),
    "input.EITHER": (r"DataLoader", "the same"),
    "input.EITHER_WITH_STACKS": (r"DataLoader", "the same"),
    "input.RESTARTED": (r"DataLoader", "the same"),
    "input_bound._FIX_QUEUE": (r"tf\.", "the profile names an op of TensorFlow's queues"),
    "input_bound._FIX_TF_DATA": (r"tf\.", "the profile names tf.data's iterator"),
    "sync_bound._START_FIX": (r"jax|lax", "the call is XLA's, as JAX makes it"),
    "launching.FALLS_BACK": (r"PT_XLA|torch\.", "the counters are PyTorch/XLA's"),
    "graph_breaks._FIX": (r"torch\.|fullgraph", "the profile shows regions that torch.compile made"),
    "loss_scaling._FIX": (
        r"(?i)loss|gradient|backward|optimizer|fused|Adam",
        "the profile shows a scaler of losses",
    ),
    "attention_unfused._FALLEN_BACK": (r"scaled_dot_product_attention", "the profile shows the op"),
    "shards.BESIDE_SHARDS": (r".*", "the profile names FSDP or ZeRO, which train"),
    "shards.FSDP1": (r".*", "the same"),
    "shards.FSDP2": (r".*", "the same"),
    "others.BUFFERS": (r".*", "the profile names DistributedDataParallel, which trains"),
    "once.CAPTURES": (r"reduce-overhead", "says where captures come from"),
    "compiled_prologue._CURE": (r"torch\._dynamo|torch\.compile|TORCH_LOGS", "the profile shows compiled regions"),
    "graph_copies._CURE": (r"reduce-overhead|torch\.|CUDAGraph", "the profile shows graphs that are launched"),
    "data_parallel._FIX": (r"torch\.", "the profile names torch.nn.DataParallel"),
}
"""Remedy -> words that what its rule sees vouches for."""

NOTHING_LEFT = {
    "numbers.LOSS_SCALING": "only training scales a loss",
    "numbers.TF32": "only NVIDIA's tensor cores take TF32",
    "tf32_off._SETTING": "the rule speaks of NVIDIA's devices alone",
    "launching.OPTIMIZER": "only where the profile names an optimizer of PyTorch's",
    "launching.ZERO_GRAD": "the same",
    "misread._METER": "only accelerators have such meters",
    "devices._MISSING": "nothing to check is known for other devices",
}
"""Remedies of which nothing may be left, and why that is right."""


def modules() -> Iterator[ModuleType]:
    """Every module that may hold a remedy."""
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            yield importlib.import_module(found.name)


def is_remedies(value: object) -> bool:
    return isinstance(value, dict) and None in value and set(value) <= {*FRAMEWORKS, None}


def collected() -> dict[str, Remedies]:
    """Every remedy once, under the module that makes it."""
    found: dict[int, tuple[str, Remedies]] = {}
    for module in modules():
        path = Path(inspect.getfile(module))
        source = path.read_text()
        for name, value in vars(module).items():
            if is_remedies(value) and f"\n{name}: Remedies" in source:
                found[id(value)] = (f"{module.__name__.rpartition('.')[2]}.{name}", value)
    return dict(found.values())


REMEDIES = collected()


def workloads() -> Iterator[Workload]:
    """Every kind of program."""
    versions = [(1, 8), (1, 11), (1, 13), (2, 0), (2, 4), None]
    frameworks = [(PYTORCH, newest) for newest in versions]
    frameworks += [(JAX, None), (TORCH_XLA, None), (TENSORFLOW, (1, 14)), (TENSORFLOW, None), (None, None)]
    makes = [frozenset(makes) for makes in ((), ("NVIDIA",), ("AMD",), ("Intel",), ("Google",), ("CPU",))]
    for (framework, newest), purpose, made in itertools.product(frameworks, Purpose, makes):
        yield Workload(framework, purpose, newest=newest, vendors=made)


WORKLOADS = tuple(workloads())


def test_rules_notices_and_jobs_have_remedies_that_are_walked():
    holders = {name.partition(".")[0] for name in REMEDIES}
    assert {"launching", "host", "data", "numbers", "input_bound", "straggler", "memory", "steps"} <= holders
    assert len(REMEDIES) > 50
    assert set(EVIDENCE) <= set(REMEDIES)
    assert set(NOTHING_LEFT) <= set(REMEDIES)


@pytest.mark.parametrize("name", REMEDIES)
def test_no_program_is_told_what_does_not_fit_it(name):
    allowed, _ = EVIDENCE.get(name, ("", ""))
    wrong = {
        f"{workload.framework} {workload.newest} {workload.purpose} {set(workload.vendors)}: {misfit}"
        for workload in WORKLOADS
        for misfit in misfits(remedy(REMEDIES[name], workload), workload, allowed=allowed)
    }
    assert not wrong


@pytest.mark.parametrize("name", REMEDIES)
def test_every_program_is_told_something(name):
    if name not in NOTHING_LEFT:
        assert all(remedy(REMEDIES[name], workload).strip() for workload in WORKLOADS)


@pytest.mark.parametrize("name", REMEDIES)
def test_no_remedy_begins_in_the_middle_of_a_sentence(name):
    for workload in WORKLOADS:
        text = remedy(REMEDIES[name], workload)
        first = text.lstrip(" `(-")[:1]
        assert (
            not text
            or name in ("launching.OPTIMIZER", "launching.ZERO_GRAD", "efficiency._ALLOWED")
            or (text[0] == "`" or text[0] == "-" or first.isupper() or text.startswith("{"))
        ), text
        assert not text.rstrip().endswith(("(", ",")), text


@pytest.mark.parametrize("purpose", [Purpose.INFERENCE, Purpose.SERVING])
@pytest.mark.parametrize("newest", [(1, 8), (2, 0), None])
def test_no_alternative_to_an_op_that_waits_is_of_another_kind_of_program(purpose, newest):
    workload = Workload(PYTORCH, purpose, newest=newest)
    hints = {*sync_hints._OPS.values(), *(hint for _, hint in sync_hints._FRAMES)}
    for hint in hints:
        for line in hint.alternatives:
            given = line if isinstance(line, sync_hints.Advice) else sync_hints.Advice(line)
            if RemedyPart("", given.purposes, given.since).fits(workload):
                # An op that waits names its framework itself.
                assert misfits(given.text, workload, allowed=r"jnp\.|lax\.|jax\.") == [], given.text


# --- texts that are no remedies -------------------------------------------------------------------------------------

ANYWHERE = [
    Workload(PYTORCH, Purpose.INFERENCE, newest=(1, 8), vendors=frozenset({"AMD"})),
    Workload(PYTORCH, Purpose.SERVING, vendors=frozenset({"NVIDIA"})),
]
VOUCHED = {
    "data_parallel.py": r"(?i)torch|gradient|Data",
    "loss_scaling.py": r"(?i)loss|gradient",
    "anomaly_detection.py": r"(?i)loss|gradient|autograd|backward|Trainer",
    "launch_bound.py": r"Optimizer",
    "graph_breaks.py": r"(?i)optimizer|autograd|torch\.compile",
    "gradients.py": r"(?i)gradient|backward",
    "tf32_off.py": r"TF32",
    "xla.py": r"backward",
    "input_pipeline.py": r"training",
    "input_sections.py": r"training",
    "op_sections.py": r"backward",
    "memory_sections.py": r"optimizer|gradient",
    "steps.py": r"training",
    "trials.py": r"loss",
    "op_loops.py": r"backward",
    "uses.py": r"training",
}
"""Files whose rule sees the very thing, and the words it may then use without a condition."""


def plain_texts(path: Path) -> Iterator[str]:
    """String constants of a file that are neither a docstring nor part of a remedy, a pattern or a declaration: that
    speaks of the rule, and of no program."""
    tree = ast.parse(path.read_text())
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign):
            spared = "Remedies" in ast.unparse(node.annotation)
        elif isinstance(node, ast.Call):
            spared = ast.unparse(node.func) in ("RemedyPart", "Rule", "re.compile")
        else:
            spared = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        left_out |= {id(child) for child in ast.walk(node)} if spared else set()
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in left_out)
    return (node.value for node in texts if isinstance(node.value, str) and " " in node.value.strip())


@pytest.mark.parametrize("folder", ["diagnosis", "cluster", "report"])
def test_texts_without_conditions_fit_every_program(folder):
    import stepscope

    root = Path(stepscope.__file__).parent / folder
    wrong = []
    for path in sorted(root.rglob("*.py")):
        allowed = VOUCHED.get(path.name, "") if path.parent.name != "remedies" else ".*"
        for text in plain_texts(path):
            for workload in ANYWHERE:
                found = misfits(text, workload, allowed=allowed)
                # Which framework a text is of, its rule knows.
                wrong += [f"{path.name}: {one} in {text[:80]!r}" for one in found if "another framework" not in one]
    assert not wrong


def test_the_table_of_words_finds_what_it_is_for():
    served = Workload(PYTORCH, Purpose.SERVING, newest=(1, 13), vendors=frozenset({"AMD"}))
    text = "With `torch.compile(model)` gradients of the loss fit TF32; DataLoader(dataset)"
    assert len(misfits(text, served)) == 5
    assert misfits(text, Workload(PYTORCH)) == []
    assert all(any(word.wrong_for(workload) for workload in WORKLOADS) for word in MISFITS)
