"""What to do about what is done once: code loaded, graphs captured."""

from __future__ import annotations

from stepscope.analysis.workload import Feature
from stepscope.diagnosis.remedies.fitting import INFERS, PYTORCH, Remedies, RemedyPart

_EAGERLY = RemedyPart(
    "`CUDA_MODULE_LOADING=EAGER` loads all code as the program starts, which takes longer and more memory; left at "
    "LAZY, the default of CUDA 12.2 and later, each kernel is loaded when it is first launched.",
    vendors=("NVIDIA",),
)
_REQUESTS = RemedyPart(
    "Run a request of each shape before real ones come in, so that none of them waits for this.", INFERS, certain=True
)
CODE_LOADING: Remedies = {
    PYTORCH: (
        """\
Let some steps pass before you record:
    schedule=torch.profiler.schedule(wait=5, warmup=3, active=5)""",
        _REQUESTS,
        _EAGERLY,
    ),
    None: (
        "Let some steps pass before you record or measure.",
        _REQUESTS,
        _EAGERLY,
    ),
}

_LATER = (
    RemedyPart("Let the profiler wait a few steps longer.", unless=(Feature.OWN_RECORDING,)),
    RemedyPart("More steps are left alone with `--skip`, or `wait=` of a schedule.", given=(Feature.OWN_RECORDING,)),
)
LATER: Remedies = {None: _LATER}
ONCE_LOADED: Remedies = {None: (*_LATER, _REQUESTS)}
"""The same on one line, for a profile whose figures do not have it."""

CAPTURES: Remedies = {
    PYTORCH: """\
Let the first steps pass before you record: graphs are captured in the second and third call of a function compiled with
`mode="reduce-overhead"`, and as an engine starts. Each new shape is captured anew: pad or bucket inputs.""",
    None: "Capture all graphs before the steps that count. Each new shape is captured anew: pad or bucket inputs.",
}
