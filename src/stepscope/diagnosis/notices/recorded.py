"""profile_host_unrecorded, profile_no_lines: which option would have recorded what the host did, and where."""

from __future__ import annotations

from stepscope.analysis.categories import HOST_CAUSES, Category
from stepscope.analysis.facts import Facts
from stepscope.analysis.summary import mean_parts
from stepscope.analysis.workload import Workload
from stepscope.diagnosis.evidence import has_python, of_what
from stepscope.diagnosis.finding import Notice
from stepscope.diagnosis.remedies import JAX, PYTORCH, TENSORFLOW, TORCH_XLA, Remedies, remedy
from stepscope.limits import BOTTLENECK_SHARE, HOST_SHARE
from stepscope.units import format_ns, format_share

PYTHON_ADVICE: Remedies = {
    PYTORCH: "`with_stack=True` records its Python code, with file and line.",
    # 1 is the default: a profile without Python was told to have none.
    JAX: "`options.python_tracer_level = 1` (`options = jax.profiler.ProfileOptions()`, given to `start_trace` as "
    "`profiler_options`) records its Python code, with file and line.",
    # Seen with 2.21: start records with the options' defaults, whatever it is given; the server heeds the client's.
    TENSORFLOW: "`stepscope capture` from `tf.profiler.experimental.server.start(9012)` records its Python code, with "
    "file and line; TensorFlow 2.21 ignores the options given to `start`.",
    # torch_xla.debug.profiler 2.9: neither start_trace nor trace has an option for Python.
    TORCH_XLA: "PyTorch/XLA's profiler records no Python code: put `with xp.Trace('name'):` around parts of the step.",
    None: "Mark the parts of the step with named ranges (NVTX, `record_function`, `log_event`).",
}

NO_LINES = "profile_no_lines"


def host_unrecorded(facts: Facts) -> Notice | None:
    """Part of the step is lost to a host of which nothing was recorded."""
    parts = mean_parts(facts)
    unknown, total = parts.get(Category.UNKNOWN_HOST, 0), sum(parts.values())
    if not total or unknown < HOST_SHARE * total or len(facts.trace.nodes):
        return None  # sessions of TensorFlow 1 have no option for it
    advice = remedy(PYTHON_ADVICE, Workload(None if has_python(facts) else _recorder(facts)))
    share = format_share(unknown / total)
    return Notice(
        "profile_host_unrecorded",
        f"What the host does in {format_ns(unknown)} {of_what(facts)} ({share}) was not recorded. {advice}",
    )


def no_lines(facts: Facts) -> Notice | None:
    """The host costs time, and the places of findings end at ops: nothing says which lines call them."""
    parts = mean_parts(facts)
    total = sum(parts.values())
    held = sum(parts.get(cause, 0) for cause in (*HOST_CAUSES, Category.SYNC))
    framework = None if len(facts.trace.nodes) else _recorder(facts)
    if framework is None or not total or held < BOTTLENECK_SHARE * total:
        return None
    if has_python(facts) or host_unrecorded(facts) is not None:
        return None
    advice = remedy(PYTHON_ADVICE, Workload(framework))
    return Notice(NO_LINES, f"No Python code was recorded, so findings name ops but not lines. {advice}")


def _recorder(facts: Facts) -> str | None:
    """The framework whose own profiler wrote the profile; Nsight Systems has no option for Python code of its own."""
    return None if facts.trace.info.format.startswith("Nsight") else facts.trace.info.framework
