"""Which files are packages', as the manifest says: JAX's profiler keeps no folders of files, and many packages have a
``util.py``."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from stepscope.formats.beside.entries import entry_of
from stepscope.names.frames import frame_parts
from stepscope.names.libraries import INSTALLED, is_no_place
from stepscope.trace import tables as t
from stepscope.trace.codes import used_codes
from stepscope.trace.trace import Trace


def with_packages(trace: Trace, manifest: Mapping[str, Any] | None, name: str) -> Trace:
    """The trace with functions in a package's files named so."""
    told = entry_of(manifest, name).get("package_files")
    if not isinstance(told, str):
        return trace
    packages, strings = {*told.split("/")}, list(trace.strings)
    named = trace.slices.name[trace.slices.kind == t.Kind.PYTHON_FRAME]
    for code in used_codes(named, len(strings)).tolist():
        parts = frame_parts(strings[code])
        if parts and _is_bare(parts[0]) and parts[0] in packages:
            strings[code] = INSTALLED + strings[code]
    return dataclasses.replace(trace, strings=tuple(strings))


def _is_bare(file: str) -> bool:
    """Whether nothing tells whose file it is."""
    known = is_no_place(file) or file.startswith("<") or file.removesuffix(".py") in sys.stdlib_module_names
    return not known and PurePath(file).name == file
