"""Callbacks after a module was imported for the first time, whoever imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]


class PostImport(importlib.abc.MetaPathFinder):
    """A meta path finder that finds nothing itself: it has the spec found by the others call back when executed.

    Loaders stay what they are (an attribute of the instance is replaced until the module has run), so that reading
    sources and resources of the module works as ever.
    """

    def __init__(self, callbacks: dict[str, Callback]) -> None:
        self._callbacks = callbacks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module waited for, with its loader prepared; None for every other."""
        if fullname not in self._callbacks:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: importlib.machinery.ModuleSpec | None = find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._prepare(spec.loader, fullname)
                return spec
        return None

    def _prepare(self, loader: Any, name: str) -> None:
        executes = getattr(loader, "exec_module", None)
        if executes is None:
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            executes(module)
            callback = self._callbacks.pop(name, None)
            if callback is not None:
                callback(module)

        try:
            loader.exec_module = exec_module
        except AttributeError:  # A loader of another kind: the module loads without us.
            return


def after_import(callbacks: dict[str, Callback]) -> None:
    """Call back once each of these modules was imported; at once for those that are."""
    for name in [name for name in callbacks if name in sys.modules]:
        callbacks.pop(name)(sys.modules[name])
    if callbacks:
        sys.meta_path.insert(0, PostImport(callbacks))
