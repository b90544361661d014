"""Run by Python as it starts, in every process of a job under ``stepscope run``, which puts this folder on PYTHONPATH.

Loads the package around it under a name of its own, so that no stepscope need be installed here, then lets the
``sitecustomize`` that this one shadows run as it would have.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys


def _load() -> None:
    name, folder = "_stepscope_capture", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    importlib.import_module(f"{name}.boot").boot()


def _start() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    try:
        _load()
    except Exception as error:  # noqa: BLE001  The job runs as it would without us.
        print(f"stepscope: nothing is recorded in this process: {error}", file=sys.stderr)


def _chain() -> None:
    """Import the module of our name that would have been found without us."""
    ours = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        # The import system expects the name that it is importing.
        sys.modules.setdefault("sitecustomize", ours)


_start()
_chain()
