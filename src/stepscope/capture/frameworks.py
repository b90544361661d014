"""The backend for what a process has imported."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .backend import Backend, Declined
from .options import Options
from .torch_backend import TorchBackend

BACKENDS: tuple[tuple[str, Callable[[Options], Backend]], ...] = (("torch", TorchBackend),)
"""Module and backend; the first that is imported is taken."""


def make_backend(options: Options, framework: str | None = None) -> Backend:
    """A backend for one window. Raises Declined where no framework is imported."""
    for name, make in BACKENDS:
        if name == framework or (framework is None and name in sys.modules):
            return make(options)
    names = ", ".join(name for name, _ in BACKENDS)
    raise Declined(f"{framework or 'no framework'} is imported that can be recorded; those are {names}")
