"""Compressed files, archives and folders, and what is no profile at all, each with its stated outcome."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
import sqlite3
import struct

from generator.odd_case import Case, Folder, Refusal, odd
from generator.odd_others import PLANE, export
from generator.odd_trace import TRACE, cut, events, stored_gzip, stored_zip, trace, zipped

RUN, OLDER = "plugins/profile/2026_11_21_05_27_53", "plugins/profile/2026_11_20_17_00_00"
EVENT_FILE = bytes(12) + struct.pack("<Bd", 9, 1.7e9) + b"\x1a\x0dbrain.Event:2"
PACKED = gzip.compress(TRACE)
OTHER_DATABASE = sqlite3.connect(":memory:")
OTHER_DATABASE.execute("CREATE TABLE runs (id INTEGER)")

CONTAINERS: tuple[Case, ...] = (
    odd(
        "gzip under any name, also in several members",
        gzip.compress(TRACE[:2000]) + gzip.compress(TRACE[2000:]),
        "Read.",
        met="catapult#4633",
    ),
    Case(
        "gzip cut off",
        stored_gzip(cut('"ts"', 12)),
        "What decompresses is read.",
        ("damaged_gzip_truncated", "damaged_truncated"),
        1,
        met="vscode#150047",
    ),
    Case(
        "gzip with corrupt data",
        stored_gzip(cut('"ts"', 12), b"\xff" * 40),
        "What decompresses before the fault is read.",
        ("damaged_gzip_corrupt", "damaged_truncated"),
        1,
    ),
    Case("Other bytes behind the gzip data", PACKED + b"more", "Ignored.", ("damaged_gzip_trailing",)),
    odd("A zip archive of one file", zipped({"any/name": TRACE}), "That file is read."),
    odd("A zip archive that holds gzip", zipped({"trace.json.gz": PACKED}), "Read.", met="profilo#38"),
    odd(
        "A zip archive that holds other files, too",
        zipped({"run/trace.json": TRACE, "run/notes.txt": b"batch size 8", "__MACOSX/run/._trace.json": b"\0"}),
        "As a folder: the profile is read.",
    ),
    Case(
        "A zip archive cut off",
        stored_zip(cut('"ts"', 12)),
        "What decompresses is read.",
        ("damaged_zip_truncated", "damaged_truncated"),
        1,
    ),
    Case(
        "A zip archive with corrupt data",
        stored_zip(cut('"ts"', 12), b"\xff" * 40),
        "What decompresses before the fault is read.",
        ("damaged_zip_corrupt", "damaged_truncated"),
        1,
    ),
)

FOLDERS: tuple[Folder, ...] = (
    Folder(
        "A run that holds only `HOST.xplane.pb`",
        {f"{RUN}/vm.xplane.pb": PLANE, "events.out.tfevents.1.vm": EVENT_FILE},
        "Read.",
        (f"{RUN}/vm.xplane.pb",),
        met="tensorflow#60060",
    ),
    Folder(
        "A run that also holds the JSON made from the same capture",
        {f"{RUN}/vm.xplane.pb": PLANE, f"{RUN}/vm.trace.json.gz": PACKED, f"{RUN}/perfetto_trace.json.gz": PACKED},
        "One profile: the XPlane is read.",
        (f"{RUN}/vm.xplane.pb",),
        "vm.trace.json.gz and perfetto_trace.json.gz beside it hold the same capture",
    ),
    Folder(
        "Several runs",
        {f"{RUN}/vm.xplane.pb": PLANE, f"{OLDER}/vm.xplane.pb": PLANE},
        "The newest is read, by the time its name says, else by its files; the others are named.",
        (f"{RUN}/vm.xplane.pb",),
        "the newest of 2 runs; to read another, name it",
    ),
    Folder(
        "Several hosts of a run",
        {f"{RUN}/host2.xplane.pb": PLANE, f"{RUN}/host10.xplane.pb": PLANE},
        "They are ranks of one job, in the order of their names.",
        (f"{RUN}/host2.xplane.pb", f"{RUN}/host10.xplane.pb"),
        together=True,
    ),
    Folder(
        "Several spans of one worker",
        {"vm_7.1700000001.pt.trace.json": TRACE, "vm_7.1700000002.pt.trace.json.gz": PACKED},
        "Each is a profile.",
        ("vm_7.1700000001.pt.trace.json", "vm_7.1700000002.pt.trace.json.gz"),
        met="kineto#179",
    ),
    Folder(
        "A rank that wrote nothing; files of other kinds",
        {"rank0.json": TRACE, "rank1.json": b"", "config.json": b'{"steps": 9}', "train.py": b"import torch"},
        "What is a profile is read. Of the rest, what one would ask about is named; all with `-v`.",
        ("rank0.json",),
        "1 file (rank1.json): empty",
        status=3,
    ),
    Folder(
        "More than 16 profiles",
        {f"run{number}.json": TRACE for number in range(18)},
        "The first 16 are read; of a job's ranks all.",
        tuple(f"run{number}.json" for number in range(16)),
        "the first 16 of 18 profiles are read",
    ),
)

REFUSED: tuple[Refusal, ...] = (
    Refusal("An empty file", b"", "is empty"),
    Refusal("Text, a log", b"step 1 loss 0.5\n", "is text, not a profile"),
    Refusal("HTML", b"<!DOCTYPE html>\n<p>404</p>", "is a web page"),
    Refusal("UTF-16", TRACE.decode().encode("utf-16"), "is text in UTF-16"),
    Refusal("Other binary data", b"\x89PNG\r\n\x1a\n" + bytes(200), "not a profile"),
    Refusal("Zstandard, xz, bzip2, lz4", lzma.compress(TRACE), "decompress it with `xz -dk`"),
    Refusal("tar, also inside gzip; 7z, RAR", gzip.compress(bz2.compress(TRACE)), "decompress it with `bzip2 -dk`"),
    Refusal("gzip inside gzip", gzip.compress(PACKED), "is gzip inside gzip"),
    Refusal("An encrypted zip archive", zipped({"a": TRACE}, encrypted=True), "is encrypted"),
    Refusal("A zip archive whose members overlap (a bomb)", zipped({"a": TRACE}, repeated=9), "members overlap"),
    Refusal(
        "A pickle (PyTorch's memory snapshot)",
        pickle.dumps({"segments": [2**70]}),
        "stepscope never loads one",
        met="pytorch#115234",
    ),
    Refusal("pprof (JAX's device memory profile)", b"\n\x04\x08\x01\x10\x02\n\x04", "is a pprof profile"),
    Refusal("XPlane in Riegeli records", b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f" + bytes(56), "in Riegeli records"),
    Refusal(
        "SQLite that is no export of Nsight Systems", OTHER_DATABASE.serialize(), "SQLite database", met="nsys-ai#98"
    ),
    Refusal("An export of Nsight Systems without events", export(events=False), "without CUDA or NVTX events"),
    Refusal("JSON of another kind", b'{"nodes": [], "schema": "1.0"}', "JSON without traceEvents"),
    Refusal("A JSON list of other things", b"[1, 2, 3]", "is no trace"),
    Refusal("An empty JSON list", b"[]", "is an empty list of events"),
    Refusal(
        "A trace without events",
        trace([]),
        "holds no usable event; record the run again",
        met="HolisticTraceAnalysis#107",
    ),
    Refusal(
        "A trace of names of threads alone",
        trace(events()[:1]),
        "holds no usable event",
        met="HolisticTraceAnalysis#337",
    ),
    Refusal("Cut off before the first event", TRACE[:60], "ends before its traceEvents begin"),
    Refusal(
        "A folder of TensorBoard event files",
        {"train/events.out.tfevents.1": EVENT_FILE, "train/events.out.tfevents.2": EVENT_FILE},
        "holds no profile among 2 files",
        met="tensorboard#4945",
    ),
    Refusal(
        "A folder that `stepscope convert` wrote as Parquet",
        {"info.json": b"{}", "slices.parquet": b"PAR1"},
        "an export to Parquet",
    ),
)
