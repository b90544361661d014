"""What a program uses already, as the names in its profile show: advice must suggest neither that nor what does not go
with it.

Sources: torch/optim (``_foreach_*``, ``_fused_adam_`` …), aten/src/ATen/native/cuda/fused_*.cu, Apex and DeepSpeed
(``FusedAdam``, ``multi_tensor_adam``), names/compiled_code.py, names/calls.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from stepscope.names.calls import CallRole, call_role
from stepscope.names.compiled_code import is_compiled
from stepscope.regex import regex


class Feature(StrEnum):
    """Something that makes a program faster, or decides how it can be made so."""

    FOREACH = "foreach"
    """An optimizer that updates many parameters per op."""
    FUSED = "fused"
    """An optimizer that updates all parameters in one kernel."""
    COMPILED = "compiled"
    """Code made by ``torch.compile``."""
    GRAPHS = "graphs"
    """Graphs of kernels, launched as one."""
    SESSION = "session"
    """Graphs of TensorFlow 1, which sessions run (tensorflow/core/common_runtime/direct_session.cc)."""
    OPTIMIZER = "optimizer"
    """An optimizer of any kind: only where there is one can it be made faster."""
    TRAINER = "trainer"
    """The Trainer of transformers, which makes loaders and steps of its arguments."""
    LIGHTNING = "lightning"
    """Lightning's Trainer, which is handed loaders."""
    ACCELERATE = "accelerate"
    """Accelerate, to which loaders are handed; transformers' Trainer uses it too."""
    OWN_RECORDING = "own recording"
    """``stepscope run``, which recorded the profile: its user calls no profiler."""


# Norms, copies and zeroing of many tensors are not the optimizer's update.
_FOREACH = regex(r"aten::_foreach_(?!norm|copy|zero|max)")
_FUSED = regex(
    r"aten::_fused_(?:adam|sgd|adagrad)|Fused(?:Adam|Sgd|Adagrad)MathFunctor|multi_tensor_(?:distopt_)?(?:fused_)?adam"
    r"|Optimizer\.step#(?:Fused|DeepSpeedCPU)"
)


_OPTIMIZER = regex(rf"Optimizer\.step#|(?:^|/)torch/optim/(?!lr_scheduler|swa_utils)\w+\.py\(|{_FUSED.pattern}")
_LOOPS = (
    (Feature.TRAINER, regex(r"(?:^|/)transformers/trainer\.py\(\d+\): ")),
    (Feature.LIGHTNING, regex(r"(?:^|/)(?:pytorch_)?lightning/(?:pytorch/)?(?:loops|trainer)/")),
    (Feature.ACCELERATE, regex(r"(?:^|/)accelerate/(?:accelerator|data_loader|optimizer)\.py\(")),
)
"""Libraries that run the loop, by their Python frames."""


def in_use(names: Iterable[str]) -> frozenset[Feature]:
    """What some names of ops, kernels, ranges and calls give away.

    >>> sorted(in_use(["aten::_foreach_add_", "cudaGraphLaunch"])), in_use(["aten::_foreach_norm"])
    ([<Feature.FOREACH: 'foreach'>, <Feature.GRAPHS: 'graphs'>], frozenset())
    """
    features: set[Feature] = set()
    for name in names:
        text = name[:2_048]
        if text == "SessionRun":
            features.add(Feature.SESSION)
        if _OPTIMIZER.search(text):
            features.add(Feature.OPTIMIZER)
        features.update(loop for loop, pattern in _LOOPS if pattern.search(text.replace("\\", "/")))
        if _FOREACH.match(text):
            features.add(Feature.FOREACH)
        elif _FUSED.search(text):
            features.add(Feature.FUSED)
        elif is_compiled(text):
            features.add(Feature.COMPILED)
        elif call_role(text[:200]) is CallRole.GRAPH_LAUNCH:
            features.add(Feature.GRAPHS)
    return frozenset(features)
