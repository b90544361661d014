"""What was read."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from stepscope.document.kinds import Bytes, Count, Field, Index, Path, SignedNs


class FileEntry(TypedDict):
    """An input file."""

    path: Annotated[Path, Field("Path of the file.", "file")]
    bytes: Annotated[Bytes | None, Field("Size on disk.", "size", null="not recorded")]
    events: Annotated[Count | None, Field("Events in it.", "events", null="not recorded")]


class DeviceEntry(TypedDict):
    """A device."""

    id: Annotated[Count, Field("Its index.")]
    name: Annotated[str | None, Field("Its model.")]
    kind: Annotated[str | None, Field("gpu, tpu or another word.")]
    memory_bytes: NotRequired[Annotated[Bytes | None, Field("Memory it has.")]]


class NoticeEntry(TypedDict):
    """Something to know about the profile itself."""

    code: Annotated[str, Field("Which notice it is.")]
    text: Annotated[str, Field("The notice in words.")]
    count: Annotated[Count | None, Field("How many it speaks of; null where it counts nothing.")]
    says_count: NotRequired[Annotated[bool, Field("Whether the text says the count; absent from older reports.")]]


class LossEntry(TypedDict):
    """Something of the input that could not become rows."""

    code: Annotated[str, Field("What happened.")]
    count: Annotated[Count, Field("How often.")]
    text: Annotated[str, Field("It in words.")]
    first_offset: Annotated[Bytes | None, Field("Byte in the decompressed text.")]
    lost_events: Annotated[Count, Field("Events that are lost.")]
    lost_bytes: Annotated[Count, Field("Bytes that could not be read.")]
    damaged: Annotated[bool, Field("Whether the file is damaged there.")]


class ProfileEntry(TypedDict):
    """What was read, and how whole it is."""

    format: Annotated[str, Field("Format of the files.")]
    framework: Annotated[str | None, Field("Name, with the version where recorded.")]
    files: Annotated[list[FileEntry], Field("The files that were read.", least=1)]
    ranks: Annotated[
        list[Index | None], Field("Ranks this report covers; null for a profile that does not say its rank.")
    ]
    world_size: NotRequired[Annotated[Count | None, Field("Processes of the job; null where that is not recorded.")]]
    accelerators: NotRequired[
        Annotated[
            Count | None,
            Field("0 where the recording says that the process could use no device; null where nothing is said."),
        ]
    ]
    devices: Annotated[list[DeviceEntry], Field("Devices that the profile speaks of.")]
    host: Annotated[str | None, Field("Name of the machine.")]
    complete: Annotated[bool, Field("False where bytes or events of the input could not become rows.")]
    notices: Annotated[list[NoticeEntry], Field("What to know about the profile itself.")]
    epoch_ns: NotRequired[Annotated[SignedNs | None, Field("The trace's origin as Unix time.")]]
    events: NotRequired[
        Annotated[
            dict[str, Count],
            Field("Events in all (`total`), and how many became rows of which table.", keys=("total",)),
        ]
    ]
    losses: NotRequired[Annotated[list[LossEntry], Field("What of the input did not become rows, or was damaged.")]]
