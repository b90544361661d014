"""Worker processes for PyTorch's loaders."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..hooking import replace
from .cure import Applying, Cure, Edit, Keywords


def _values(cores: int) -> list[int]:
    """None, one per core, and powers of two in between: workers beyond the cores gain nothing where they compute."""
    return sorted({0, 1, cores, *(number for number in (2, 4, 8) if number <= cores)})


def _into(applying: Applying, _: Any, recorder: Any) -> None:
    data: Any = import_module("torch.utils.data")
    number = applying.value or 0

    def changed(loader: Any, given: dict[str, Any]) -> dict[str, Any] | str:
        if given["num_workers"] == number:
            return f"the loader has {number or 'no'} worker{'s' * (number != 1)} already"
        if number > 1 and isinstance(given["dataset"], data.IterableDataset):
            return "an IterableDataset gives its samples once for each worker, unless it divides them"
        if number:
            return {"num_workers": number, "persistent_workers": True}
        return {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None, "timeout": 0}

    applying.constructor(data.DataLoader, changed, lambda *put: replace(recorder, *put))


def _patch(value: int | None) -> tuple[Edit, ...]:
    if value:
        return (Keywords((("num_workers", "{value}"), ("persistent_workers", "True"))),)
    gone = ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout")
    return (Keywords((("num_workers", "0"), *((name, None) for name in gone))),)


WORKERS = Cure(
    name="workers",
    title="the loader's worker processes",
    answers=("input_bound", "worker_starts", "host_contention"),
    promised=("input_bound",),
    sets="DataLoader(num_workers=N, persistent_workers=True) for every loader",
    may_break="a dataset that cannot be pickled or shares state with the training process; random numbers drawn in the "
    "dataset become others",
    undone="leave num_workers as it was",
    module="torch",
    into=_into,
    values=_values,
    patch=_patch,
)
