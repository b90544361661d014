"""What the processes of a job left in the folder, read back by the tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .manifest import ENDING, SCHEMA

_LEVELS_UP = 3
"""From ``plugins/profile/<run>`` to the folder of the manifest."""
_MOST_MANIFESTS, _LARGEST_MANIFEST = 256, 4 << 20


@dataclass(frozen=True)
class Recording:
    """One process's manifest and the profiles that it lists and that exist."""

    manifest: Path
    facts: dict[str, Any]
    profiles: tuple[Path, ...]

    @property
    def rank(self) -> int | None:
        """The process's rank, where it had one."""
        rank = self.facts.get("rank")
        return rank if isinstance(rank, int) else None

    @property
    def steps(self) -> int:
        """Steps seen."""
        return int(self.facts.get("steps_seen") or 0)

    @property
    def who(self) -> str:
        """The process in words."""
        return f"process {self.facts.get('pid')}" if self.rank is None else f"rank {self.rank}"


def manifest_of(profile: Path) -> dict[str, Any] | None:
    """The manifest that lists a profile: beside it, or above it in TensorBoard's layout; None where there is none."""
    profile = profile.absolute()
    for folder in (profile.parent, *profile.parents[1 : 1 + _LEVELS_UP]):
        name = profile.relative_to(folder).as_posix()
        for path in sorted(folder.glob(f"*{ENDING}"), reverse=True)[:_MOST_MANIFESTS]:
            facts = _read(path)
            if facts is not None and name in (file.get("path") for file in facts.get("files", ())):
                return facts
    return None


def _read(path: Path) -> dict[str, Any] | None:
    """A manifest; None for what is none."""
    try:
        with path.open("rb") as file:
            facts = json.loads(file.read(_LARGEST_MANIFEST))
    except (OSError, ValueError, RecursionError):
        return None
    listed = facts.get("files", []) if isinstance(facts, dict) and facts.get("schema") == SCHEMA else None
    return facts if isinstance(listed, list) and all(isinstance(file, dict) for file in listed) else None


def recordings(folder: Path, since_ns: int) -> list[Recording]:
    """The recordings that began since an instant (epoch ns), ranks in order; what is no manifest is passed over."""
    found = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        facts = _read(path)
        if facts is None or facts.get("started_ns", 0) < since_ns:
            continue
        names = [str(file["path"]) for file in facts.get("files", ())]
        profiles = tuple(folder / name for name in names if (folder / name).is_file())
        found.append(Recording(path, facts, profiles))
    return sorted(found, key=lambda each: (each.rank is None, each.rank or 0, each.manifest.name))
