"""The files below some paths: folders are walked, zip archives opened, links followed once; everything is bounded."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from stepscope.errors import InputError
from stepscope.inputs import archive
from stepscope.inputs.inflate import reason
from stepscope.inputs.source import Source
from stepscope.record import record

MOST_ENTRIES = 10_000
"""Entries of folders that are looked at."""
DEPTH = 8
_EXPORT = {"info.json", "slices.parquet"}
"""What ``stepscope convert`` to Parquet writes into a folder, with other tables."""


@record
class Skipped:
    """A file that is not read, and why: "is …; …", to follow its name."""

    path: Path
    reason: str
    expected: bool = False
    """It always lies beside profiles: nobody asks why it is not read."""
    ours: bool = False
    """stepscope wrote it, beside the profile that it is about."""


@record
class FoundFile:
    """A file, or a member of an archive, that may be a profile."""

    path: Path
    modified: tuple[int, ...]
    """Year, month, day, hour, minute, second; local time."""
    open: Callable[[], Source]


@dataclass(slots=True)
class Scan:
    """Everything seen below some paths."""

    files: list[FoundFile] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    folders: int = 0
    most: int = MOST_ENTRIES
    _entries: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    @classmethod
    def of(cls, paths: Iterable[Path], profiles: int = 0) -> Scan:
        """Take files, and walk folders; hidden files are passed over. Never raises for what it meets.

        More entries than usual are looked at for so many ``profiles``.
        """
        scan = cls(most=max(MOST_ENTRIES, 2 * profiles))
        folders: deque[tuple[Path, int]] = deque()
        for path in paths:
            if os.path.isdir(path):
                folders.append((path, 0))
            else:
                scan._file(path)
        while folders and not scan.cut_short:
            folder, depth = folders.popleft()
            below = scan._folder(folder)
            if depth < DEPTH:
                folders.extend((path, depth + 1) for path in below)
            else:
                scan.skipped += [Skipped(path, f"is more than {DEPTH} folders down; name it") for path in below]
        return scan

    @property
    def cut_short(self) -> bool:
        """There are more entries than were looked at."""
        return self._entries >= self.most

    def _folder(self, folder: Path) -> list[Path]:
        """Take a folder's files; the folders in it. One that was reached before by another way counts as empty."""
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in self._seen:
                return []
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listed:
                entries = list(islice(listed, self.most - self._entries))
        except OSError as error:
            self.skipped.append(Skipped(folder, f"cannot be opened: {reason(error)}"))
            return []
        self.folders += 1
        self._entries += len(entries)
        shown = [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
        below = [path for path in shown if os.path.isdir(path)]  # Path.is_dir raises where it may not look
        if {entry.name for entry in entries} >= _EXPORT:
            self.skipped.append(
                Skipped(folder, "is an export to Parquet, which is not read back; name the profile it was made from")
            )
            return below
        for path in shown:
            if not os.path.isdir(path):
                self._file(path)
        return below

    def _file(self, path: Path) -> None:
        try:
            if not archive.is_archive(path):
                self.files.append(FoundFile(path, _modified(path), partial(Source, path)))
                return
            held = archive.read(path)
        except OSError as error:
            self.skipped.append(Skipped(path, f"cannot be opened: {reason(error)}"))
        except InputError as error:
            self.skipped.append(refused(path, error))
        else:
            if any(member.name.endswith("/data.pkl") for member in held.members):
                self.skipped.append(Skipped(path, "is a checkpoint of PyTorch, not a profile", True))
                return
            if held.cut:
                self.skipped.append(Skipped(path, "is cut off; what lay behind the cut is missing"))
            for member in held.members:
                name = Path(f"{path}/{member.name}")
                self.files.append(FoundFile(name, member.modified, partial(Source, path, member)))


def refused(path: Path, error: InputError) -> Skipped:
    """A file that an error is about."""
    return Skipped(path, error.sentence.removeprefix(f"{path}: "))


def _modified(path: Path) -> tuple[int, ...]:
    try:
        return time.localtime(path.stat().st_mtime)[:6]
    except (OverflowError, ValueError):  # a time that no calendar has
        return ()
