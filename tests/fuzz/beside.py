"""What lies beside a profile and adds to it: the manifest of ``stepscope run``, TensorFlow's log of placement."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from stepscope.capture.results import recordings
from tests.formats.beside import placement_logs
from tests.fuzz.mutations import anyhow, change, written
from tests.fuzz.oracle import depth_of, examine
from tests.fuzz.seeds import kineto
from tests.kit import lazy_reports

_NAME = "profile"


def manifests() -> list[bytes]:
    """One that tells of everything, and one of a process that recorded nothing."""
    file = {
        "path": _NAME, "bytes": 99, "steps": 4, "first_step": 3,
        "metrics": {"before": lazy_reports.BEFORE, "after": lazy_reports.AFTER},
        "looks": {"places": [["train.py", 7, "main"], ["data.py", 9, "load"]], "thread": 1, "place": [0, 1],
                  "time_ns": [1_700_000_000_000_000_000, 5]},
    }  # fmt: skip
    facts: dict[str, Any] = {
        "schema": "stepscope.capture/1", "host": "node7", "pid": 77, "rank": 0, "world_size": 2, "python": "3.11.7",
        "command": ["train.py", "-x"], "started_ns": 1_700_000_000_000_000_000,
        "options": {"active": 3, "stacks": True, "shapes": False}, "framework": "torch", "framework_version": "2.4.1",
        "switches": {"stacks": {"on": False, "adds": "lines"}, "shapes": {"on": False, "adds": "shapes of tensors"}},
        "window": {"ended": "the job ended", "steps": 0, "first_step": 3}, "steps_seen": 9, "overhead": 1.5,
        "step_ns": {"recorded": 2000, "unrecorded": 1000, "each": {"recorded": [3000, 1000], "unrecorded": [1000]}},
        "periods": None, "files": [file], "own_traces": ["a.json"],
        "failures": [{"when": "starting the profiler", "what": "RuntimeError: no"}],
    }  # fmt: skip
    return [json.dumps(facts).encode(), json.dumps({**facts, "files": [], "framework": None}).encode()]


def texts(random: Random, data: bytes, other: bytes) -> bytes:
    """Lines of the reports within a manifest changed."""
    try:
        facts = json.loads(data)
        reports = facts["files"][0]["metrics"]
        name = random.choice(list(reports))
        reports[name] = lines(random, reports[name].encode(), lazy_reports.AFTER.encode()).decode("utf-8", "replace")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return anyhow(random, data, other)
    if random.random() < 0.3:
        change(random, facts["files"][0])
    return written(facts)


_WORDS = (
    "9" * 30, "9" * 5000, "1e999", "-1", "0.5", "99999999999d", "1us", "-5us", "7PB", "NaN", "", "\u00b2", "x" * 400,
    "/job:a/device:GPU:99999999999999999999", "(Op)", ": ", "Metric", "Counter: a", "  Value: 3", "\0", "\u2028", "\\",
    "Executing op X in device /job:localhost/replica:0/task:0/device:CPU:0",
)  # fmt: skip


def lines(random: Random, data: bytes, other: bytes) -> bytes:
    """Lines of a text put elsewhere, repeated, cut or left out, and their words replaced."""
    found, more = data.split(b"\n"), other.split(b"\n")
    at = random.randrange(len(found))
    match random.randrange(5):
        case 0:
            found.insert(at, random.choice(more))
        case 1:
            found[at : at + 1] = [found[at]] * random.choice((0, 2, 400))
        case 2:
            found[at] = anyhow(random, found[at], random.choice(more))
        case _:
            words = found[at].split(b" ")
            words[random.randrange(len(words))] = random.choice(_WORDS).encode()
            found[at] = b" ".join(words)
    return b"\n".join(found)


def manifest(folder: Path, data: bytes, number: int) -> str:
    """What a manifest says of a folder's recordings, and of the profile that it lists."""
    path = folder / _NAME
    if not path.exists():
        path.write_bytes(kineto()[0])
    (folder / "host.1.stepscope.json").write_bytes(data)
    for each in recordings(folder, 0):
        assert isinstance(each.steps, int)
        assert isinstance(each.who, str)
        assert all(own.is_file() for own in each.own_traces)
        assert set(each.profiles) <= {path}, "a manifest leads out of its folder"
    return examine(path, depth=depth_of(number))


def placements() -> list[bytes]:
    """Logs of two generations."""
    return [text.encode() for text in (placement_logs.EAGER + placement_logs.GRAPH, placement_logs.OLD)]
