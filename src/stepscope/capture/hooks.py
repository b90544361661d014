"""How steps are noticed in each framework: hooks put in after its import, and taken out when the recording is over."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from .inference import SERVING, into_generation, into_serving
from .jax_hooks import into_jax
from .own_profilers import make_way
from .recorder import Recorder
from .tensorflow_hooks import into_keras, into_tensorflow
from .torch_hooks import into_torch


def into_torch_xla(recorder: Recorder, _: Any) -> None:
    """Steps are PyTorch's optimizer steps; only the job's own profiler must be made way for."""
    make_way(recorder, "torch_xla")


def into_transformers(recorder: Recorder, module: Any) -> None:
    """Calls of ``generate``."""
    if recorder.calls is not None:
        into_generation(recorder, recorder.calls, module)


INTO: dict[str, Callable[[Recorder, ModuleType], None]] = {
    "torch": into_torch,
    "transformers.generation.utils": into_transformers,
    **dict.fromkeys(SERVING, into_serving),
    "jax": into_jax,
    "tensorflow": into_tensorflow,
    "torch_xla": into_torch_xla,
    "keras": into_keras,
}
"""Module -> what puts hooks into it once it was imported."""
