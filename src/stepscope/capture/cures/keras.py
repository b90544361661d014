"""How Keras compiles a model, and in which precision."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from ..hooking import replace
from .cure import AfterImport, Applying, Cure, Keywords
from .places import calling_place


def _compiling(argument: str, value: Any, already: Callable[[Any], bool]) -> Any:
    """Have ``Model.compile`` called with another argument."""

    def into(applying: Applying, keras: Any, recorder: Any) -> None:
        wanted = applying.value if value is None else value
        compiles = keras.Model.compile
        signature = inspect.signature(compiles)
        if argument not in signature.parameters:
            applying.refused(f"Keras {keras.__version__} compiles without {argument}")
            return
        if argument == "steps_per_execution" and keras.backend.backend() == "torch":
            applying.refused("Keras runs batches one by one where PyTorch computes")
            return

        @functools.wraps(compiles)
        def compiling(model: Any, *arguments: Any, **named: Any) -> Any:
            given = signature.bind(model, *arguments, **named)
            if given.arguments.get("run_eagerly"):
                applying.refused("the model runs eagerly")
            elif already(given.arguments.get(argument)):
                applying.refused(f"{argument} is set already")
            else:
                given.arguments[argument] = wanted
                applying.applied(calling_place(sys._getframe(1)))
            return compiles(*given.args, **given.kwargs)

        replace(recorder, keras.Model, "compile", compiling)

    return into


STEPS_PER_EXECUTION = Cure(
    name="keras-steps-per-execution",
    title="several batches in one call of the compiled function",
    answers=("launch_bound", "python_overhead", "callback_time", "loop_sync", "between_steps", "too_little_work"),
    sets="model.compile(steps_per_execution=N)",
    may_break="callbacks see a batch in N; an epoch's last call may hold fewer",
    undone="leave steps_per_execution out",
    module="keras",
    framework="TensorFlow",
    into=_compiling("steps_per_execution", None, lambda given: given not in (None, 1)),
    values=lambda _: (4, 16),
    on_cpu=True,
    patch=lambda _: (Keywords((("steps_per_execution", "{value}"),)),),
)

JIT_COMPILE = Cure(
    name="keras-jit",
    title="Keras's step compiled by XLA",
    answers=("launch_bound", "memory_bound_chain", "too_little_work", "running_eagerly"),
    sets="model.compile(jit_compile=True)",
    may_break="ops that XLA does not know; each new shape compiles anew; results within rounding",
    undone="leave jit_compile out",
    module="keras",
    framework="TensorFlow",
    into=_compiling("jit_compile", True, lambda given: given is True),
    on_cpu=True,
    patch=lambda _: (Keywords((("jit_compile", "True"),)),),
)

_BFLOAT16 = 'keras.mixed_precision.set_global_policy("mixed_bfloat16")'


def _into_bfloat16(applying: Applying, keras: Any, _: Any) -> None:
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    applying.applied()


KERAS_BF16 = Cure(
    name="keras-bf16",
    title="Keras's layers in bfloat16, their weights in float32",
    answers=("tensor_cores_unused", "low_precision_share", "tf32_off", "memory_bound_chain"),
    sets=_BFLOAT16,
    may_break="results have three digits where they had seven: watch the loss over a longer run",
    undone="leave the call out",
    module="keras",
    framework="TensorFlow",
    into=_into_bfloat16,
    changes_numbers=True,
    patch=lambda _: (AfterImport("keras", _BFLOAT16),),
)
