"""Which versions of a framework a profile can be of: by how the file is written, by names in it, by its date.

Every bound is one that holds for certain; where a change came between two releases the wider one is taken.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime

from stepscope.record import record
from stepscope.regex import regex

Version = tuple[int, int]
"""Major and minor version of a framework."""

_LONGEST = 2_048
_VERSION = regex(r"\s*v?(\d{1,4})\.(\d{1,4})(?!\d)")


@record
class Range:
    """The framework is of a version from ``oldest`` to ``newest``; None where nothing bounds it."""

    oldest: Version | None = None
    newest: Version | None = None

    def __and__(self, other: Range) -> Range:
        """What holds where both do."""
        oldest = max((one.oldest for one in (self, other) if one.oldest), default=None)
        newest = min((one.newest for one in (self, other) if one.newest), default=None)
        return Range(oldest, newest)

    @property
    def is_possible(self) -> bool:
        """Whether any version lies in it."""
        return self.oldest is None or self.newest is None or self.oldest <= self.newest


def parsed(text: object) -> Version | None:
    """The version that a framework says it is.

    >>> parsed("2.4.1+cu121"), parsed("unknown")
    ((2, 4), None)
    """
    match = _VERSION.match(text[:_LONGEST]) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match else None


# --- how PyTorch's profiler writes ----------------------------------------------------------------------------------

_KINETO: tuple[tuple[str, str, Range], ...] = (
    # libkineto/src/output_json.cpp wrote "Operator", "Runtime", "Kernel" and "Memcpy" until early 2022; files of August
    # 2022 (PyTorch 1.12) have the names of ActivityType, as have all since.
    ("category", "Operator", Range(None, (1, 12))),
    ("category", "Runtime", Range(None, (1, 12))),
    ("category", "cpu_op", Range((1, 11), None)),
    ("category", "cuda_runtime", Range((1, 11), None)),
    ("category", "python_function", Range((1, 11), None)),  # torch/csrc/autograd/profiler_python.cpp, new in 1.11
    # libkineto: pytorch/kineto#928, May 2024, after the release of 2.3.
    ("root key", "baseTimeNanoseconds", Range((2, 4), None)),
)
"""What a file has, and what that says of PyTorch's version."""


def of_kineto(categories: Collection[str], root_keys: Collection[str]) -> Range:
    """The versions of PyTorch that write a profile with these categories and root keys.

    >>> of_kineto({"Operator", "Kernel"}, set()).newest
    (1, 12)
    """
    has = {"category": categories, "root key": root_keys}
    all_versions = Range()
    for part, name, versions in _KINETO:
        if name in has[part]:
            all_versions &= versions
    return all_versions if all_versions.is_possible else Range()


# --- names of what came with a version ------------------------------------------------------------------------------

_SINCE: dict[str, tuple[tuple[re.Pattern[str], Version], ...]] = {
    "PyTorch": tuple(
        (regex(pattern), version)
        for pattern, version in (
            # Release notes of 2.0: torch.compile (TorchDynamo, AOTAutograd, TorchInductor), SDPA as a public op.
            (r"(?:^|/)torch/_(?:dynamo|inductor|functorch)/", (2, 0)),
            (r"^(?:Torch-Compiled Region|TorchDynamo Cache Lookup|## Call CompiledFxGraph)", (2, 0)),
            (r"^aten::_?scaled_dot_product_(?:flash_|efficient_)?attention$", (2, 0)),
            (r"^triton_(?:poi|red|per|tem|for)_fused_", (2, 0)),
            (r"^aten::_scaled_mm$", (2, 1)),  # release notes of 2.1: float8
            (r"^aten::_scaled_dot_product_cudnn_attention$", (2, 2)),  # aten/src/ATen/native/native_functions.yaml
            (r"^aten::_fused_sgd_$", (2, 3)),  # release notes of 2.3: SGD(fused=True)
            (r"^aten::rms_norm$", (2, 4)),  # release notes of 2.4: torch.nn.RMSNorm
        )
    )
}


def of_names(framework: str | None, names: Collection[str]) -> Range:
    """The versions of a framework in which all these ops, ranges and frames exist.

    >>> of_names("PyTorch", ["torch/_dynamo/eval_frame.py(574): _fn"]).oldest
    (2, 0)
    """
    known = _SINCE.get(framework or "", ())
    texts = [name[:_LONGEST] for name in names] if known else []
    versions = (version for pattern, version in known if any(map(pattern.search, texts)))
    return Range(max(versions, default=None))


# --- the date -------------------------------------------------------------------------------------------------------

_RELEASES: dict[str, tuple[tuple[Version, str], ...]] = {
    # github.com/pytorch/pytorch/wiki/PyTorch-Versions and its list of releases.
    "PyTorch": (
        ((1, 8), "2021-03-04"), ((1, 9), "2021-06-15"), ((1, 10), "2021-10-21"), ((1, 11), "2022-03-10"),
        ((1, 12), "2022-06-28"), ((1, 13), "2022-10-28"), ((2, 0), "2023-03-15"), ((2, 1), "2023-10-04"),
        ((2, 2), "2024-01-30"), ((2, 3), "2024-04-24"), ((2, 4), "2024-07-24"), ((2, 5), "2024-10-17"),
        ((2, 6), "2025-01-29"),
    ),
    # github.com/tensorflow/tensorflow/releases
    "TensorFlow": (
        ((1, 0), "2017-02-15"), ((1, 14), "2019-06-19"), ((2, 0), "2019-09-30"), ((2, 4), "2020-12-14"),
        ((2, 5), "2021-05-13"),
    ),
}  # fmt: skip
"""When versions were released: up to the last that any advice asks for."""


def of_date(framework: str | None, epoch_ns: int | None) -> Range:
    """The versions that were out when a profile was recorded. Nothing is said of a time before the first (a clock that
    is wrong), nor from the last on. Builds of a version to come exist, but what they have new is weeks old then.

    >>> of_date("PyTorch", 1_623_142_623_000_000_000).newest
    (1, 8)
    """
    releases = _RELEASES.get(framework or "", ())
    if epoch_ns is None or not releases:
        return Range()
    out = [version for version, day in releases if _epoch_ns(day) <= epoch_ns]
    return Range(None, max(out)) if 0 < len(out) < len(releases) else Range()


def _epoch_ns(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000_000_000
