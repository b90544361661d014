"""How steps are noticed in each framework: hooks put in after its import, and taken out when the recording is over."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .recorder import Recorder
from .steps import CALL, OPTIMIZER

MOST_HOOKS = 16
"""Models that are watched for repeated calls."""


def into_torch(recorder: Recorder, torch: Any) -> None:
    """Optimizer steps; and calls of models that the job has switched to evaluation, for inference.

    Hooks common to all modules would slow every call down and change how torch.compile works, so only modules whose
    ``eval`` the job itself called get one.
    """
    from .torch_backend import sessions

    optimizers = _imported("torch.optim.optimizer")
    hook = optimizers.register_optimizer_step_post_hook(lambda optimizer, *_: recorder.call(OPTIMIZER, id(optimizer)))
    recorder.on_done.append(hook.remove)
    sessions.follow(torch.autograd.profiler.profile)
    sessions.make_way = recorder.make_way
    _watch_evaluation(recorder, torch)


def _watch_evaluation(recorder: Recorder, torch: Any) -> None:
    module = torch.nn.Module
    evaluate = module.eval
    watched: weakref.WeakSet[Any] = weakref.WeakSet()

    def called(model: Any, *_: Any) -> None:
        if not torch.compiler.is_compiling():
            recorder.call(CALL, id(model))

    @functools.wraps(evaluate)
    def watching(self: Any) -> Any:
        if self not in watched and len(watched) < MOST_HOOKS:
            watched.add(self)
            recorder.on_done.append(self.register_forward_hook(called).remove)
        return evaluate(self)

    module.eval = watching
    recorder.on_done.append(functools.partial(_put_back, module, "eval", watching, evaluate))


def _put_back(owner: Any, name: str, ours: Any, theirs: Any) -> None:
    """Undo a replacement, unless somebody has replaced ours since."""
    if getattr(owner, name) is ours:
        setattr(owner, name, theirs)


def _imported(name: str) -> Any:
    __import__(name)
    return sys.modules[name]


INTO: dict[str, Callable[[Recorder, ModuleType], None]] = {"torch": into_torch}
"""Module -> what puts hooks into it once it was imported."""
