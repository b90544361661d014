"""What every hook is made of: an attribute replaced until all is done, and who is told."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol


class GivingWay(Protocol):
    """Who records, and ends when the job starts a profiler of its own: a recorder or a session."""

    starts_now: bool
    on_done: list[Callable[[], None]]

    def make_way(self) -> None:
        """End now."""


class Counting(Protocol):
    """Who is told of what may be the edge of two steps."""

    on_done: list[Callable[[], None]]

    def call(self, source: int, key: tuple[str | None, Hashable]) -> None:
        """An optimizer stepped, or a model is called."""


def replace(told: GivingWay | Counting, owner: Any, name: str, ours: Any) -> None:
    """Put ours in the place of an attribute; taken out when all is done, unless somebody has replaced it since."""
    theirs = getattr(owner, name)
    setattr(owner, name, ours)

    def put_back() -> None:
        if getattr(owner, name) is ours:
            setattr(owner, name, theirs)

    told.on_done.append(put_back)


def take_out(hooks: list[Callable[[], None]], failed: Callable[[str, BaseException], None]) -> None:
    """Take hooks out, and leave the list empty; ``failed`` is told what went wrong."""
    taken, hooks[:] = list(hooks), []
    for each in taken:
        try:
            each()
        except Exception as error:  # noqa: BLE001  Between our code and the user's.
            failed("taking a hook out", error)
