"""FLOPs and bytes of ops of real profiles, as stepscope and as XProf count them: ``python -m tests.truth.xprof``.

Writes ``docs/xprof.json``; needs the real traces, and a Python with XProf, which ``STEPSCOPE_XPROF_PYTHON`` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stepscope.analysis.analyse import analyse
from stepscope.analysis.roofline import op_roofs
from stepscope.formats.xplane import read as xplane
from stepscope.inputs.source import Source
from stepscope.trace.tables import NULL
from tests.kit.traces import REPOSITORY, traces_folder

PROFILES = ("mi300_jax_conv", "mi300_jax_attention", "tpu_v6e_4_chips")
PAGE = REPOSITORY / "docs" / "xprof.json"
TOLERANCE = 0.01
"""Of one execution's FLOPs and bytes."""

CONVERT = """
import json, sys
from xprof.convert import raw_to_tool_data
data = raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "hlo_stats", {"use_saved_result": False})[0]
print(data.decode() if isinstance(data, bytes) else data)
"""


@dataclass(frozen=True)
class Counted:
    """One op: what an execution of it computes and moves, by stepscope and by XProf."""

    profile: str
    program: str
    op: str
    kind: str
    flops: int | None
    xprof_flops: int
    bytes: int | None
    xprof_bytes: int
    reason: str
    """Why the two differ; empty where they agree."""


def xprof_ops(path: Path, python: str) -> dict[tuple[str, str], tuple[int, int]]:
    """FLOPs and bytes of one occurrence of each op, by program and name."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "host.xplane.pb"
        copied.write_bytes(path.read_bytes())
        done = subprocess.run([python, "-c", CONVERT, str(copied)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found = {}
    for row in _rows(json.loads(done.stdout)):
        seconds = row["total_self_time"] / row["occurrences"] / 1e6
        flops, moved = row["model_flop_rate"] * 1e9 * seconds, row["measured_memory_bw"] * (1 << 30) * seconds
        found[str(row["program_id"]), str(row["hlo_op_name"])] = round(flops), round(moved)
    return found


def _rows(tool: Any) -> list[dict[str, Any]]:
    table = tool[0] if isinstance(tool, list) else tool
    ids = [column["id"] for column in table["cols"]]
    return [dict(zip(ids, [cell["v"] for cell in row["c"]], strict=True)) for row in table["rows"]]


def counted(profile: str, python: str) -> list[Counted]:
    """Every op that both know."""
    path = traces_folder() / "xplane" / f"{profile}.xplane.pb"
    facts = analyse(xplane.read(Source(path)))
    theirs, found = xprof_ops(path, python), {}
    for op in (op for work in facts.work for op in op_roofs(work) if op.place is not None):
        place = op.place
        assert place is not None
        program = int(facts.trace.programs.program[place.number])
        key = str(program % (1 << 64)) if program != NULL else "", op.name
        if key not in theirs or op.roof.flops is None or op.roof.bytes is None:
            continue
        flops, moved = op.roof.flops // op.roof.count, op.roof.bytes // op.roof.count
        found[key] = Counted(profile, key[0], op.name, str(op.kind), flops, theirs[key][0], moved, theirs[key][1],
                             reason(str(op.kind), place.one.opcode, (flops, moved), theirs[key]))  # fmt: skip
    return list(found.values())


def near(mine: int, theirs: int) -> bool:
    """Whether two counts agree."""
    return abs(mine - theirs) <= TOLERANCE * max(mine, theirs) + 1


def reason(kind: str, opcode: str, mine: tuple[int, int], theirs: tuple[int, int]) -> str:
    """Why stepscope's figures are not XProf's, where a reason is known; ``?`` where none is."""
    if near(mine[0], theirs[0]) and near(mine[1], theirs[1]):
        return ""
    if opcode == "custom-call" and theirs == (0, 0):
        return "XProf counts nothing for this library's call; the shapes and the backend's decisions tell it"
    if near(mine[1], theirs[1]) and kind in ("elementwise", "reduction"):
        return "XProf counts clock cycles that elementwise ops take on GPUs, stepscope one operation per element"
    return "?"


def measure(python: str) -> list[Counted]:
    """All profiles at hand."""
    return [one for profile in PROFILES for one in counted(profile, python)]


if __name__ == "__main__":
    rows = measure(os.environ["STEPSCOPE_XPROF_PYTHON"])
    PAGE.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
