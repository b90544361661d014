"""How many batches each worker of PyTorch's loaders makes ahead."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..hooking import replace
from .cure import Applying, Cure, Keywords


def _into(applying: Applying, _: Any, recorder: Any) -> None:
    def changed(loader: Any, given: dict[str, Any]) -> dict[str, Any] | str:
        if not given["num_workers"]:
            return "the loader has no workers"
        if given["prefetch_factor"] == applying.value:
            return f"its workers make {applying.value} batches ahead already"
        return {"prefetch_factor": applying.value}

    applying.constructor(import_module("torch.utils.data").DataLoader, changed, lambda *put: replace(recorder, *put))


PREFETCH = Cure(
    name="prefetch",
    title="batches that each worker of the loader makes ahead",
    answers=("input_bound",),
    sets="DataLoader(prefetch_factor=N) for every loader with workers",
    may_break="memory: every batch made ahead is held",
    undone="leave prefetch_factor out (2)",
    module="torch",
    into=_into,
    values=lambda _: (4, 8),
    along="workers",
    patch=lambda _: (Keywords((("prefetch_factor", "{value}"),)),),
)
