"""What a path means: a file, a folder, a zip archive or a pattern -> the profiles there.

Files are recognised by content. Names only tell what belongs together: a run of TensorBoard's layout
``plugins/profile/RUN/HOST.*`` may hold one capture in several forms. A path that leads to nothing readable is refused
with what was seen there and why it was not read.
"""

from __future__ import annotations

import glob
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from stepscope.errors import InputError
from stepscope.formats import foreign, readers
from stepscope.formats.tf1.recognise import recognise as is_step_stats
from stepscope.inputs import archive, remote
from stepscope.inputs.folders import MOST_ENTRIES, FoundFile, Scan, Skipped, refused
from stepscope.inputs.joined import join
from stepscope.inputs.source import Source
from stepscope.record import record
from stepscope.regex import regex

MOST_PROFILES = 16
"""Profiles that one path leads to; more must be named."""
MOST_RANKS = 65_536
"""Profiles of one job."""
_JSON_BYTES = 4 << 20
_NO_EVENTS = f"is JSON without trace events in its first {_JSON_BYTES >> 20} MiB; name it to have it read all the same"
_RECORD = "is a report or a record of stepscope; name the profile that it is about"
_GROUPS, _EXAMPLES = 8, 2

_EVENTS = regex(rb'"traceEvents"|"ph"\s*:')
_OURS = regex(rb'\s*\{\s*"schema"\s*:\s*"stepscope\.')
"""The beginning of reports, and of the records that captures leave beside their profiles."""
_RUN_TIME = regex(r"(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)")
_OUR_RUN = regex(r"run-[0-9]+")
_XPLANE = ".xplane.pb"


@record
class Found:
    """The profiles a path leads to, in the order of their names; what else was seen; what a user should know."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


def find(path: str, most: int = MOST_PROFILES) -> Found:
    """The profiles that a file, a folder, a zip archive, a member ARCHIVE/NAME or a pattern (``*?[``) leads to; or a
    file, folder or pattern of a file system of fsspec (``s3://…``).

    A file is taken as it is. Of a folder or an archive of several files those that are recognised are taken: of
    TensorBoard's runs the newest, of one capture in several forms the XPlane, at most ``most``.

    Raises InputError where there is nothing to read, with a line for each reason.
    """
    place = Path(path)
    if remote.is_url(path):
        return _remote(path, most)
    if not os.path.lexists(path):
        is_pattern = glob.has_magic(path) and "\0" not in path  # which the system refuses, and glob does not know
        matches = sorted(islice(glob.iglob(path), MOST_ENTRIES), key=natural) if is_pattern else []
        if len(matches) == 1:
            return find(matches[0], most)
        if matches:
            return _profiles(path, Scan.of(map(Path, matches), most), most)
        return Found((_member(place) or Source(path),))
    if os.path.isdir(place) or (archive.is_archive(place) and len(archive.read(place).members) > 1):
        return _profiles(path, Scan.of([place], most), most)
    return Found((Source(path),))


def joined(sources: Sequence[Source]) -> list[Source]:
    """The sources, of which the runs of one TensorFlow 1 job are one."""
    return join(sources, is_step_stats)


def first(inputs: Found, path: str, most: int = MOST_PROFILES) -> Found:
    """The first profiles of those that were found, and a note on the others."""
    if len(inputs.sources) <= most:
        return inputs
    note = f"{path}: the first {most} of {len(inputs.sources):,} profiles are read; name others to read them"
    rest = tuple(Skipped(source.path, "is one profile too many", True) for source in inputs.sources[most:])
    return Found(inputs.sources[:most], inputs.skipped + rest, (*inputs.notes, note))


def every(folder: str) -> list[Source]:
    """Each profile below a folder, of all its runs; of one capture in several forms one. Empty where there is none."""
    candidates = [one for file in Scan.of([Path(folder)]).files if isinstance(one := _recognised(file), _Candidate)]
    return [one.source for one in sorted(_one_per_capture(candidates, []), key=lambda one: natural(one.path))]


def natural(path: object) -> list[tuple[int, str]]:
    """A sort key that counts: ``rank2`` before ``rank10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", str(path))]


def grouped(skipped: Iterable[Skipped], root: str) -> list[str]:
    """A line per reason: how many files, a few of them, and why they are not read."""
    groups: dict[str, list[str]] = defaultdict(list)
    for one in skipped:
        inside = one.path.is_relative_to(root) and one.path != Path(root)
        groups[one.reason.removeprefix("is ")].append(str(one.path.relative_to(root) if inside else one.path))
    lines = [
        f"{len(names):,} file{'s' if len(names) > 1 else ''} ({_some(names)}): {why}"
        for why, names in sorted(groups.items(), key=lambda group: -len(group[1]))
    ]
    return lines[:_GROUPS] + ([f"and {len(lines) - _GROUPS} more reasons"] if len(lines) > _GROUPS else [])


@record
class _Candidate:
    """A file that a reader recognises."""

    file: FoundFile
    source: Source

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def is_xplane(self) -> bool:
        return self.path.name.endswith(_XPLANE)


def _profiles(root: str, scan: Scan, most: int) -> Found:
    """Those of the scanned files that are profiles, one for each capture."""
    candidates, skipped = [], scan.skipped
    for file in sorted(scan.files, key=lambda file: natural(file.path)):
        one = _recognised(file)
        if isinstance(one, _Candidate):
            candidates.append(one)
        else:
            skipped.append(one)
    if not candidates:
        raise _nothing(root, scan)
    notes = [f"{root}: {_cut_short(scan)}"] if scan.cut_short else []
    candidates = _newest(_one_per_capture(candidates, notes), skipped, notes)
    candidates.sort(key=lambda one: natural(one.path))
    sources = joined([one.source for one in candidates])
    return first(Found(tuple(sources), tuple(skipped), tuple(notes)), root, most)


def _remote(url: str, most: int) -> Found:
    """The profiles at a URL: a file that it names is taken as it is."""
    shards, more = remote.shards(url, max(most, MOST_ENTRIES))
    if len(shards) == 1:
        return Found((shards[0],))
    looked = remote.heads(shards, lambda shard: _recognised(FoundFile(shard.path, (), lambda: shard)))
    sources = tuple(one.source for one in looked if isinstance(one, _Candidate))
    skipped = tuple(one for one in looked if isinstance(one, Skipped))
    if not sources:
        raise InputError(f"{url}: holds no profile among {len(shards):,} files; {foreign.ASK}", *grouped(skipped, url))
    notes = (f"{url}: only the first {len(shards):,} files were looked at; name a folder further down",)[:more]
    return first(Found(tuple(sorted(sources, key=lambda one: natural(one.path))), skipped, notes), url, most)


def _recognised(file: FoundFile) -> _Candidate | Skipped:
    try:
        source = file.open()
        head = source.head(readers.HEAD_BYTES)
        if _OURS.match(head):
            return Skipped(file.path, _RECORD, True, ours=True)
        if not any(reader.recognise(head) for reader in readers.READERS):
            words = foreign.describe(head, file.path.name)
            return Skipped(file.path, words, foreign.is_ordinary(words), ours=words == foreign.REPORT)
        # A JSON reader takes every object, since a trace may be damaged; in a folder most of them are no traces.
        is_json = head.lstrip()[:1] in (b"{", b"[")
        if is_json and not (_EVENTS.search(head) or _EVENTS.search(source.head(_JSON_BYTES))):
            return Skipped(file.path, _NO_EVENTS, True)
    except InputError as error:
        return refused(file.path, error)
    return _Candidate(file, source)


def _one_per_capture(candidates: list[_Candidate], notes: list[str]) -> list[_Candidate]:
    """Of one capture in several forms the XPlane, else the one that is not compressed."""
    groups: dict[tuple[Path, str], list[_Candidate]] = defaultdict(list)
    planes = {one.path.parent: one.path.name for one in candidates if one.is_xplane}
    for one in candidates:
        folder, name = one.path.parent, one.path.name.removesuffix(".gz")
        if folder in planes:
            # JAX writes perfetto_trace.json.gz (create_perfetto_trace=True) once, whatever the host is called.
            name = planes[folder] if name == "perfetto_trace.json" else name
            name = name.removesuffix(_XPLANE).removesuffix(".trace.json")
        groups[folder, name].append(one)
    kept = []
    for forms in groups.values():
        best, *others = sorted(forms, key=lambda one: (not one.is_xplane, len(one.path.name)))
        kept.append(best)
        if others:
            names = " and ".join(one.path.name for one in others)
            notes.append(f"{best.path} is read; {names} beside it {'hold' if others[1:] else 'holds'} the same capture")
    return kept


def _newest(candidates: list[_Candidate], skipped: list[Skipped], notes: list[str]) -> list[_Candidate]:
    """Of several runs in one ``plugins/profile/``, or of ``stepscope run`` in one folder, the newest alone."""
    runs: dict[Path, dict[str, list[_Candidate]]] = defaultdict(lambda: defaultdict(list))
    kept = []
    for one in candidates:
        run = Path(os.path.abspath(one.path)).parent
        if run.parent.parts[-2:] == ("plugins", "profile") or _is_of_stepscope(run):
            runs[run.parent][run.name].append(one)
        else:
            kept.append(one)
    for named in runs.values():
        newest = max(named, key=lambda name: (_run_time(name, named[name]), natural(name)))
        kept += named[newest]
        others = sorted(named.keys() - {newest}, reverse=True)
        if others:
            folder = named[newest][0].path.parent
            notes.append(
                f"{folder} is read, the newest of {len(named)} runs; to read another, name it: "
                f"{_some([str(folder.parent / name) for name in others])}"
            )
        skipped += [Skipped(one.path, "is of an older run", True) for name in others for one in named[name]]
    return kept


def _is_of_stepscope(run: Path) -> bool:
    """Whether ``stepscope run`` made this folder for a run."""
    return _OUR_RUN.fullmatch(run.name) is not None and next(run.glob("*.stepscope.json"), None) is not None


def _run_time(name: str, run: list[_Candidate]) -> tuple[int, ...]:
    """When a run was recorded (year … second): what its name says, else when its files were written."""
    said = _RUN_TIME.match(name)
    return tuple(map(int, said.groups())) if said else max(one.file.modified for one in run)


def _member(place: Path) -> Source | None:
    """The member that ARCHIVE/NAME means; None where there is no such archive or member."""
    for folder in place.parents:
        if os.path.isfile(folder) and archive.is_archive(folder):
            name = str(place)[len(str(folder)) + 1 :].replace(os.sep, "/")
            named = (member for member in archive.read(folder).members if member.name == name)
            return next((Source(folder, member) for member in named), None)
    return None


def _nothing(root: str, scan: Scan) -> InputError:
    if not scan.folders and [one.path for one in scan.skipped] == [Path(root)]:  # It may not be looked into.
        return InputError(f"{root}: {scan.skipped[0].reason}")
    count, where = len(scan.skipped), f" in {scan.folders:,} folders" if scan.folders > 1 else ""
    if not count:
        return InputError(f"{root}: holds no file{where}; name a profile, or the folder it is in")
    sentence = f"{root}: holds no profile among {count:,} file{'s'[: count - 1]}{where}; {foreign.ASK}"
    return InputError(sentence, *grouped(scan.skipped, root), *[_cut_short(scan)][: scan.cut_short])


def _some(names: list[str]) -> str:
    return ", ".join(names[:_EXAMPLES]) + (", …" if len(names) > _EXAMPLES else "")


def _cut_short(scan: Scan) -> str:
    return f"only the first {scan.most:,} entries were looked at; name a folder further down"
