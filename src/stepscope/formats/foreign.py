"""Files that are no profile stepscope reads: what they are, and what to do instead, told by their first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stepscope.errors import InputError
from stepscope.regex import regex
from stepscope.trace.trace import Loss

EVENT_FILE = "is a TensorBoard event file, not a profile; profiles are below plugins/profile/ beside it"
REPORT = "is a report of stepscope; name the profile it was made from"
_PACKED = "is compressed with {0}, which is not read; decompress it with `{1}`"
_UNPACK = "is a {0} archive, which is not read; unpack it and name the profile, or the folder it is in"
_FIRST: tuple[tuple[bytes, str], ...] = (
    (rb"\x28\xb5\x2f\xfd", _PACKED.format("Zstandard", "zstd -dk")),
    (rb"\xfd7zXZ\0", _PACKED.format("xz", "xz -dk")),
    (rb"BZh[1-9]1AY&SY", _PACKED.format("bzip2", "bzip2 -dk")),
    (rb"\x04\x22\x4d\x18", _PACKED.format("lz4", "lz4 -d")),
    (rb"\x1f\x8b", "is gzip inside gzip; decompress it once with `gunzip`"),
    (rb"PK\x03\x04", "is a zip archive inside gzip or zip; unpack the outer one"),
    (rb"PK\x05\x06", "is a zip archive without files; zip it again"),
    (rb"PK\x07\x08", _UNPACK.format("split zip")),
    (rb"7z\xbc\xaf\x27\x1c", _UNPACK.format("7z")),
    (rb"Rar!\x1a\x07", _UNPACK.format("RAR")),
    (rb".{257}ustar", _UNPACK.format("tar")),
    (
        rb"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f",
        "is an XPlane in Riegeli records, as continuous profiling writes, which are not read; capture one window "
        "instead, which gives an .xplane.pb",
    ),
    (
        rb"\x80[\x02-\x05][\x95}\]()\x8a\x8cXKMcq]",
        "is a pickle, as memory snapshots of PyTorch are; stepscope never loads one, since loading can run any code: "
        "record the run with torch.profiler",
    ),
    (
        # Profile.sample_type (a message of two numbers) comes first: proto/profile.proto of google/pprof.
        rb"\n[\x02-\x16]\x08[\x80-\xff]{0,9}[\x00-\x7f]\x10[\x80-\xff]{0,9}[\x00-\x7f][\n\x12]",
        "is a pprof profile, as jax.profiler.save_device_memory_profile writes, which has no times; record the run "
        "with jax.profiler.trace",
    ),
    (rb".{17,40}brain\.Event:", EVENT_FILE),
    (rb'<!doctype html>\n<html[^>]*>\n<head>\n<meta name="generator" content="stepscope">', REPORT),
    (rb"[^\n]{1,400} \xc2\xb7 (?:PyTorch|JAX|TensorFlow|\d+ ranks)\b", REPORT),
    (rb"\s*<(?i:!doctype html|html|head|\?xml)", "is a web page or XML, not a profile; download the file itself"),
    (rb"PAR1|ARROW1", "is a table in a file, not a profile; name the profile it was made from"),
    (rb"\xff\xfe|\xfe\xff", "is text in UTF-16; write it as UTF-8"),
)
_KINDS = tuple((regex(pattern, re.DOTALL), words) for pattern, words in _FIRST)
EXPORT = "export it with `nsys export --type sqlite FILE`"
ASK = "`stepscope formats` lists what is read"


def describe(head: bytes, name: str = "") -> str:
    """What a file is that no reader recognises, and what to do: "is …; …", to follow the file's name.

    The name decides nothing but the words for binary data of which nothing else is known.

    >>> describe(b"BZh91AY&SY")
    'is compressed with bzip2, which is not read; decompress it with `bzip2 -dk`'
    >>> describe(b"hello")
    'is text, not a profile; `stepscope formats` lists what is read'
    """
    for pattern, words in _KINDS:
        if pattern.match(head):
            return words
    if not head.strip():
        return f"is blank; {ASK}"
    if _is_text(head):
        return f"is text, not a profile; {ASK}"
    if name.lower().endswith((".nsys-rep", ".qdrep")):
        return "looks like a report of Nsight Systems, which only its own tool reads; " + EXPORT
    return f"is binary data of another kind, not a profile; {ASK}"


def empty(path: object, losses: Iterable[Loss]) -> InputError:
    """The error for a profile of which no event became a slice."""
    lost = "; ".join(f"{loss.count:,} {loss.text}" for loss in losses if loss.lost_events)
    return InputError(f"{path}: holds no usable event{f' ({lost})' if lost else ''}; record the run again")


def is_ordinary(words: str) -> bool:
    """Whether such files lie beside profiles as a matter of course, so that nobody asks why they are not read."""
    return words in (EVENT_FILE, REPORT) or words.endswith(ASK)


def _is_text(head: bytes) -> bool:
    return not re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", head)
