"""A cure as a change of the user's source: a unified diff where its place is known, else lines to write by hand.

Only the places at which the cure was put into effect are changed, and everything else of the file stays as it is
written (LibCST keeps comments and spacing). Several cures of one file are one diff.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.capture.cures.cure import AfterImport, ByHand, Cure, Edit, First, Shell
from stepscope.capture.cures.places import Place
from stepscope.trials import wording

if TYPE_CHECKING:
    from stepscope.trials.edits import EditedSource

LARGEST_SOURCE = 4 << 20


@dataclass(frozen=True, slots=True)
class Applied:
    """A cure that was put into effect, and the places on whose behalf."""

    cure: Cure
    value: int | None
    places: tuple[Place, ...]


@dataclass(slots=True)
class Patch:
    """What to change."""

    diff: str = ""
    by_hand: list[str] = field(default_factory=list)
    files: dict[Path, tuple[str, str]] = field(default_factory=dict)
    """Path -> text before and after."""


def made(applied: Iterable[Applied], script: Path | None, folder: Path) -> Patch:
    """The change that has the same effect as some cures.

    ``script`` is the file that the job runs; paths of the diff are relative to ``folder``.
    """
    patch, sources = Patch(), _Sources()
    for one in applied:
        for edit, place in _placed(one, script):
            text = _changed(sources, edit, place, one.value)
            if text is not None and text not in patch.by_hand:
                patch.by_hand.append(text)
    for path, (before, after) in sources.changed().items():
        patch.files[path] = (before, after)
        patch.diff += _diff(path, before, after, folder)
    return patch


def _placed(one: Applied, script: Path | None) -> list[tuple[Edit, Place]]:
    """Each edit with its place: one that needs no place in a call stands in the script itself."""
    anywhere = {"file": str(script)} if script is not None else {}
    placed: list[tuple[Edit, Place]] = []
    for edit in one.cure.patch(one.value):
        if isinstance(edit, (ByHand, Shell, AfterImport)):
            if not placed:
                placed.append((edit, anywhere))
        else:
            placed += [(edit, place) for place in one.places]
            if not one.places and not isinstance(edit, First):
                placed.append((edit, {}))
    return placed


def _changed(sources: _Sources, edit: Edit, place: Place, value: int | None) -> str | None:
    """Make an edit; where that cannot be done, what to write by hand."""
    if isinstance(edit, (ByHand, Shell)) or "file" not in place:
        return wording.by_hand(edit, place, value)
    source = sources.of(Path(place["file"]))
    if isinstance(source, str):
        return f"{wording.by_hand(edit, place, value)}\n({source})"
    return None if source.edit(edit, place, value) else wording.by_hand(edit, place, value)


class _Sources:
    """The files that are changed, each read once."""

    def __init__(self) -> None:
        self._read: dict[Path, EditedSource | str] = {}

    def of(self, path: Path) -> EditedSource | str:
        """A file's source; why there is none."""
        if path not in self._read:
            self._read[path] = _source(path)
        return self._read[path]

    def changed(self) -> dict[Path, tuple[str, str]]:
        """Path -> text before and after, of those that are changed."""
        read = {path: source for path, source in self._read.items() if not isinstance(source, str)}
        texts = {path: (source.text, source.changed()) for path, source in read.items()}
        return {path: pair for path, pair in texts.items() if pair[0] != pair[1]}


def _source(path: Path) -> EditedSource | str:
    try:
        from stepscope.trials.edits import EditedSource
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        return "pip install libcst to have it written as a patch"
    try:
        if path.stat().st_size > LARGEST_SOURCE:
            return f"{path} is too large to be changed"
        with path.open(encoding="utf-8", newline="") as file:
            return EditedSource(file.read())
    except OSError as error:
        return f"{path}: {error.strerror}"
    except ValueError as error:  # Not UTF-8, or of a Python that LibCST does not know.
        return f"{path} cannot be parsed: {error}"


def _diff(path: Path, before: str, after: str, folder: Path) -> str:
    name = os.path.relpath(path, folder)
    name = path.as_posix().lstrip("/") if name.startswith(os.pardir) else Path(name).as_posix()
    lines: Sequence[str] = list(
        difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
        )
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
