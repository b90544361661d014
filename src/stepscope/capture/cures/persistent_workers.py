"""Workers of PyTorch's loaders that stay from one pass over the data to the next."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..hooking import replace
from .cure import Applying, Cure, Keywords


def _into(applying: Applying, _: Any, recorder: Any) -> None:
    def changed(loader: Any, given: dict[str, Any]) -> dict[str, Any] | str:
        if not given["num_workers"]:
            return "the loader has no workers"
        if given["persistent_workers"]:
            return "the loader keeps its workers already"
        return {"persistent_workers": True}

    applying.constructor(import_module("torch.utils.data").DataLoader, changed, lambda *put: replace(recorder, *put))


PERSISTENT_WORKERS = Cure(
    name="persistent-workers",
    title="the loader's workers stay between epochs",
    answers=("worker_starts", "input_bound"),
    promised=("worker_starts",),
    sets="DataLoader(persistent_workers=True) for every loader with workers",
    may_break="a dataset that the training process changes between epochs: workers keep their copy",
    undone="leave persistent_workers out",
    module="torch",
    into=_into,
    patch=lambda _: (Keywords((("persistent_workers", "True"),)),),
)
