"""The compiled modules that a file carries (plane ``/host:metadata``) and the instructions its ops name."""

from __future__ import annotations

import re
from functools import cached_property

from stepscope.formats.xplane.space import Space
from stepscope.hlo.instructions import HloModule, HloOp, read_hlo
from stepscope.protobuf.columns import decode, texts
from stepscope.regex import regex
from stepscope.trace.tables import NULL

Key = tuple[str, int | None]
"""Name and program id of a module."""

_PROGRAM = regex(r"(?P<module>.*)\((?P<program>-?\d{1,20})\)$", re.DOTALL)


def module_and_program(name: str) -> Key:
    """Read ``jit_step(6)``.

    >>> module_and_program("jit_step(6)"), module_and_program("jit_step")
    (('jit_step', 6), ('jit_step', None))
    """
    match = _PROGRAM.match(name)
    if match is None:
        return name, None
    # Ids are 64 bits; where they are written unsigned, columns still hold them signed.
    return match["module"], (int(match["program"]) + (1 << 63)) % (1 << 64) - (1 << 63)


class Modules:
    """The modules of one file, parsed when first asked for."""

    def __init__(self, space: Space) -> None:
        self._space = space
        rows, starts, ends = space.name_stats.spans("Hlo Proto")
        programs = space.name_stats.integers("program_id", rows.astype("intp"))
        names = decode(space.data, texts(space.data, space.names.spans[rows], 2))
        self._places: dict[Key, tuple[int, int]] = {}
        for name, program, start, end in zip(names, programs.tolist(), starts.tolist(), ends.tolist(), strict=True):
            module, written = module_and_program(name or "")
            self._places[module, written if program == NULL else program] = start, end
        self._parsed: dict[Key, HloModule] = {}

    @property
    def keys(self) -> list[Key]:
        """The modules, in file order."""
        return list(self._places)

    def protos(self, keys: list[Key]) -> list[bytes]:
        """The bytes of some modules as the file has them; none of one that it does not have."""
        places = [self._places.get(key, (0, 0)) for key in keys]
        return [self._space.data[start:end].tobytes() for start, end in places]

    def op(self, module: str | None, program: int | None, op: str | None) -> HloOp | None:
        """The instruction of a module; a module without a program is the only one of its name."""
        key = self._key(module, program)
        return self.module(key).ops.get(op) if key is not None and op is not None else None

    def _key(self, module: str | None, program: int | None) -> Key | None:
        if module is not None and (module, program) in self._places:
            return module, program
        known = self._by_part.get(module if program is None else program, [])
        return known[0] if len(known) == 1 else None

    def module(self, key: Key) -> HloModule:
        """A module of this file."""
        if key not in self._parsed:
            self._parsed[key] = read_hlo(self._space.data, *self._places[key])
        return self._parsed[key]

    @cached_property
    def _by_part(self) -> dict[str | int | None, list[Key]]:
        """Modules by their name, and by their program."""
        keys: dict[str | int | None, list[Key]] = {}
        for key in self._places:
            for part in key:
                keys.setdefault(part, []).append(key)
        return keys
