"""What compiled programs need of memory, in the document and for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import stepscope
from stepscope.report import terminal
from tests.formats.xplane import xplane_files
from tests.hlo.test_hlo_buffers import ALLOCATE, FREE, MB, allocation, heap, program, value
from tests.kit.wire import message
from tests.kit.xplanes import Ev, Plane, space

US = 1_000_000


def document(folder: Path, hlo: bytes) -> dict[str, Any]:
    metadata = Plane("/host:metadata", shared={"jit_f(7)": {"Hlo Proto": hlo}}, extra_names=("jit_f(7)",))
    stats = {"hlo_op": "op1", "hlo_module": "jit_f", "program_id": 7, "device_ordinal": 0}
    path = folder / "host.xplane.pb"
    path.write_bytes(space(metadata, xplane_files.host(Ev("op1", 0, US, stats))))
    return stepscope.open(path).document()


def kept_value() -> bytes:
    """op2 lives while two others take memory, op3 is used at once; a result has a parameter of its size."""
    values = [value(id, MB, id) for id in range(6)]
    kept = [allocation(0, MB, 0, parameter=1), allocation(1, MB, 1, live=1), allocation(2, 3 * MB, 2, 3, 4)]
    events = heap((ALLOCATE, 2), (ALLOCATE, 3), (FREE, 3), (ALLOCATE, 4), (FREE, 4), (FREE, 2))
    return program(values, kept, [events])


def test_what_makes_each_buffer_go_is_told_where_something_is_gained(tmp_path: Path) -> None:
    found = document(tmp_path, kept_value())["analyses"]["program_memory"]
    assert found["not_recorded"] is None
    (one,) = found["programs"]
    assert (one["module"], one["program"], one["peak_bytes"]) == ("jit_f", "7", 4 * MB)
    told = {buffer["name"]: (buffer["way"], buffer["donor"]) for buffer in one["buffers"]}
    assert told == {"op0": ("offload", None), "op1": ("donate", "op0"), "op2": ("recompute", None), "op3": (None, None)}
    assert found["ways"].keys() == {"donate", "recompute", "offload"}


def test_people_read_the_same(tmp_path: Path) -> None:
    text = terminal.render(document(tmp_path, kept_value()), verbose=True)
    assert "Memory of compiled programs" in text
    assert "when jit_f needs most of it" in text
    assert "4.00 MiB" in text


def test_a_program_that_does_not_say_it_is_not_recorded(tmp_path: Path) -> None:
    found = document(tmp_path, message((1, message((1, "jit_f"), (5, 7)))))["analyses"]["program_memory"]
    assert found["programs"] == []
    assert "buffer assignment" in found["not_recorded"]
