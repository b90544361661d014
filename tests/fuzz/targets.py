"""What is fuzzed: its seeds, how they are mutated, and what is made of the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from tests.fuzz import beside, files, mutations, parsers, queries, seeds, served, written
from tests.fuzz.mutations import Mutation
from tests.fuzz.oracle import Patches, depth_of, examine

_SCAN = "stepscope.formats.chrome.scan"
FAST: Patches = {f"{_SCAN}.read._SMALL": 0}
"""The compiled road for files that are too small for it."""
PIECES: Patches = {
    **FAST,
    f"{_SCAN}.drive.HEAD_BLOCK": 512,
    f"{_SCAN}.drive.CHUNK": 700,
    f"{_SCAN}.drive.MARGIN": 64,
    f"{_SCAN}.drive.SLACK": 128,
}
"""The same, with pieces so small that events reach over their ends, and several threads at work."""
BLOCKS: Patches = {"stepscope.formats.xplane.space._BLOCK": 3}


@dataclass(frozen=True, eq=False)
class Target:
    """One reader, one way in which files are packed, or something else that takes what others made."""

    name: str
    seeds: Callable[[], list[bytes]]
    mutations: tuple[Mutation, ...]
    reader: str | None = None
    """The name in ``registry.READERS`` that its sound files are recognised by."""
    variants: tuple[Patches, ...] = ({},)
    """Settings under which the same file must give the same trace."""
    file_name: str = "input"
    beside: Callable[[], bytes] | None = None
    """The profile that is opened, where the mutated file only lies beside it."""
    answer: Callable[[Path, bytes, int], str] | None = None
    """What becomes of an input that is not read as a profile: given a folder, the input and its number."""

    def mutated(self, random: Random, more: list[bytes] | None = None) -> bytes:
        """A seed (or one of ``more``) mutated once or a few times."""
        sources = _seeds(self)
        base = random.choice(more) if more and random.random() < 0.5 else random.choice(sources)
        for _ in range(random.choice((1, 1, 1, 2, 2, 3, 6))):
            base = self.changed(random, base)
        return base

    def changed(self, random: Random, base: bytes) -> bytes:
        """An input mutated once."""
        data = random.choice(self.mutations)(random, base, random.choice(_seeds(self)))
        return data[: mutations.LARGEST] or base

    def variants_of(self, number: int) -> tuple[Patches, ...]:
        """How input ``number`` is read: every fourth in all ways, the others in one of them."""
        return self.variants if number % 4 == 0 else (self.variants[number % len(self.variants)],)

    def examined(self, folder: Path, data: bytes, number: int) -> str:
        """What became of an input, in words without numbers; whatever is raised is a defect.

        Number 0 is examined in every way, others in some.
        """
        if self.answer is not None:
            return self.answer(folder, data, number)
        return examine(self.place(folder, data), self.variants_of(number), depth=depth_of(number))

    def place(self, folder: Path, data: bytes) -> Path:
        """Write an input into a folder; the path to open."""
        (folder / self.file_name).write_bytes(data)
        if self.beside is None:
            return folder / self.file_name
        profile = folder / "profile"
        if not profile.exists():
            profile.write_bytes(self.beside())
        return profile


@cache
def _seeds(target: Target) -> list[bytes]:
    return target.seeds()


_JSON = "Chrome trace JSON"
_TEXT = (mutations.anyhow, mutations.tokens, mutations.tokens, mutations.tree, mutations.tree)
_ROADS: tuple[Patches, ...] = ({}, FAST, PIECES)
_BINARY = (mutations.anyhow, mutations.message, mutations.message)

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("kineto", seeds.kineto, _TEXT, _JSON, _ROADS),
        Target("chrome", seeds.chrome, _TEXT, _JSON, _ROADS),
        Target("xla_json", seeds.xla_json, _TEXT, _JSON, _ROADS),
        Target("timeline", seeds.timeline, _TEXT, _JSON, _ROADS),
        Target("xplane", seeds.xplane, _BINARY, "XPlane", ({}, BLOCKS)),
        Target("step_stats", seeds.step_stats, _BINARY, "TensorFlow StepStats"),
        Target(
            "nsys",
            seeds.nsys,
            (mutations.anyhow, files.pages, files.rows, files.rows),
            "Nsight Systems SQLite",
        ),
        Target("saved", seeds.saved, (mutations.anyhow, files.saved, files.saved), "stepscope's saved form"),
        Target(
            "summaries",
            seeds.summaries,
            (mutations.anyhow, mutations.event_files, mutations.event_files),
            file_name="events.out.tfevents.1",
            beside=lambda: seeds.step_stats()[0],
        ),
        Target(
            "gzip",
            seeds.gzipped,
            (mutations.anyhow, files.gzipped(mutations.anyhow), files.gzipped(mutations.tokens)),
        ),
        Target(
            "zip",
            seeds.zipped,
            (
                mutations.anyhow,
                files.directory,
                files.zipped(mutations.anyhow),
                files.zipped(mutations.tokens),
            ),
        ),
        Target("manifest", beside.manifests, (*_TEXT, beside.texts, beside.texts), answer=beside.manifest),
        Target(
            "placement",
            beside.placements,
            (mutations.anyhow, beside.lines, beside.lines),
            file_name="placement.log",
            beside=lambda: seeds.step_stats()[0],
        ),
        Target("program", parsers.programs, _BINARY, answer=parsers.program),
        Target("grpc", parsers.grpc_seeds, _BINARY, answer=parsers.grpc_message),
        Target("datagram", parsers.datagrams, (mutations.anyhow, parsers.datagram_fields), answer=parsers.datagram),
        Target("answer", parsers.answers, _TEXT, answer=parsers.answer),
        Target("name", parsers.names, (mutations.anyhow, *[parsers.name_parts] * 3), answer=parsers.name),
        Target("sql", queries.seeds, (mutations.anyhow, *[queries.tokens] * 4), answer=queries.answer),
        Target("server", served.seeds, (mutations.anyhow, *[served.request] * 4), answer=served.answer),
        Target("writer", seeds.saved, (*[written.tables] * 9, mutations.anyhow), answer=written.answer),
    )
}
