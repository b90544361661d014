"""What the processes of a job left in the folder, read back by the tool."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .manifest import ENDING, SCHEMA


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


def recordings(folder: Path, since_ns: int) -> list[Recording]:
    """The recordings that began since an instant (epoch ns), ranks in order; what is no manifest is passed over."""
    found = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if not isinstance(facts, dict) or facts.get("schema") != SCHEMA or facts.get("started_ns", 0) < since_ns:
            continue
        names = [str(file["path"]) for file in facts.get("files", ())]
        profiles = tuple(folder / name for name in names if (folder / name).is_file())
        found.append(Recording(path, facts, profiles))
    return sorted(found, key=lambda each: (each.rank is None, each.rank or 0, each.manifest.name))
