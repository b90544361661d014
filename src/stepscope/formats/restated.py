"""What stepscope's own exports say of a run where the format they are written in has no words for it.

Files of others have none of this. Everything here is input: what does not hold together is left aside, and the file is
read like any other.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import msgspec
import numpy as np

from stepscope.trace import tables as t
from stepscope.trace.builder import TraceBuilder
from stepscope.trace.check import LONGEST_NS, steps_fault
from stepscope.trace.select import CUT
from stepscope.trace.trace import Device, InferredSteps, Info, Loss, Trace

_Signed = Annotated[int, msgspec.Meta(gt=t.NULL, le=(1 << 63) - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class OwnRun(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What no format has words for."""

    framework: str | None = None
    framework_oldest: tuple[_Number, _Number] | None = None
    framework_newest: tuple[_Number, _Number] | None = None
    resolution_ns: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    programs: list[tuple[_Signed | None, str, str | None]] = msgspec.field(default_factory=list)
    """Id, module and parameters of the programs."""
    steps: InferredSteps | None = None
    """In the file's time."""

    def steps_from(self, origin: int) -> InferredSteps | None:
        """The inferred steps, if they can be ones, from an origin in ns of the file's time."""
        if self.steps is None or steps_fault(self.steps) or abs(origin) > LONGEST_NS:
            return None
        start, end = (tuple(at - origin for at in times) for times in (self.steps.start_ns, self.steps.end_ns))
        moved = dataclasses.replace(self.steps, start_ns=start, end_ns=end)
        return None if steps_fault(moved) else moved

    def restore_programs(self, builder: TraceBuilder) -> None:
        """Fill the table of programs."""
        text, rows = builder.text, self.programs
        builder.table(
            t.Programs(
                program=np.array([t.NULL if number is None else number for number, _, _ in rows], np.int64),
                module=np.array([text(module) for _, module, _ in rows], np.int32),
                parameters=np.array([text(parameters) for _, _, parameters in rows], np.int32),
            )
        )


class OwnDevice(msgspec.Struct, omit_defaults=True):
    """A device (``trace.Device``)."""

    id: _Number
    name: str | None = None
    memory_bytes: _Count | None = None
    multiprocessors: _Count | None = None
    compute_capability: tuple[_Count, _Count] | None = None
    kind: str = "gpu"
    clock_khz: _Count | None = None
    memory_bandwidth: _Count | None = None


class OwnSpace(OwnRun, omit_defaults=True, kw_only=True):
    """What XPlane has no words for."""

    rank: _Number | None = None
    world_size: _Number | None = None
    process_groups: list[dict[str, Any]] = msgspec.field(default_factory=list)
    options: dict[str, bool] = msgspec.field(default_factory=dict)
    devices: list[OwnDevice] = msgspec.field(default_factory=list)

    def restored(self, info: Info, origin: int) -> Info:
        """What was known of the run when the file was written; ``origin`` is the trace's, in ns of the file's time."""
        return dataclasses.replace(
            info,
            framework=self.framework,
            framework_oldest=self.framework_oldest,
            framework_newest=self.framework_newest,
            resolution_ns=self.resolution_ns or info.resolution_ns,
            rank=self.rank,
            world_size=self.world_size,
            process_groups=tuple(self.process_groups),
            options=self.options,
            devices=tuple(Device(**msgspec.structs.asdict(device)) for device in self.devices),
            steps=self.steps_from(origin),
        )


class OwnPart(msgspec.Struct):
    """What is known of a recorded file out of which events were cut."""

    run: OwnSpace
    """As it was known of the whole; steps from the start of the first slice that is left."""
    cuts: list[tuple[_Count, str]]
    """How many slices were cut out, and the words of it."""

    def told(self) -> list[Loss]:
        """That something was cut out, as it is on record."""
        return [Loss(CUT, count, text) for count, text in self.cuts]


def space_of(trace: Trace) -> OwnSpace:
    """What XPlane has no words for, of a trace."""
    info = trace.info
    return OwnSpace(
        framework=info.framework,
        framework_oldest=info.framework_oldest,
        framework_newest=info.framework_newest,
        programs=programs_of(trace),
        steps=info.steps,
        resolution_ns=info.resolution_ns,
        rank=info.rank,
        world_size=info.world_size,
        process_groups=[dict(group) for group in info.process_groups],
        options=dict(info.options),
        devices=[OwnDevice(**dataclasses.asdict(device)) for device in info.devices],
    )


def programs_of(trace: Trace) -> list[tuple[int | None, str, str | None]]:
    """The programs of a trace, to be restated."""
    return trace.table("programs").rows()
