"""The dialects of Chrome-trace JSON: who writes it, what reads it, and which arguments that needs as columns."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepscope.record import record
from stepscope.trace.trace import ANY_EVENTS

if TYPE_CHECKING:
    from stepscope.formats.chrome.events import Filled, RawEvents

OF_EVENT = ("id", "id2")
"""Keys of an event itself, which connect events; all others are keys of its ``args``."""
NODE_INPUTS = tuple(f"input{number}" for number in range(32))
"""Inputs of a node that are read of a Timeline."""


@record
class Dialect:
    """One producer's way to write Chrome-trace JSON, told by what the events hold."""

    name: str
    """What ``Info.format`` says."""
    home: str
    """The module among the formats that has ``recognise`` and ``fill``; imported when it is asked."""
    keys: tuple[str, ...] = ()
    """Its arguments that become columns, as ``args`` spells them; everything else stays in the file."""

    def recognise(self, events: RawEvents) -> bool:
        """Whether the events are this producer's."""
        return bool(self._home.recognise(events))

    def fill(self, events: RawEvents) -> Filled:
        """Make the tables of this producer's events."""
        filled: Filled = self._home.fill(events)
        return filled

    @property
    def _home(self) -> Any:
        return import_module(f"stepscope.formats.{self.home}")


_OWN = (
    "stepscope kind", "stepscope launch", "stepscope marker", "stepscope memory", "allocator", "node", "inputs",
    "placement", "op", "stepscope scheduled ns", "stepscope op start ns", "stepscope op end ns", "step_num",
    "stepscope call line", "stepscope begun", "tf_op", "hlo_category",
)  # fmt: skip
"""What stepscope's own files say where Kineto has no word for it (``own.py``)."""

DIALECTS: tuple[Dialect, ...] = (
    Dialect("Kineto JSON", "chrome.kineto", (
        "correlation", "External id", "external id", "stream", "device", "bytes", "size", "kind", "direction", "grid",
        "block", "registers per thread", "shared memory", "est. achieved occupancy %", "graph id", "Sequence number",
        "Fwd thread id", "Input Dims", "Input type", "Concrete Inputs", "Call stack", "Collective name",
        "Process Group Name", "Process Group Description", "dtype", "Python id", "In msg nelems", "Group size",
        "wait_on_stream", "wait_on_cuda_event_record_corr_id", "Device Type", "Device Id", "Addr", "Bytes",
        "Total Allocated", "Total Reserved", "hlo_op", "hlo_module", *_OWN,
    )),
    Dialect("TensorFlow Timeline", "tf1.timeline", ("name", "op", "kernel", "snapshot", *NODE_INPUTS)),
    Dialect("XLA trace JSON", "chrome.xla", (
        "name", "step_num", "_r", "hlo_op", "hlo_module", "program_id", "run_id", "device_ordinal", "correlation_id",
        "hlo_category", "tf_op", "flops", "bytes_accessed", "source", "replica_groups", "memcpy_details",
        "Memset_details", "kernel_details",
    )),
    Dialect(ANY_EVENTS, "chrome.generic", ("name",)),
)  # fmt: skip
"""Asked in this order; the last takes everything."""

KEYS = tuple(dict.fromkeys((*OF_EVENT, *(key for dialect in DIALECTS for key in dialect.keys))))
"""Every argument that becomes a column."""
