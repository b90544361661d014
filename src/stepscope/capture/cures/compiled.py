"""Models compiled by ``torch.compile``."""

from __future__ import annotations

from typing import Any

from .cure import After, Applying, Cure
from .models import Made, before_first_call


def _with(**options: Any) -> Any:
    def into(applying: Applying, torch: Any, recorder: Any) -> None:
        if not hasattr(torch.nn.Module, "compile"):
            applying.refused(f"PyTorch {torch.__version__} cannot compile a module in place; 2.2 and later can")
            return
        made = Made(torch, recorder)

        def compiles(model: Any, _: Any) -> None:
            if isinstance(model, torch.jit.ScriptModule) or getattr(model, "_compiled_call_impl", None) is not None:
                applying.refused("the model is compiled already")
                return
            model.compile(**options)
            applying.applied(made.place(model))

        before_first_call(torch, recorder, compiles)

    return into


_RULES = ("launch_bound", "python_overhead", "memory_bound_chain", "too_little_work", "hot_python", "running_eagerly")
_MAY_BREAK = (
    "code that depends on values or on side effects; each new shape compiles anew, which takes seconds to minutes; "
    "results within rounding"
)

COMPILE = Cure(
    name="compile",
    title="the model compiled",
    answers=_RULES,
    sets="model.compile() for every model",
    may_break=_MAY_BREAK,
    undone="leave the call of compile() out",
    module="torch",
    into=_with(),
    on_cpu=True,
    patch=lambda _: (After("{target}.compile()"),),
)

CUDA_GRAPHS = Cure(
    name="cuda-graphs",
    title="the model compiled into CUDA graphs",
    answers=_RULES[:1],
    promised=_RULES[:1],
    sets='model.compile(mode="reduce-overhead") for every model',
    may_break=_MAY_BREAK + "; memory of a graph stays taken, and its outputs are overwritten by the next call",
    undone="leave the call of compile() out",
    module="torch",
    into=_with(mode="reduce-overhead"),
    device_only=True,
    patch=lambda _: (After('{target}.compile(mode="reduce-overhead")'),),
)
