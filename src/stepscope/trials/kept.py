"""Files that the job writes to a fixed place: kept aside, so that every trial begins with them as they were."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stepscope.errors import UsageError


class Kept:
    """Copies of some files and folders, as the user left them."""

    def __init__(self, scratch: Path, paths: Sequence[Path]) -> None:
        """Raises UsageError where one of them is above the scratch folder, OSError where the disk does."""
        self._paths = [path.absolute() for path in paths]
        self._scratch = scratch.absolute()
        for path in self._paths:
            if self._scratch.is_relative_to(path):
                raise UsageError(f"{path} holds the folder of --scratch: name one outside of it")
        self._scratch.mkdir(parents=True, exist_ok=True)
        for number, path in enumerate(self._paths):
            _copy(path, self._at("as-they-were", number))

    @contextmanager
    def trial(self, name: str) -> Iterator[None]:
        """A trial may write to them: what it leaves goes to the scratch folder, and they are as they were."""
        try:
            yield
        finally:
            for number, path in enumerate(self._paths):
                left = self._at(name, number)
                if path.exists():
                    left.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(path, left)
                _copy(self._at("as-they-were", number), path)

    def _at(self, name: str, number: int) -> Path:
        return self._scratch / name / f"{number}-{self._paths[number].name}"


def _copy(path: Path, to: Path) -> None:
    if path.is_dir():
        shutil.copytree(path, to, symlinks=True, dirs_exist_ok=True)
    elif path.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, to)
