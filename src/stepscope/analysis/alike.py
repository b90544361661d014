"""Layers that a model repeats: those whose places differ in their numbers alone, told as one.

``layers.0/attention`` and ``layers.1/attention`` are alike. Layers with nothing inside that stand in one layer beside
each other (two ``Linear`` of an MLP) do different work: the first of each parent is like the first of another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from stepscope.analysis.layers import Layer
from stepscope.record import record
from stepscope.regex import regex

NUMBER = regex(r"\d+(?=\)*$)")
"""The number that ends a name; transformations of JAX stand around it: ``jvp(layer_3)``."""
_SUMMED = ("forward_ns", "backward_ns", "kernels", "whole_ns")


@record
class Alike:
    """Layers that are alike, dearest first; one that is like no other alone."""

    path: str
    """Theirs, with ``*`` for the numbers in which they differ."""
    layers: tuple[Layer, ...]

    @property
    def whole(self) -> Layer:
        """All of them as one."""
        sums = (sum(getattr(layer, key) for layer in self.layers) for key in _SUMMED)
        return Layer(self.path, *sums)


def alike(layers: Sequence[Layer]) -> list[Alike]:
    """The layers, those that are alike together, dearest first."""
    beside = _beside(layers)
    by_shape: dict[tuple[object, ...], list[Layer]] = defaultdict(list)
    for layer in layers:
        stems = tuple(NUMBER.sub("", part) for part in layer.path.split("/"))
        by_shape[stems, beside.get(layer.path)].append(layer)
    made = [Alike(_path(of, beside), tuple(of)) for of in by_shape.values()]
    return sorted(made, key=lambda one: (-one.whole.own_ns, one.path))


def numberless(part: str) -> str:
    """A part of a layer's path with ``*`` for its number."""
    return NUMBER.sub("*", part)


def _beside(layers: Sequence[Layer]) -> dict[str, tuple[int, int]]:
    """Of layers with nothing inside, the place among those of the same name in the same parent; and how many those
    are."""
    outer = {layer.path.rpartition("/")[0] for layer in layers}
    of_parent: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    for layer in layers:
        parent, _, name = layer.path.rpartition("/")
        number = NUMBER.search(name)
        if layer.path not in outer and number:
            of_parent[parent, name[: number.start()]].append((int(number[0]), layer.path))
    return {
        path: (at, len(of)) for of in of_parent.values() for at, (_, path) in enumerate(sorted(of), 1) if len(of) > 1
    }


def _path(layers: Sequence[Layer], beside: dict[str, tuple[int, int]]) -> str:
    parts = [layer.path.split("/") for layer in layers]
    told = [of[0] if len(set(of)) == 1 else numberless(of[0]) for of in zip(*parts, strict=True)]
    place = beside.get(layers[0].path)
    if place and told[-1].endswith("*"):
        told[-1] += f" ({place[0]} of {place[1]})"
    return "/".join(told)
