"""Functions of TensorFlow compiled by XLA, and threads within one op."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..hooking import replace
from .cure import AfterImport, Applying, ByHand, Cure
from .places import calling_place


def _into_jit(applying: Applying, tensorflow: Any, recorder: Any) -> None:
    traces = tensorflow.function

    @functools.wraps(traces)
    def function(*functions: Any, **options: Any) -> Any:
        place = calling_place(sys._getframe(1))
        if options.get("jit_compile") is not None:
            applying.refused("jit_compile is set already")
        elif place is not None:  # What libraries make for themselves is theirs.
            options["jit_compile"] = True
            applying.applied(place)
        return traces(*functions, **options)

    replace(recorder, tensorflow, "function", function)


TF_JIT = Cure(
    name="tf-jit",
    title="functions of TensorFlow compiled by XLA",
    answers=("launch_bound", "memory_bound_chain", "too_little_work"),
    sets="tf.function(jit_compile=True) for every function of yours",
    may_break="ops that XLA does not know, strings among them; each new shape compiles anew; results within rounding",
    undone="leave jit_compile out",
    module="tensorflow",
    framework="TensorFlow",
    into=_into_jit,
    on_cpu=True,
    patch=lambda _: (ByHand("@tf.function(jit_compile=True)"),),
)


def _into_threads(applying: Applying, tensorflow: Any, _: Any) -> None:
    threading = tensorflow.config.threading
    if threading.get_intra_op_parallelism_threads() == applying.value:
        applying.refused(f"an op has {applying.value} threads already")
        return
    threading.set_intra_op_parallelism_threads(applying.value)
    applying.applied()


TF_THREADS = Cure(
    name="tf-threads",
    title="threads within one op of TensorFlow",
    answers=("host_contention",),
    sets="tf.config.threading.set_intra_op_parallelism_threads(N)",
    may_break="sums in another order: results within rounding",
    undone="leave the call out",
    module="tensorflow",
    framework="TensorFlow",
    into=_into_threads,
    on_cpu=True,
    values=lambda cores: sorted({1, cores}),
    patch=lambda _: (
        AfterImport("tensorflow", "tensorflow.config.threading.set_intra_op_parallelism_threads({value})"),
    ),
)
