"""Threads within one op of PyTorch."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..hooking import replace
from .cure import AfterImport, Applying, Cure, Edit, First
from .places import calling_place


def _values(cores: int) -> list[int]:
    return sorted({1, max(1, cores // 2), cores})


def _into(applying: Applying, torch: Any, recorder: Any) -> None:
    sets, wanted = torch.set_num_threads, applying.value
    if torch.get_num_threads() != wanted:
        sets(wanted)
        applying.applied()
    else:
        applying.refused(f"PyTorch has {wanted} thread{'s' * (wanted != 1)} already")

    @functools.wraps(sets)
    def setting(number: int) -> None:
        if number != wanted:
            applying.applied(calling_place(sys._getframe(1)))

    replace(recorder, torch, "set_num_threads", setting)


def _patch(_: int | None) -> tuple[Edit, ...]:
    return First("{value}"), AfterImport("torch", "torch.set_num_threads({value})")


THREADS = Cure(
    name="threads",
    title="threads within one op",
    answers=("host_contention",),
    sets="torch.set_num_threads(N), whatever the job sets itself",
    may_break="sums in another order: results within rounding",
    undone="leave the call out",
    module="torch",
    into=_into,
    on_cpu=True,
    values=_values,
    patch=_patch,
)
