"""Steps of PyTorch jobs that do not train: calls of the outermost module, tokens and calls of ``generate``, and what a
server runs its batches with.

Hooks common to all modules would slow every call down and change how torch.compile works, so only modules get one that
a look at the threads' stacks has found to be the outermost, or whose ``eval`` the job itself called.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from threading import get_ident
from types import FrameType
from typing import Any

from .hooking import Counting, replace
from .steps import CALL, REQUEST

MOST_HOOKS = 16
"""Models that are watched for repeated calls."""
MOST_OF_ONE = 8
"""A ``generate`` that calls its model more often than this is no step: its tokens are."""
UNTRAINED_S = 30.0
"""Once an optimizer was made, calls of models are validation or parts of a step, unless none steps for so long."""
EVERY_S, LATER_S, AT_FIRST_S = 0.01, 0.1, 30.0
"""How often stacks are looked at, at first and later. A look takes some 20 µs and a change of threads."""

SERVING = {
    "vllm.v1.worker.gpu_worker": ("Worker", "execute_model"),
    "vllm.worker.worker_base": ("LocalOrDistributedWorkerBase", "execute_model"),
    "sglang.srt.managers.scheduler": ("Scheduler", "run_batch"),
}
"""Module -> class and method that run one batch of requests."""


class _Hook:
    """What a model calls before it is called. Where the model is copied or saved, what does nothing takes its place,
    which every Python can load."""

    __slots__ = ("_called",)

    def __init__(self, called: Callable[[Any], None]) -> None:
        self._called = called

    def __call__(self, model: Any, *_: Any) -> None:
        self._called(model)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return getattr, (nullcontext(), "__exit__")


class ModelCalls:
    """Tells of the calls of models that may be steps."""

    def __init__(self, counting: Counting, torch: Any) -> None:
        self._counting = counting
        self._watched: weakref.WeakSet[Any] = weakref.WeakSet()
        # PyTorch 2.3 and later can tell.
        self._compiling = getattr(getattr(torch, "compiler", None), "is_compiling", lambda: False)
        self._script = torch.jit.ScriptModule
        self._began = time.monotonic()
        self._optimizer_made: float | None = None
        self._handles: list[Any] = []
        self._is_over = False
        self._within: dict[int, int] = {}
        """Thread within ``generate`` -> calls of models there."""
        self._by_token = False

    def optimizer_made(self) -> None:
        """The job trains, it seems."""
        if self._optimizer_made is None:
            self._optimizer_made = time.monotonic()

    @property
    def trains(self) -> bool:
        """Whether the job has made an optimizer, and not long ago."""
        return self._optimizer_made is not None and time.monotonic() - self._optimizer_made < UNTRAINED_S

    @property
    def seen(self) -> bool:
        """Whether models are watched: their calls may repeat yet."""
        return bool(self._handles) and time.monotonic() - self._began < UNTRAINED_S

    def watch(self, model: Any) -> None:
        """Tell of this model's calls from now on."""
        if self._is_over or model in self._watched or len(self._watched) >= MOST_HOOKS or not self._computes(model):
            return
        self._watched.add(model)
        self._handles.append(model.register_forward_pre_hook(_Hook(self._called)))

    def over(self) -> None:
        """Calls are asked for no more."""
        self._is_over = True
        taken, self._handles = self._handles, []
        for handle in taken:
            handle.remove()

    def _computes(self, model: Any) -> bool:
        """Whether it is a model: transforms of samples, losses and metrics are modules without parameters."""
        holds = next(model.parameters(), None) is not None or next(model.buffers(), None) is not None
        return holds or isinstance(model, self._script)

    def _called(self, model: Any) -> None:
        if self._compiling() or self.trains:
            return
        thread = get_ident()
        if thread in self._within:
            self._within[thread] += 1
            self._by_token = self._by_token or self._within[thread] > MOST_OF_ONE
            if not self._by_token:
                return
        self._counting.call(CALL, ("torch", id(model)))

    def generating(self, generates: Callable[..., Any]) -> Callable[..., Any]:
        """A ``generate`` that tells of its calls, or of its tokens where one makes many."""

        @functools.wraps(generates)
        def generate(*arguments: Any, **named: Any) -> Any:
            thread = get_ident()
            if thread in self._within:
                return generates(*arguments, **named)
            if not (self._by_token or self.trains):
                self._counting.call(CALL, ("torch", "generate"))
            self._within[thread] = 0
            try:
                return generates(*arguments, **named)
            finally:
                self._within.pop(thread, None)

        return generate


def watch_calls(counting: Counting, torch: Any) -> ModelCalls:
    """Tell of calls of the models that the job switches to evaluation, and learn of its optimizers."""
    calls = ModelCalls(counting, torch)
    module, optimizer = torch.nn.Module, torch.optim.Optimizer
    evaluate, makes = module.eval, optimizer.__init__

    @functools.wraps(evaluate)
    def watching(self: Any) -> Any:
        calls.watch(self)
        return evaluate(self)

    @functools.wraps(makes)
    def making(self: Any, *arguments: Any, **named: Any) -> None:
        calls.optimizer_made()
        makes(self, *arguments, **named)

    counting.on_done.append(calls.over)
    replace(counting, module, "eval", watching)
    replace(counting, optimizer, "__init__", making)
    return calls


def into_generation(counting: Counting, calls: ModelCalls, module: Any) -> None:
    """``generate`` of transformers."""
    mixin = module.GenerationMixin
    replace(counting, mixin, "generate", calls.generating(mixin.generate))


def into_serving(counting: Counting, module: Any) -> None:
    """What a server runs one batch of requests with."""
    owner, name = SERVING[module.__name__]
    runs = getattr(getattr(module, owner), name)
    key = ("torch", f"{owner}.{name}")

    @functools.wraps(runs)
    def running(*arguments: Any, **named: Any) -> Any:
        counting.call(REQUEST, key)
        return runs(*arguments, **named)

    replace(counting, getattr(module, owner), name, running)


class Outermost(threading.Thread):
    """Looks for the modules that are called by no other, for as long as ``looks`` says."""

    def __init__(self, torch: Any, tell: Callable[[Any], None], looks: Callable[[], bool]) -> None:
        super().__init__(name="stepscope-outermost", daemon=True)
        module = torch.nn.Module
        names = ("_wrapped_call_impl", "_call_impl")  # The first is PyTorch 2.0's and later.
        self._codes = {getattr(module, name).__code__ for name in names if hasattr(module, name)}
        self._tell, self._looks = tell, looks

    def run(self) -> None:
        """Look, and pause."""
        began = time.monotonic()
        while self._looks():
            time.sleep(EVERY_S if time.monotonic() - began < AT_FIRST_S else LATER_S)
            try:
                self.look()
            except Exception:  # noqa: BLE001  A module of another make: the next look may find another.
                continue

    def look(self) -> None:
        """Tell of the outermost module of each thread, where it is in one."""
        for thread, innermost in sys._current_frames().items():
            if thread == self.ident:
                continue
            outermost = self._outermost(innermost)
            module = None if outermost is None else outermost.f_locals.get("self")
            if module is not None:
                self._tell(module)

    def _outermost(self, frame: FrameType | None) -> FrameType | None:
        outermost = None
        while frame is not None:
            if frame.f_code in self._codes:
                outermost = frame
            frame = frame.f_back
        return outermost
