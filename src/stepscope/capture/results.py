"""What the processes of a job left in the folder, read back by the tool."""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .manifest import ENDING, SCHEMA
from .phases import RecordingPhase

_LEVELS_UP = 3
"""From ``plugins/profile/<run>`` to the folder of the manifest."""
_MOST_MANIFESTS, _LARGEST_MANIFEST = 256, 4 << 20
_SETTLED_NS = 2_000_000_000
"""A folder that changed less long ago may change again without its time telling."""
_NOTHING = type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "started_ns": (int,), "rank": (int, _NOTHING), "steps_seen": (int, _NOTHING), "own_traces": (list, _NOTHING),
    "files": (list,), "window": (dict, _NOTHING), "step_ns": (dict, _NOTHING), "periods": (list, _NOTHING),
}  # fmt: skip
"""What a manifest's facts are, where it has them: it lies in a folder that may come from anywhere."""


@dataclass(frozen=True)
class Recording:
    """One process's manifest and the profiles that it lists and that exist."""

    manifest: Path
    facts: dict[str, Any]
    profiles: tuple[Path, ...]

    @property
    def rank(self) -> int | None:
        """The process's rank, where it had one."""
        rank: int | None = self.facts.get("rank")
        return rank

    @property
    def own_traces(self) -> tuple[Path, ...]:
        """Traces that the job's own profiler wrote, and that exist."""
        named = self.facts.get("own_traces") or ()
        return tuple(Path(name) for name in named if isinstance(name, str) and os.path.isfile(name))

    @property
    def steps(self) -> int:
        """Steps seen."""
        return int(self.facts.get("steps_seen") or 0)

    @property
    def is_over(self) -> bool:
        """Whether it records no more, or none that was not asked for."""
        return self.facts.get("phase") in (RecordingPhase.DONE.value, RecordingPhase.LISTENING.value)

    @property
    def looking_share(self) -> float | None:
        """Of the time recorded last the share that looking at the job's lines took; None where none was looked at."""
        files = self.facts.get("files") or [{}]
        looking = files[-1].get("looking")
        if not isinstance(looking, dict):
            return None
        spent, passed = looking.get("spent_ns"), looking.get("passed_ns")
        return spent / passed if type(spent) is int and type(passed) is int and 0 <= spent <= passed > 0 else None

    @property
    def who(self) -> str:
        """The process in words."""
        return f"process {self.facts.get('pid')}" if self.rank is None else f"rank {self.rank}"


def manifest_of(profile: Path) -> dict[str, Any] | None:
    """The manifest that lists a profile: beside it, or above it in TensorBoard's layout; None where there is none."""
    profile = profile.absolute()
    for folder in (profile.parent, *profile.parents[1 : 1 + _LEVELS_UP]):
        name = profile.relative_to(folder).as_posix()
        for path in _likely_first(folder, profile.name):
            facts = _read(path)
            if facts is not None and name in (file.get("path") for file in facts.get("files", ())):
                return facts
    return None


def _likely_first(folder: Path, name: str) -> list[Path]:
    """The manifests of a folder that may list a profile: a job of thousands of processes leaves as many, each named as
    the profiles of its process are, but for the time. Of equally likely ones the newest comes first."""
    try:
        changed_ns = os.stat(folder).st_mtime_ns
        listed = _listed if time.time_ns() - changed_ns > _SETTLED_NS else _listed.__wrapped__
        names = listed(folder, changed_ns)
    except (OSError, ValueError):  # No folder, or a name that none can have.
        return []
    at = bisect_left(names, name)  # What begins alike stands side by side.
    near = names[max(at - _MOST_MANIFESTS, 0) : at + _MOST_MANIFESTS]
    near.sort(key=lambda path: (_alike(path, name), path), reverse=True)
    return [folder / path for path in near[:_MOST_MANIFESTS]]


def _alike(first: str, second: str) -> int:
    """How many characters two names begin with alike."""
    return next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), len(first))


@lru_cache(maxsize=4)  # Of the ranks of a job each asks.
def _listed(folder: Path, changed_ns: int) -> list[str]:
    """The names of the manifests in a folder that was changed at that time, in order."""
    return sorted(name for name in os.listdir(folder) if name.endswith(ENDING))


def _read(path: Path) -> dict[str, Any] | None:
    """A manifest; None for what is none."""
    try:
        with path.open("rb") as file:
            facts = json.loads(file.read(_LARGEST_MANIFEST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        return None
    sound = all(type(facts[key]) in types for key, types in _TYPES.items() if key in facts)
    return facts if sound and all(map(_is_listed, facts.get("files", ()))) else None


def _is_listed(file: object) -> bool:
    return isinstance(file, dict) and isinstance(file.get("path"), str)


def recordings(folder: Path, since_ns: int) -> list[Recording]:
    """The recordings that began since an instant (epoch ns), ranks in order; what is no manifest is passed over."""
    read = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        facts = _read(path)
        if facts is None or facts.get("started_ns", 0) < since_ns:
            continue
        names = [file["path"] for file in facts.get("files", ())]
        profiles = tuple(folder / name for name in names if os.path.isfile(folder / name))
        read.append(Recording(path, facts, profiles))
    return sorted(read, key=lambda each: (each.rank is None, each.rank or 0, each.manifest.name))
