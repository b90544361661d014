"""Named ranges in whichever profiler is recording: a context manager and a decorator."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_modules = sys.modules


def _torch(torch: Any, name: str, metadata: dict[str, Any]) -> Any:
    text = ", ".join(f"{key}={value}" for key, value in metadata.items())
    return torch.autograd.profiler.record_function(name, text or None)


def _jax(jax: Any, name: str, metadata: dict[str, Any]) -> Any:
    profiler = jax.profiler
    return (profiler.StepTraceAnnotation if "step_num" in metadata else profiler.TraceAnnotation)(name, **metadata)


def _tensorflow(_: Any, name: str, metadata: dict[str, Any]) -> Any:
    return _modules["tensorflow.python.profiler.trace"].Trace(name, **_rooted(metadata))


def _torch_xla(_: Any, name: str, metadata: dict[str, Any]) -> Any:
    return _trace_me()(name, **_rooted(metadata))


def _trace_me() -> Any:
    """What Trace and StepTrace are made of: StepTrace synchronises where the job did not ask for it, and Trace opens a
    scope of op names, within which the job's own sync fails."""
    return _modules["torch_xla.debug.profiler"].Trace.__base__


def _rooted(metadata: dict[str, Any]) -> dict[str, Any]:
    """A range with a step number is a step."""
    return {"_r": 1, **metadata} if "step_num" in metadata else metadata


_Enabled = Callable[[], bool]
_FRAMEWORKS: dict[str, tuple[Callable[[Any], _Enabled], Callable[[Any, str, dict[str, Any]], Any]]] = {
    "torch": (lambda torch: torch.autograd._profiler_enabled, _torch),
    "jax": (lambda jax: jax.profiler.TraceAnnotation.is_enabled, _jax),
    "tensorflow": (lambda _: _modules["tensorflow.python.profiler.trace"].enabled, _tensorflow),
    "torch_xla": (lambda _: functools.partial(_trace_me().is_enabled, 1), _torch_xla),  # 1: what is always recorded.
}
"""Framework -> what says whether its profiler records in this process, and what opens a range."""


class _Imported:
    """The frameworks that are imported, with what says whether each records: looked up again once more modules are
    there, since that costs more than asking them."""

    __slots__ = ("enabled", "modules")

    def __init__(self) -> None:
        self.modules = 0
        """How many there were."""
        self.enabled: tuple[tuple[str, _Enabled], ...] = ()

    def look(self) -> None:
        """Look them up; those that are imported only by half lack names, and are tried again the next time."""
        modules, enabled, complete = len(_modules), [], True
        for name in [name for name in _FRAMEWORKS if name in _modules]:
            try:
                enabled.append((name, _FRAMEWORKS[name][0](_modules[name])))
            except Exception:  # noqa: BLE001  Whatever such a module raises.
                complete = False
        self.enabled, self.modules = tuple(enabled), modules if complete else 0


_imported = _Imported()


class annotate:
    """A named range: ``with stepscope.annotate("augment", size=32):`` or ``@stepscope.annotate("augment")``.

    Becomes ``record_function`` in PyTorch, ``TraceAnnotation`` in JAX, ``Trace`` in TensorFlow and PyTorch/XLA, in each
    that is imported and recording; with ``step_num`` it is a step there. Costs next to nothing while nothing records,
    and imports nothing. Metadata are shown with the range; in PyTorch as text.
    """

    __slots__ = ("_metadata", "_name", "_open")

    def __init__(self, name: str, **metadata: Any) -> None:
        self._name = name
        self._metadata = metadata
        self._open: list[Any] | None = None

    def __enter__(self) -> annotate:
        """Open the range."""
        if len(_modules) != _imported.modules:
            _imported.look()
        for module, enabled in _imported.enabled:
            try:
                if enabled():
                    opened = _FRAMEWORKS[module][1](_modules[module], self._name, self._metadata)
                    opened.__enter__()
                    self._open = [*(self._open or ()), opened]
            except Exception:  # noqa: BLE001  An annotation is never worth the job.
                continue
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._open is not None:
            opened, self._open = self._open, None
            for each in reversed(opened):
                each.__exit__(kind, error, trace)

    def __call__(self, function: _Function) -> _Function:
        """The function within a range of this name; a coroutine's range lasts until it returns."""
        name, metadata = self._name, self._metadata
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*arguments: Any, **named: Any) -> Any:
                with annotate(name, **metadata):
                    return await function(*arguments, **named)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            with annotate(name, **metadata):
                return function(*arguments, **named)

        return called  # type: ignore[return-value]
