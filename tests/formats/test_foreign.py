"""What is said of files that are no profile."""

from __future__ import annotations

import io
import lzma
import pickle
import re
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.formats.foreign import describe, empty, is_ordinary
from stepscope.formats.readers import READERS
from stepscope.trace.trace import Loss


def tar() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as writer:
        writer.addfile(tarfile.TarInfo("trace.json"))
    return held.getvalue()


KNOWN = {
    "Zstandard": (b"\x28\xb5\x2f\xfd\x04\x58", "`zstd -dk`"),
    "xz": (lzma.compress(b"{}"), "`xz -dk`"),
    "lz4": (b"\x04\x22\x4d\x18\x64", "`lz4 -d`"),
    "7z": (b"7z\xbc\xaf\x27\x1c", "is a 7z archive"),
    "RAR": (b"Rar!\x1a\x07\x01", "is a RAR archive"),
    "tar": (tar(), "is a tar archive"),
    "split zip": (b"PK\x07\x08PK\x03\x04", "is a split zip archive"),
    "empty zip": (b"PK\x05\x06" + bytes(18), "is a zip archive without files"),
    **{f"pickle {n}": (pickle.dumps({"segments": []}, n), "never loads") for n in range(2, 6)},
    "HTML in capitals": (b"\n <HTML><body>", "is a web page"),
    "Parquet": (b"PAR1\x15\x04", "is a table in a file"),
    "blanks": (b" \n\t", "is blank"),
    "report": (
        "vm.1.pt.trace.json.gz · PyTorch · on the CPU · 20 steps, 18 used\n".encode(),
        "is a report of stepscope",
    ),
    "text with colours": ("step 1 \x1b[31mloss 0.5 ✓\r\n".encode(), "is text"),
    "executable": (b"\x7fELF\x02\x01\x01\0", "is binary data"),
}


@pytest.mark.parametrize("kind", KNOWN)
def test_known_kinds_are_called_by_their_name(kind: str) -> None:
    head, words = KNOWN[kind]
    assert words in describe(head)
    assert not any(reader.recognise(head) for reader in READERS)


@given(head=st.binary(max_size=400), name=st.text(max_size=20))
def test_anything_is_described_in_one_clause_that_says_what_to_do(head: bytes, name: str) -> None:
    words = describe(head, name)
    assert re.fullmatch(r"(is|looks like) [^\n]+[;:] [^\n]+[^.]", words), words


def test_what_lies_beside_profiles_anyway_is_ordinary() -> None:
    assert is_ordinary(describe(b"import torch\n"))
    assert not is_ordinary(describe(KNOWN["xz"][0]))
    assert not is_ordinary(describe(KNOWN["pickle 4"][0]))


def test_an_empty_profile_says_what_was_lost() -> None:
    losses = [Loss("a", 1200, "events without a name", lost_events=1200), Loss("b", 3, "oddities")]
    assert str(empty("x.json", losses)) == (
        "x.json: holds no usable event (1,200 events without a name); record the run again"
    )
    assert str(empty("x.json", [])) == "x.json: holds no usable event; record the run again"
