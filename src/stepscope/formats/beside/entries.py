"""What a manifest of ``stepscope run`` says of one of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def entry_of(manifest: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """The entry of the profile of that name; empty where there is none."""
    files = manifest.get("files") if manifest is not None else None
    listed = [file for file in files if isinstance(file, Mapping)] if isinstance(files, list) else []
    return next((file for file in listed if PurePath(str(file.get("path"))).name == name), {})
