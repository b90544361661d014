"""Batches of PyTorch's loaders in pinned memory, copied beside the computation."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..hooking import replace
from .cure import Applying, Cure, Edit, Keywords


def _into(applying: Applying, torch: Any, recorder: Any) -> None:
    if not torch.cuda.is_available():
        applying.refused("pinned memory speeds copies to a GPU, and PyTorch sees none here")
        return

    def changed(loader: Any, given: dict[str, Any]) -> dict[str, Any] | str:
        return "the loader pins its batches already" if given["pin_memory"] else {"pin_memory": True}

    applying.constructor(import_module("torch.utils.data").DataLoader, changed, lambda *put: replace(recorder, *put))
    _copies_beside(torch, recorder)


def _copies_beside(torch: Any, recorder: Any) -> None:
    """Copies of pinned tensors to a device no longer hold the host: it is safe, as kernels behind them wait."""
    copies = torch.Tensor.to

    def to(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.device.type == "cpu" and "non_blocking" not in named and self.is_pinned():
            named["non_blocking"] = True
        return copies(self, *arguments, **named)

    replace(recorder, torch.Tensor, "to", to)


def _patch(_: int | None) -> tuple[Edit, ...]:
    return (Keywords((("pin_memory", "True"),)),)


PINNED_MEMORY = Cure(
    name="pinned-memory",
    title="batches in pinned memory, copied beside the computation",
    answers=("exposed_copy", "input_bound", "repeated_copies"),
    promised=("exposed_copy",),
    sets="DataLoader(pin_memory=True) for every loader, and tensor.to(..., non_blocking=True) for its batches",
    may_break="memory of the host that is pinned cannot be swapped; a batch that is written to after its copy began",
    undone="leave pin_memory and non_blocking out",
    module="torch",
    into=_into,
    device_only=True,
    patch=_patch,
)
