"""Threads of PyTorch: within one op, and for ops beside each other."""

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


def _into_interop(applying: Applying, torch: Any, _: Any) -> None:
    if torch.get_num_interop_threads() == applying.value:
        applying.refused(f"PyTorch has {applying.value} for ops beside each other already")
        return
    try:
        torch.set_num_interop_threads(applying.value)
    except RuntimeError:
        applying.refused("PyTorch has begun to run ops beside each other")
    else:
        applying.applied()


INTEROP_THREADS = Cure(
    name="interop-threads",
    title="threads for ops beside each other",
    answers=("host_contention",),
    sets="torch.set_num_interop_threads(N)",
    may_break="a job that sets them itself: PyTorch lets that be done once",
    undone="leave the call out",
    module="torch",
    into=_into_interop,
    values=lambda cores: sorted({1, cores}),
    patch=lambda _: (AfterImport("torch", "torch.set_num_interop_threads({value})"),),
)
