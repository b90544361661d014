"""The report's figures of what compiled programs need of memory, as XLA assigned it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.analysis.facts import Facts
from stepscope.diagnosis.remedies import INFERS, JAX, TENSORFLOW, TRAINS, Remedies, RemedyPart, remedy
from stepscope.hlo.buffers import Buffer, SpaceUse, Use, read_buffers
from stepscope.report.entries import word
from stepscope.report.limits import KEPT_BESIDE, PROGRAM_BUFFER_BYTES
from stepscope.trace.tables import NULL

if TYPE_CHECKING:
    from stepscope.document import memory as entry

PROGRAMS, BUFFERS = 20, 25
"""Programs in the report, and buffers of each: those that need most."""
_HOST = 5
"""Memory space of the host's memory (``Layout::kHostMemorySpace``)."""

WAYS: dict[str, Remedies] = {
    "donate": {
        JAX: "donate: `jax.jit(f, donate_argnums=...)` lets the result take the memory of the parameter beside it, "
        "where nothing needs that afterwards",
        None: "donate: the result can take the memory of the parameter beside it, where nothing needs that afterwards",
    },
    "recompute": {
        JAX: (
            RemedyPart(
                "recompute: `jax.checkpoint` computes values again for the gradients instead of keeping them; its "
                "offloading policies keep them in the host's memory",
                purposes=TRAINS,
            ),
        ),
        TENSORFLOW: (
            RemedyPart(
                "recompute: `tf.recompute_grad` computes values again for the gradients instead of keeping them",
                purposes=TRAINS,
            ),
        ),
        None: (
            RemedyPart("recompute: computed again for the gradients, a value need not be kept", purposes=TRAINS),
            RemedyPart(
                "less at once: a smaller batch, or the work in parts, needs smaller temporaries", purposes=INFERS
            ),
        ),
    },
    "offload": {
        JAX: "offload: `jax.device_put` to a sharding of the memory kind `pinned_host` keeps a parameter in the host's "
        "memory until it is needed, at the price of the copy",
        None: "offload: a parameter can stay in the host's memory until it is needed, at the price of the copy",
    },
    "pad": {
        None: "pad less: dimensions that are multiples of the tiles the layout has waste nothing",
    },
}
"""What makes a buffer go, by what it is."""
_PADDED = 4
"""A buffer is padded much where at least one byte of so many is padding."""


def program_memory(facts: Facts) -> entry.ProgramMemory | None:
    """``analyses.program_memory``; None where no program of XLA was recorded."""
    trace = facts.trace
    if not len(trace.programs) and not len(trace.xla_ops):
        return None
    ran = set(trace.xla_ops.program[trace.xla_ops.program != NULL].tolist())
    large, without = [], 0
    rows = zip(trace.programs.program.tolist(), trace.programs.module.tolist(), trace.hlo, strict=False)
    for id, module_code, data in rows:
        if ran and id != NULL and id not in ran:
            continue
        program, module = None if id == NULL else id, trace.strings[module_code]
        spaces = read_buffers(data) if data else None
        without += not spaces
        large += [(program, module, space) for space in spaces or () if space.peak >= PROGRAM_BUFFER_BYTES]
    large.sort(key=lambda one: (one[2].space != 0, -one[2].peak))
    programs = [_program(*one) for one in large[:PROGRAMS]]
    used = {buffer["way"] for program in programs for buffer in program["buffers"]}
    return {
        "not_recorded": None if large else _not_recorded(facts, without),
        "without": without,
        "left_out": max(len(large) - PROGRAMS, 0),
        "capacity_bytes": _capacity(facts),
        "programs": programs,
        "ways": {way: text for way in WAYS if way in used and (text := remedy(WAYS[way], facts.workload))},
    }


def _not_recorded(facts: Facts, without: int) -> str:
    if not any(facts.trace.hlo):
        return "This profile does not hold the compiled programs."
    if without:
        return "The programs in this profile do not say where XLA put their buffers (buffer assignment)."
    return "No program of this profile needs memory worth listing."


def _capacity(facts: Facts) -> int | None:
    """What the smallest device has, where it is known of all: the allocator's limit, else the device's memory."""
    limits = [use.headroom.capacity_bytes for use in facts.memory if use.headroom and not use.pool.on_host]
    sizes = [device.memory_bytes for device in facts.trace.info.devices]
    return min(limits, default=None) or (min(size for size in sizes if size) if sizes and all(sizes) else None)


def _program(program: int | None, module: str, space: SpaceUse) -> entry.ProgramUse:
    shown = [one for one in space.buffers if one.bytes >= PROGRAM_BUFFER_BYTES][:BUFFERS]
    return {
        "program": None if program is None else str(program % (1 << 64)),
        "module": module,
        "space": space.space,
        "on_host": space.space == _HOST,
        "peak_bytes": space.peak,
        "unpadded_bytes": space.unpadded,
        "allocated_bytes": space.allocated,
        "by_use": {str(use): size for use, size in space.uses.items()},
        "buffers": [_buffer(one, space) for one in shown],
        "others": {
            "buffers": len(space.buffers) - len(shown),
            "bytes": space.peak - sum(one.bytes for one in shown),
        },
    }


def _buffer(one: Buffer, space: SpaceUse) -> entry.ProgramBuffer:
    return {
        "name": one.name,
        "opcode": one.op.opcode if one.op else None,
        "scope": one.op.scope if one.op else None,
        "source": one.op.source if one.op else None,
        "shape": str(one.shape),
        "use": word(one.use),
        "bytes": one.bytes,
        "unpadded_bytes": one.unpadded,
        "until": one.until,
        "peak_without_bytes": one.peak_without,
        "way": next(_ways(one, space), None),
        "donor": one.donor,
    }


def _ways(one: Buffer, space: SpaceUse) -> Iterator[str]:
    """What would make it go; nothing where the program would need as much without it, or where it is on the host."""
    if space.space == _HOST or one.peak_without >= space.peak:
        return
    if one.bytes - one.unpadded >= one.bytes // _PADDED > 0:
        yield "pad"
    if one.donor is not None:
        yield "donate"
    copied = one.op is not None and one.op.opcode.startswith("copy")
    if one.use is Use.TEMPORARY and one.beside >= KEPT_BESIDE and not copied:
        yield "recompute"
    if one.use is Use.PARAMETER:
        yield "offload"
