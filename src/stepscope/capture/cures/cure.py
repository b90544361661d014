"""What a cure is: something that a process of a job sets differently for itself, so that no file need be edited.

A cure is one file of this folder, which says when it is tried, what it sets, what it may break, how it is undone and
how the same is written into a script. Standard library only: the job imports it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

from .places import Place, calling_place

MOST_PLACES = 16
ANY = "any framework"


@dataclass(frozen=True)
class Keywords:
    """Arguments given to the call at the place where the cure was applied: name and expression, None takes it out."""

    arguments: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class First:
    """The first argument of the call at that place, replaced."""

    expression: str


@dataclass(frozen=True)
class After:
    """A statement behind the one at that place; ``{target}`` stands for the name which that one assigns."""

    code: str
    what: str = "model"
    """What that statement makes, in a word that may stand for its name."""
    imported: str | None = None
    """A name that the script must have, for it is in the code."""


@dataclass(frozen=True)
class Decorator:
    """A decorator of the function that is defined at that place."""

    code: str
    imported: str | None = None
    """A name that the script must have, for it is in the code."""


@dataclass(frozen=True)
class Around:
    """A ``with`` around the statement at that place."""

    code: str


@dataclass(frozen=True)
class AfterImport:
    """A statement behind the first import of a module in the script."""

    module: str
    code: str


@dataclass(frozen=True)
class ByHand:
    """Lines that nobody but the author can put in their place."""

    text: str


@dataclass(frozen=True)
class Shell:
    """A variable of the environment, set where the job is started."""

    variable: str
    value: str


Edit = Union[Keywords, First, After, Decorator, Around, AfterImport, ByHand, Shell]  # noqa: UP007  Jobs may run Python 3.9.
"""``{value}`` in any of their texts stands for the cure's number, ``{given}`` for what a place says of itself."""


class Applying:
    """What becomes of one cure in this process; the manifest holds it."""

    def __init__(self, facts: dict[str, Any], value: int | None, on_edge: list[Callable[[int], None]]) -> None:
        self.value = value
        self.on_edge = on_edge
        """Called with the number of each step that ended."""
        self._facts = facts
        self._facts.update(applied=0, places=[], refused=None)

    def applied(self, place: Place | None = None) -> None:
        """It was put into effect, on behalf of a place in the user's code where there is one."""
        self._facts["applied"] += 1
        places: list[Place] = self._facts["places"]
        if place is not None and place not in places and len(places) < MOST_PLACES:
            places.append(place)

    def refused(self, why: str) -> None:
        """It cannot be tried here, or would change nothing: words that end a sentence."""
        if self._facts["refused"] is None:
            self._facts["refused"] = why

    def constructor(
        self, owner: Any, changed: Callable[[Any, dict[str, Any]], dict[str, Any] | str], replaces: Callable[..., None]
    ) -> None:
        """Have objects of a class made with other arguments.

        ``changed`` gets the object and the arguments it is made with (defaults too), and returns those that become
        others, or why none do. Where the class does not take them the object is made as the job asked for.
        """
        makes = owner.__init__
        signature = inspect.signature(makes)
        inside: list[int] = []

        @functools.wraps(makes)
        def making(self_: Any, *arguments: Any, **named: Any) -> None:
            if inside:  # A class that makes itself by its base's constructor.
                makes(self_, *arguments, **named)
                return
            asked, all_of_it = signature.bind(self_, *arguments, **named), signature.bind(self_, *arguments, **named)
            all_of_it.apply_defaults()
            changes = changed(self_, dict(all_of_it.arguments))
            if isinstance(changes, str):
                self.refused(changes)
                makes(self_, *arguments, **named)
                return
            asked.arguments.update(changes)
            inside.append(1)
            try:
                makes(*asked.args, **asked.kwargs)
            except (TypeError, ValueError, RuntimeError) as error:
                self.refused(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}")
                makes(self_, *arguments, **named)
            else:
                self.applied(calling_place(sys._getframe(1)))
            finally:
                inside.pop()

        replaces(owner, "__init__", making)


@dataclass(frozen=True)
class Cure:
    """Something to try. Texts are for people, and end without a full stop."""

    name: str
    """Of ``--cure``, and of this cure's file."""
    title: str
    answers: tuple[str, ...]
    """Rules whose findings call for it."""
    sets: str
    may_break: str
    undone: str
    module: str | None
    """It is put in once this was imported, ``ANY``: a framework; None: variables of the environment are all of it."""
    framework: str | None = "PyTorch"
    """Whose jobs it is for, as reports name it; None: of every framework."""
    into: Callable[[Applying, Any, Any], None] | None = None
    """Gets the module and the recorder, whose hooks are taken out when all is over."""
    values: Callable[[int], Sequence[int]] | None = None
    """The numbers that are tried, of a cure that takes one, where so many cores are there."""
    along: str | None = None
    """A cure with whose best number the numbers of this one are tried again: alone it may have nothing to change."""
    environment: Callable[[int | None], dict[str, str]] | None = None
    changes_numbers: bool = False
    """Whether it computes with other precision or in other batches, so that results differ by its nature."""
    promised: tuple[str, ...] = ()
    """Those of these rules whose prediction is that of this cure."""
    on_cpu: bool = False
    """Whether it is tried of jobs without a device whatever was found: a profile of a CPU does not call for it."""
    device_only: bool = False
    """Whether it is for GPUs."""
    patch: Callable[[int | None], tuple[Edit, ...]] = lambda _: ()

    def spec(self, value: int | None) -> str:
        """``workers=2``."""
        return self.name if value is None else f"{self.name}={value}"
