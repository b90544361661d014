"""What every real trace's document holds, section by section, as digests: ``python -m tests.report.digests [NAME...]``.

A change that is about speed leaves ``digests.txt`` as it is; one that changes reports by intent writes it again with
that command, which names the sections that changed. The file has one sorted line per trace and section.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepscope import pipeline
from stepscope.errors import StepscopeError
from tests.kit.traces import KINETO_NAMES, traces_folder

KEPT = Path(__file__).with_name("digests.txt")
HOSTILE = (
    *("arguments_out_of_range", "compare_zero_step", "huge_world_size", "lone_surrogate_convert", "many_devices_hang"),
    *("many_streams_slow", "negative_gradient_ranks", "negative_world_size", "query_integer_overflow"),
    *("rank_below_int64", "xla_zero_window"),
)
NAMES = (
    *(f"hostile/{name}.json.gz" for name in HOSTILE),
    *(f"kineto/{name}.json.gz" for name in KINETO_NAMES),
    "kineto/a100_rank[01]_of_128.json.gz",
    "profiler_service/torch_process_captured_by_tf_client.xplane.pb",
    *(f"timeline/{name}" for name in ("tf1_run_metadata.pb", "tf1_timeline.json", "tf1_timeline_memory.json")),
    "timeline/tf1_timeline_nodataflow.json",
    "xplane/jax_cpu4_json/vm.trace.json.gz",
    *(f"xplane/{name}.xplane.pb" for name in ("mi300_jax_attention", "mi300_jax_conv", "tpu_v6e_4_chips")),
    "xplane/v100_many_processes.xplane.pb",
)
"""Files, and a pattern of two ranks that are one job."""
DIGITS = 9
"""Of floats: sums in another order differ behind them."""


def sections_of(name: str) -> dict[str, str]:
    """The digest of each section of a trace's document; of one that cannot be read, of the sentence that says so."""
    try:
        document = pipeline.open(str(traces_folder() / name), workers=1).document()
    except StepscopeError as error:
        return {"error": _digest(error.sentence)}
    return {section: _digest(value) for section, value in _sections(document)}


def _sections(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is digested apart: the top-level keys, and of ``analyses`` and ``summary`` each of theirs."""
    for key, value in document.items():
        if key in ("analyses", "summary"):
            yield from ((f"{key}.{part}", held) for part, held in value.items())
        elif key not in ("schema", "tool"):  # Their versions change by themselves.
            yield key, value


def _digest(value: Any) -> str:
    """Eight digits; where the traces lie does not matter."""
    text = json.dumps(_rounded(value), sort_keys=True).replace(json.dumps(str(traces_folder()))[1:-1], "")
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(held) for key, held in value.items()}
    return [_rounded(held) for held in value] if isinstance(value, (list, tuple)) else value


def kept() -> dict[str, dict[str, str]]:
    """Of each trace, the digests that are kept."""
    found: dict[str, dict[str, str]] = {}
    for line in KEPT.read_text(encoding="utf-8").splitlines():
        name, section, digest = line.split()
        found.setdefault(name, {})[section] = digest
    return found


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The sections that differ, are new, or are gone."""
    return sorted(section for section in before | after if before.get(section) != after.get(section))


def main(names: list[str]) -> None:
    """Write the digests of these traces (of all) again, and say which sections changed."""
    found = kept() if KEPT.exists() else {}
    for name in names or NAMES:
        before, found[name] = found.get(name, {}), sections_of(name)
        if differ := changed(before, found[name]):
            print(f"{name}: {', '.join(differ)}")
    lines = [f"{name} {section} {digest}\n" for name in NAMES for section, digest in found.get(name, {}).items()]
    KEPT.write_text("".join(sorted(lines)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
