"""The backend for what a process has imported."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .backend import Backend, Declined
from .options import Options
from .session_backend import SessionBackend
from .torch_backend import TorchBackend
from .xplane_backend import JaxBackend, TensorflowBackend, TorchXlaBackend

BACKENDS: dict[str, Callable[[Options], Backend]] = {
    "torch_xla": TorchXlaBackend,
    "torch": TorchBackend,
    "jax": JaxBackend,
    "tensorflow": TensorflowBackend,
    "tensorflow_session": SessionBackend,
}
"""Framework -> backend. Where no step says which, the first that is imported: jobs import others for their helpers."""


def make_backend(options: Options, framework: str | None = None) -> Backend:
    """A backend for one window. Raises Declined where no framework is imported."""
    name = framework or next((name for name in BACKENDS if name in sys.modules), None)
    if name is None:
        raise Declined("no framework is imported that can be recorded: torch, jax, tensorflow or torch_xla")
    if name not in BACKENDS:
        raise Declined(f"there is no framework {name!r} to record: {', '.join(BACKENDS)}")
    if framework is None and name == "tensorflow" and not _eager():
        name = "tensorflow_session"
    return BACKENDS[name](options)


def _eager() -> bool:
    """Whether TensorFlow computes as it is called; without, ops run in sessions."""
    context = sys.modules.get("tensorflow.python.eager.context")
    return context is None or bool(context.executing_eagerly())
