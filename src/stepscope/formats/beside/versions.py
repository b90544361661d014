"""What the manifest of ``stepscope run`` beside a profile knows of the framework and the profile does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stepscope.names.versions import parsed
from stepscope.trace.trace import Trace

_FRAMEWORKS = {
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "tensorflow_session": "TensorFlow",
    "torch_xla": "PyTorch/XLA",
}
"""What backends of ``capture`` call themselves."""


def of_version(trace: Trace, manifest: Mapping[str, Any] | None) -> Trace:
    """The trace with the exact version of its framework, where a manifest gives one."""
    if manifest is None or _FRAMEWORKS.get(str(manifest.get("framework"))) != trace.info.framework:
        return trace
    version = parsed(manifest.get("framework_version"))
    if version is None or trace.info.framework is None:
        return trace
    return replace(trace, info=replace(trace.info, framework_oldest=version, framework_newest=version))
