"""Arguments of compiled JAX functions whose memory the results take over."""

from __future__ import annotations

import functools
import sys
import types
from importlib import import_module
from typing import Any

from ..hooking import replace
from .cure import Applying, Cure, Keywords
from .places import Place, calling_place

_SAID = ("donate_argnums", "donate_argnames", "static_argnums", "static_argnames")
"""Who says one of these has looked after it, or counts arguments otherwise."""


class _Donating:
    """A compiled function that gives its first result as ever, and sees by it which arguments are updated: those that
    one of the results equals in shape. The buffers of these are given from then on."""

    def __init__(self, plain: Any, again: Any, applying: Applying, place: Place) -> None:
        self._plain, self._again, self._applying, self._place = plain, again, applying, place
        self._donating: Any = None
        self._is_known = False
        functools.update_wrapper(self, plain)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._donating is not None and not named:
            self._plain.told()  # Steps are those of before, whichever of the two runs.
            return self._donating(*arguments)
        result = self._plain(*arguments, **named)
        if not self._is_known and not named and _is_clean():
            self._is_known = True
            given = _updated(arguments, result)
            if given:
                donating = self._again(donate_argnums=given)
                self._donating = getattr(donating, "_made", donating)
                self._applying.applied({**self._place, "given": _written(given)})
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)


def _written(given: tuple[int, ...]) -> str:
    return str(given[0]) if len(given) == 1 else str(given)


def _is_clean() -> bool:
    core: Any = import_module("jax._src.core")
    return bool(getattr(core, "trace_state_clean", lambda: True)())


def _updated(arguments: tuple[Any, ...], result: Any) -> tuple[int, ...]:
    """Numbers of the arguments that come back with other values: of the same structure, shapes and types."""
    tree: Any = import_module("jax.tree_util")

    def form(value: Any) -> Any:
        leaves, structure = tree.tree_flatten(value)
        if not leaves or not all(hasattr(leaf, "dtype") and hasattr(leaf, "is_deleted") for leaf in leaves):
            return None
        return str(structure), tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)

    results = [form(each) for each in (result if isinstance(result, tuple) else (result,))]
    given = []
    for number, argument in enumerate(arguments):
        mine = form(argument)
        if mine is not None and mine in results:
            results.remove(mine)
            given.append(number)
    return tuple(given)


def _into(applying: Applying, jax: Any, recorder: Any) -> None:
    applying.refused("no compiled function gives back one of its arguments with new values, or all donate already")
    compiles = jax.jit

    @functools.wraps(compiles)
    def compiling(*functions: Any, **options: Any) -> Any:
        if any(options.get(name) is not None for name in _SAID):
            return compiles(*functions, **options)
        place = calling_place(sys._getframe(1))
        if place is None:  # What libraries make for themselves is theirs.
            return compiles(*functions, **options)

        def made(function: Any) -> Any:
            return _Donating(
                compiles(function, **options), functools.partial(compiles, function, **options), applying, place
            )

        return made(*functions) if functions else made

    replace(recorder, jax, "jit", compiling)


DONATION = Cure(
    name="jax-donation",
    title="memory of old parameters taken over by the new ones",
    answers=("memory_bound_chain", "allocator_retries", "allocator_bound", "exposed_copy"),
    sets="jax.jit(donate_argnums=...) for every argument that comes back with new values",
    may_break="code that reads a donated argument after the call: JAX then says that it was deleted",
    undone="leave donate_argnums out",
    module="jax",
    framework="JAX",
    into=_into,
    on_cpu=True,
    patch=lambda _: (Keywords((("donate_argnums", "{given}"),)),),
)
