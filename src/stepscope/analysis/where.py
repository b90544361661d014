"""Where in the user's program a slice comes from: op, source line, module and annotation."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stepscope.trace.forest import innermost_at
from stepscope.trace.tables import FlowKind, Kind
from stepscope.trace.trace import Trace

_FRAME = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?P<function>.+)$")

LIBRARIES = frozenset(
    (
        *("torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchmetrics", "functorch", "triton"),
        *("transformers", "accelerate", "datasets", "tokenizers", "peft", "trl", "diffusers", "timm", "einops"),
        *("lightning", "pytorch_lightning", "lightning_fabric", "ignite", "fairseq", "deepspeed", "megatron", "apex"),
        *("xformers", "flash_attn", "bitsandbytes", "vllm", "sglang", "mmcv", "mmengine"),
        *("numpy", "scipy", "pandas", "pyarrow", "PIL", "cv2", "sklearn", "tqdm", "wandb", "tensorboard", "fsspec"),
        *("jax", "jaxlib", "flax", "optax", "tensorflow", "keras"),
    )
)
"""Top-level packages whose frames are not the user's own code."""


@dataclass(frozen=True, slots=True)
class Where:
    """A place in the user's program; every part is None where it was not recorded."""

    file: str | None = None
    line: int | None = None
    function: str | None = None
    op: str | None = None
    module: str | None = None
    annotation: str | None = None

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return any((self.file, self.op, self.module, self.annotation))


@dataclass(frozen=True, slots=True)
class Frame:
    """One Python frame: where its function starts or, in a recorded call stack, the line being run."""

    file: str
    line: int
    function: str

    @property
    def is_users(self) -> bool:
        """Whether the frame is the user's own code: neither a known library nor the standard library."""
        if "site-packages/" in self.file or "dist-packages/" in self.file or self.file.startswith("<"):
            return False
        if re.search(r"(^|/)lib/python3\.\d+/", self.file):
            return False
        root = self.file.split("/")[0].removesuffix(".py")
        # An absolute path is the user's unless it went through a package folder above.
        return self.file.startswith("/") or (root not in LIBRARIES and root not in sys.stdlib_module_names)


def parse_frame(name: str) -> Frame | None:
    """Read ``path/file.py(12): function``; None for built-ins and modules."""
    found = _FRAME.match(name)
    return Frame(found["file"], int(found["line"]), found["function"]) if found else None


class Locator:
    """Answers where a slice comes from, by climbing to what encloses it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def where(self, slice_id: int) -> Where:
        """The place of a slice: outermost-op caller lines beat library internals; annotations are the fallback."""
        chain = self.enclosing(slice_id)
        place = self._describe(chain)
        if place.file is None:
            forward = self._forward_of(chain)
            if forward is not None:
                origin = self._describe(self.enclosing(forward))
                place = Where(
                    origin.file,
                    origin.line,
                    origin.function,
                    place.op,
                    origin.module or place.module,
                    place.annotation or origin.annotation,
                )
        return place

    def where_at(self, track: int, time_ns: int) -> Where:
        """The place of what a thread was doing at an instant."""
        found = innermost_at(self.trace.slices, np.array([track], np.int32), np.array([time_ns], np.int64))
        return self.where(int(found[0])) if found[0] >= 0 else Where()

    def enclosing(self, slice_id: int) -> list[int]:
        """The slice and all that enclose it, innermost first."""
        chain = []
        while slice_id >= 0:
            chain.append(slice_id)
            slice_id = int(self.trace.slices.parent[slice_id])
        return chain

    def outermost_op(self, slice_id: int) -> int | None:
        """The outermost host op around a slice that is not autograd's own wrapper."""
        ops = [s for s in self.enclosing(slice_id) if self.trace.slices.kind[s] == Kind.HOST_OP]
        named = [s for s in ops if not self.trace.name_of(s).startswith("autograd::engine")]
        return (named or ops)[-1] if ops else None

    def _describe(self, chain: list[int]) -> Where:
        kinds = self.trace.slices.kind[chain]
        names = [self.trace.name_of(s) for s in chain]
        frames = [parse_frame(names[i]) for i in np.flatnonzero(kinds == Kind.PYTHON_FRAME)]
        known = [frame for frame in frames if frame is not None] or self._stack(chain)
        own = next((frame for frame in known if frame.is_users), known[0] if known else None)
        ops = [names[i] for i in np.flatnonzero(kinds == Kind.HOST_OP) if not names[i].startswith("autograd::engine")]
        module = next((names[i].removeprefix("nn.Module: ") for i in np.flatnonzero(kinds == Kind.MODULE)), None)
        annotation = next((names[i] for i in np.flatnonzero(kinds == Kind.ANNOTATION)), None)
        return Where(
            own.file if own else None,
            own.line if own else None,
            own.function if own else None,
            ops[-1] if ops else None,
            module,
            annotation,
        )

    def _stack(self, chain: list[int]) -> list[Frame]:
        """Frames of the call stack recorded with an op, innermost first."""
        for slice_id in chain:
            code = self._stacks.get(slice_id)
            if code is not None:
                frames = [parse_frame(text.strip()) for text in self.trace.strings[code].split(";")]
                return [frame for frame in frames if frame is not None]
        return []

    @cached_property
    def _stacks(self) -> dict[int, int]:
        ops = self.trace.host_ops
        known = ops.call_stack >= 0
        return dict(zip(ops.slice[known].tolist(), ops.call_stack[known].tolist(), strict=True))

    def _forward_of(self, chain: list[int]) -> int | None:
        """The forward op of a backward one: the code that ran it is the code that asked for its gradient."""
        return next((self._forward[s] for s in chain if s in self._forward), None)

    @cached_property
    def _forward(self) -> dict[int, int]:
        flows = self.trace.flows
        wanted = flows.kind == FlowKind.FORWARD_BACKWARD
        return dict(zip(flows.target[wanted].tolist(), flows.source[wanted].tolist(), strict=True))
