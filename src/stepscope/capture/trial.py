"""What is noted of a job under ``stepscope try`` besides the times of its steps: its loss, memory and files."""

from __future__ import annotations

import functools
import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from time import perf_counter_ns
from typing import Any

from .hooking import replace
from .options import Options
from .own_code import is_own
from .phases import RecordingPhase

MOST_VALUES = 10_000
MOST_FILES = 64
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CACHES = tuple(map(os.path.expanduser, ("~/.cache", "~/.triton", "~/.nv")))
_PASSING = (tempfile.gettempdir(), "/dev", "/proc", "/sys", *_CACHES)
"""Files below these are nobody's results."""
_COMPUTED = ("ArrayImpl", "EagerTensor")
"""Arrays of JAX and TensorFlow that hold numbers: while code is traced there are none."""


class Trial:
    """Of one process."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._said: list[Any] = []
        """Losses of the step that runs, as the framework holds them."""
        self._values: list[Any] = []
        """One for each step that ended, None where it had none."""
        self._batches: list[int] = []
        """Of each step that ended since it is told that a step of ours may hold several of the job's."""
        self._batch: tuple[int, int] | None = None
        """The numbers of the first and last batch of the step that ended last; None where nothing tells them."""
        self._result: Any = None
        """What the last call of a compiled function gave back, which may not be computed yet."""
        self._is_timed: Callable[[], bool] = lambda: True
        self._files: dict[str, None] = {}
        self._here = os.path.join(os.getcwd(), "")
        self._ours = os.path.join(os.path.abspath(options.out), "")
        if options.notes_writes:
            sys.addaudithook(self._audit)

    def into(self, recorder: Any, module_name: str, module: Any) -> None:
        """A framework was imported."""
        if self._options.trial and self._edge not in recorder.on_edge:
            recorder.on_edge.append(self._edge)
            self._is_timed = lambda: recorder.phase is RecordingPhase.AFTER
        if module_name == "torch":
            self._into_torch(recorder, module)
        elif module_name == "keras":
            self._into_keras(recorder, module)
        elif module_name == "jax":
            from .jax_hooks import Announced

            self._into_compiled(recorder, Announced)
        elif module_name == "tensorflow":
            function: Any = import_module("tensorflow.python.eager.polymorphic_function.polymorphic_function").Function
            if self._options.trial and self._options.seed is not None:
                module.random.set_seed(self._options.seed)
            self._into_compiled(recorder, function)

    def facts(self, times_ns: Sequence[int]) -> dict[str, Any]:
        """For the manifest: what the timed steps took, the last one until all is computed, values of all steps, peak
        memory in bytes, files written."""
        ended = perf_counter_ns()
        self._wait()
        left_ns, torch = perf_counter_ns() - ended, _loaded("torch")
        on_device = torch is not None and torch.cuda.is_initialized()
        return {
            "times_ns": [*times_ns[:-1], *(time + left_ns for time in times_ns[-1:])],
            "values": [_number(value) for value in self._values],
            "batches": list(self._batches),
            "host_bytes": _peak_bytes(),
            "device_bytes": torch.cuda.max_memory_allocated() if on_device else None,
            "files": list(self._files),
        }

    # --- values -----------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Until what was asked for is computed: JAX and devices run behind, by dozens of steps, if nothing is read."""
        with suppress(RuntimeError, AttributeError):  # What was donated is gone; an older version may not know how.
            if self._result is not None and (jax := _loaded("jax")) is not None:
                jax.block_until_ready(self._result)
            if (torch := _loaded("torch")) is not None and torch.cuda.is_initialized():
                torch.cuda.synchronize()

    def _edge(self, _: int) -> None:
        if not self._is_timed():
            self._wait()
        name = self._options.watch_value
        said, self._said = self._said, []
        if len(self._values) < MOST_VALUES:
            if self._batch is not None:
                self._batches.append(1 + self._batch[1] - self._batch[0])
            self._values.append(said if name is None else [_variable(name, sys._getframe(1))])

    def _into_torch(self, recorder: Any, torch: Any) -> None:
        if self._options.notes_writes:
            self._note_saves(recorder, torch)
        if not self._options.trial:
            return
        _seed(self._options.seed, torch)
        backs = torch.Tensor.backward

        @functools.wraps(backs)
        def backward(tensor: Any, *arguments: Any, **named: Any) -> Any:
            if tensor.numel() == 1:
                self._said.append(tensor.detach())
            return backs(tensor, *arguments, **named)

        replace(recorder, torch.Tensor, "backward", backward)

    def _into_keras(self, recorder: Any, keras: Any) -> None:
        if not self._options.trial:
            return
        if self._options.seed is not None:
            keras.utils.set_random_seed(self._options.seed)
        lists: Any = keras.callbacks.CallbackList
        begins, ends = lists.on_train_batch_begin, lists.on_train_batch_end
        first = [0]

        @functools.wraps(begins)
        def beginning(lists_: Any, batch: Any, logs: Any = None) -> Any:
            first[0] = batch
            return begins(lists_, batch, logs)

        @functools.wraps(ends)
        def ending(lists_: Any, batch: Any, logs: Any = None) -> Any:
            self._batch = (first[0], batch)  # With steps_per_execution several end together.
            if isinstance(logs, dict) and "loss" in logs:
                self._said.append(logs["loss"])
            return ends(lists_, batch, logs)

        replace(recorder, lists, "on_train_batch_begin", beginning)
        replace(recorder, lists, "on_train_batch_end", ending)

    def _into_compiled(self, recorder: Any, owner: Any) -> None:
        """Numbers that compiled functions and gradients give back: of JAX and TensorFlow the loss is among them."""
        if not self._options.trial:
            return
        calls = owner.__call__

        @functools.wraps(calls)
        def calling(function: Any, *arguments: Any, **named: Any) -> Any:
            result = self._result = calls(function, *arguments, **named)
            self._said += _scalars(result)
            return result

        replace(recorder, owner, "__call__", calling)

    # --- files ------------------------------------------------------------------------------------------------------

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or len(arguments) < 3 or not isinstance(arguments[0], (str, bytes)):
            return
        path, mode, flags = arguments[:3]
        if (isinstance(mode, str) and any(letter in mode for letter in "wax+")) or (flags or 0) & _WRITES:
            self._wrote(os.fsdecode(path))

    def _wrote(self, path: str) -> None:
        path = os.path.abspath(path)
        passing = path.startswith(_PASSING) and not path.startswith(self._here)
        if passing or path.startswith(self._ours) or "__pycache__" in path or not is_own(path):
            return
        if len(self._files) < MOST_FILES:
            self._files[path] = None

    def _note_saves(self, recorder: Any, torch: Any) -> None:
        """PyTorch writes its archives by itself: Python's ``open`` is not called."""
        saves = torch.save

        @functools.wraps(saves)
        def save(what: Any, to: Any, *arguments: Any, **named: Any) -> Any:
            if isinstance(to, (str, os.PathLike)):
                self._wrote(os.fspath(to))
            return saves(what, to, *arguments, **named)

        replace(recorder, torch, "save", save)


def _loaded(name: str) -> Any:
    return sys.modules.get(name)


def _scalars(result: Any) -> list[Any]:
    """Of what a function gave back the single floating numbers, not looked for below the first level."""
    values = result.values() if isinstance(result, dict) else result if isinstance(result, (tuple, list)) else (result,)
    return [each for each in values if type(each).__name__ in _COMPUTED and _is_floating(each) and each.shape == ()]


def _is_floating(value: Any) -> bool:
    return "float" in str(value.dtype)


def _seed(seed: int | None, torch: Any) -> None:
    if seed is None:
        return
    random.seed(seed)
    torch.manual_seed(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _variable(name: str, frame: Any) -> Any:
    """The value of a variable in the innermost of the user's functions that has one of that name."""
    while frame is not None:
        if is_own(frame.f_code.co_filename) and name in frame.f_locals:
            value = frame.f_locals[name]
            return value.detach() if hasattr(value, "detach") else value
        frame = frame.f_back
    return None


def _number(values: Any) -> float | None:
    """The mean of what a step said; None where that is no number."""
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError, RuntimeError):
        return None
    return sum(numbers) / len(numbers) if numbers else None


def _peak_bytes() -> int | None:
    """The most memory that this process has held, by the system."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
