"""Pipelines of ``tf.data`` that run ahead of the step, and in parallel."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from importlib import import_module
from typing import Any

from ..hooking import replace
from .cure import After, Applying, Cure, Keywords
from .places import Place, nearest_place

_AUTOTUNE = -1
"""``tf.data.AUTOTUNE``."""


def _dataset() -> Any:
    return import_module("tensorflow.python.data.ops.dataset_ops").DatasetV2


def _into_prefetch(applying: Applying, _: Any, recorder: Any) -> None:
    dataset = _dataset()
    makes, iterates = dataset.__init__, dataset.__iter__
    places: weakref.WeakKeyDictionary[Any, Place | None] = weakref.WeakKeyDictionary()

    @functools.wraps(makes)
    def making(made: Any, *arguments: Any, **named: Any) -> None:
        makes(made, *arguments, **named)
        places[made] = nearest_place(sys._getframe(1))

    @functools.wraps(iterates)
    def iterating(read: Any) -> Any:
        if "Prefetch" in type(read).__name__:
            applying.refused("the dataset prefetches already")
            return iterates(read)
        ahead = read.prefetch(_AUTOTUNE)
        applying.applied(places.get(read))
        return iterates(ahead)

    replace(recorder, dataset, "__init__", making)
    replace(recorder, dataset, "__iter__", iterating)


PREFETCH_AHEAD = Cure(
    name="tf-prefetch",
    title="batches of tf.data made while the step computes",
    answers=("input_bound",),
    sets="dataset.prefetch(tf.data.AUTOTUNE) for every dataset that is iterated",
    may_break="memory: batches made ahead are held",
    undone="leave prefetch out",
    module="tensorflow",
    framework="TensorFlow",
    into=_into_prefetch,
    patch=lambda _: (After("{target} = {target}.prefetch(tf.data.AUTOTUNE)", what="dataset", imported="tf"),),
)


def _into_map(applying: Applying, _: Any, recorder: Any) -> None:
    dataset = _dataset()
    maps = dataset.map
    signature = inspect.signature(maps)

    @functools.wraps(maps)
    def mapping(mapped: Any, *arguments: Any, **named: Any) -> Any:
        given = signature.bind(mapped, *arguments, **named)
        if given.arguments.get("num_parallel_calls") is not None:
            applying.refused("map runs in parallel already")
            return maps(mapped, *arguments, **named)
        given.arguments["num_parallel_calls"] = _AUTOTUNE
        applying.applied(nearest_place(sys._getframe(1)))
        return maps(*given.args, **given.kwargs)

    replace(recorder, dataset, "map", mapping)


PARALLEL_MAP = Cure(
    name="tf-parallel-map",
    title="functions of tf.data mapped by several threads",
    answers=("input_bound",),
    sets="dataset.map(..., num_parallel_calls=tf.data.AUTOTUNE)",
    may_break="functions that keep something outside; Python functions (py_function) still run one at a time",
    undone="leave num_parallel_calls out",
    module="tensorflow",
    framework="TensorFlow",
    into=_into_map,
    patch=lambda _: (Keywords((("num_parallel_calls", "tf.data.AUTOTUNE"),)),),
)
