"""Called by the start-up module in every Python process of a job under ``stepscope run``."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from types import ModuleType
from typing import Any

from .imports import after_import
from .options import Options, from_environment
from .raised import told_without_framework
from .state import shared

FRAMEWORKS = (
    "torch", "jax", "tensorflow", "torch_xla", "keras", "transformers.generation.utils", "vllm.v1.worker.gpu_worker",
    "vllm.worker.worker_base", "sglang.srt.managers.scheduler",
)  # fmt: skip
"""What is waited for; ``hooks.INTO`` and ``experiment.into`` say what then happens."""


def boot() -> None:
    """Wait for a framework to be imported. Never raises."""
    try:
        options = from_environment()
        if options is not None:
            atexit.register(_ended, options)
            after_import({name: functools.partial(_into, options, name) for name in FRAMEWORKS})
    except Exception as error:  # noqa: BLE001  Between our code and the user's.
        print(f"stepscope: nothing is recorded in this process: {error}", file=sys.stderr)


def _ended(options: Options) -> None:
    """Say why a process ended that never came to a framework."""
    if shared.recorder is None:
        try:
            told_without_framework(options)
        except Exception as error:  # noqa: BLE001  The process ends, whatever the disk says.
            print(f"stepscope: why this process ended is not noted: {error}", file=sys.stderr)


def _into(options: Options, name: str, module: ModuleType) -> None:
    recorder: Any = None
    try:
        recorder = shared.recorder or _recorder(options)
        from . import cures, experiment
        from .hooks import INTO

        if name in INTO:
            INTO[name](recorder, module)
        experiment.into(recorder, name, module)
        cures.into(recorder, name, module)
        if recorder.trial is not None:
            recorder.trial.into(recorder, name, module)
    except Exception as error:  # noqa: BLE001  Between our code and the user's.
        if recorder is not None:
            recorder.manifest.failed(f"putting hooks into {name}", error)


def _recorder(options: Options) -> Any:
    """The recorder of this process, made when it is first needed: most processes of a job never train."""
    from .frameworks import make_backend
    from .recorder import Recorder

    shared.recorder = recorder = Recorder(options, make_backend)
    if options.trial or options.notes_writes:
        from .trial import Trial

        recorder.trial = Trial(options)
    atexit.register(recorder.finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=functools.partial(_forked, recorder))
    return recorder


def _forked(recorder: Any) -> None:
    recorder.forked()
    # Children of multiprocessing end without the handlers of atexit.
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, recorder.finish, exitpriority=0)
