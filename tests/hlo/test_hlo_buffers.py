"""What a compiled program needs of memory: a heap of values that come, share and go."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.hlo.buffers import SpaceUse, Use, read_buffers
from tests.kit.wire import message, packed

ALLOCATE, FREE, SHARE = range(3)
MB = 1 << 20


def array(*dims: int, kind: int = 11) -> bytes:
    return message((2, kind), (3, packed(*dims)))


def instruction(id: int, name: str, opcode: str, *dims: int) -> bytes:
    return message((1, name), (2, opcode), (3, array(*dims)), (35, id))


def value(id: int, size: int, made_by: int, color: int = 0) -> bytes:
    return message((1, id), (2, size), (3, message((4, made_by))), (4, color))


def allocation(index: int, size: int, *values: int, color: int = 0, **said: int) -> bytes:
    fields = {"local": 3, "parameter": 5, "live": 7, "constant": 12}
    assigned = [(9, message((1, one))) for one in values]
    return message((1, index), (2, size), *((fields[key], on) for key, on in said.items()), (8, color), *assigned)


def heap(*events: tuple[int, ...]) -> bytes:
    """Events as kind, value, and the value whose memory is shared."""
    return message(*((1, message((1, kind), (2, one), (4, f"op{one}"), (5, other[0] if other else 0)))
                     for kind, one, *other in events))  # fmt: skip


def program(values: list[bytes], allocations: list[bytes], heaps: list[bytes], ops: list[bytes] | None = None) -> bytes:
    made = ops or [instruction(id, f"op{id}", "fusion", MB // 4) for id in range(10)]
    module = message((1, "jit_f"), (3, message((1, "main"), *((2, op) for op in made), (5, 1))))
    parts = ((1, values), (3, allocations), (4, heaps))
    assignment = message(*((field, one) for field, listed in parts for one in listed))
    return message((1, module), (3, assignment))


def only(data: bytes) -> SpaceUse:
    spaces = read_buffers(data)
    assert spaces is not None
    (space,) = spaces
    return space


def test_temporaries_count_while_they_live_and_the_rest_always() -> None:
    values = [value(id, MB, id) for id in range(5)]
    kept = [allocation(0, MB, 0, parameter=1), allocation(1, MB, 1, live=1), allocation(2, 2 * MB, 2, 3, 4)]
    events = heap((ALLOCATE, 2), (ALLOCATE, 3), (FREE, 2), (ALLOCATE, 4), (FREE, 3), (FREE, 4))
    space = only(program(values, kept, [events]))
    assert (space.peak, space.allocated) == (4 * MB, 4 * MB)
    assert space.uses == {Use.PARAMETER: MB, Use.OUTPUT: MB, Use.TEMPORARY: 2 * MB}
    found = {one.name: (one.use, one.until, one.beside, one.peak_without) for one in space.buffers}
    assert found == {
        "op0": (Use.PARAMETER, None, 0, 3 * MB),
        "op1": (Use.OUTPUT, None, 0, 3 * MB),
        # Without the first the second pair is still there.
        "op2": (Use.TEMPORARY, "op3", 1, 4 * MB),
        "op3": (Use.TEMPORARY, "op4", 1, 3 * MB),
    }


def test_shared_memory_counts_once_and_goes_with_its_last_holder() -> None:
    values = [value(id, MB, id) for id in range(4)]
    coming = (ALLOCATE, 0), (SHARE, 1, 0), (FREE, 0), (ALLOCATE, 2)
    events = heap(*coming, (FREE, 1), (ALLOCATE, 3), (FREE, 2), (FREE, 3))
    space = only(program(values, [allocation(0, 2 * MB, 0, 1, 2, 3)], [events]))
    assert space.peak == 2 * MB
    assert [one.name for one in space.buffers] == ["op0", "op2"]


def test_padding_is_what_the_elements_do_not_take() -> None:
    ops = [instruction(0, "thin", "copy", 1024, 1), instruction(1, "x", "parameter", 16)]
    values = [value(0, 1024 * 128 * 4, 0), value(1, 64, 1)]
    kept = [allocation(0, 1024 * 128 * 4, 0, live=1), allocation(1, 64, 1, parameter=1)]
    space = only(program(values, kept, [], ops))
    assert [(one.bytes - one.unpadded) for one in space.buffers] == [1024 * 127 * 4, 0]
    assert space.peak - space.unpadded == 1024 * 127 * 4


def test_a_result_may_take_the_memory_of_a_parameter_of_its_size_once() -> None:
    values = [value(id, MB, id) for id in range(4)]
    kept = [
        allocation(0, MB, 0, parameter=1), allocation(1, MB, 1, live=1), allocation(2, MB, 2, live=1),
        allocation(3, MB, 3, parameter=1, live=1),
    ]  # fmt: skip
    space = only(program(values, kept, []))
    assert {one.name: one.donor for one in space.buffers} == {"op0": None, "op1": "op0", "op2": None, "op3": None}


def test_memory_spaces_are_told_apart() -> None:
    values = [value(0, MB, 0), value(1, 3 * MB, 1, 5)]
    kept = [allocation(0, MB, 0, live=1), allocation(1, 3 * MB, 1, color=5, parameter=1)]
    spaces = read_buffers(program(values, kept, []))
    assert spaces is not None
    assert [(one.space, one.peak) for one in spaces] == [(0, MB), (5, 3 * MB)]


def test_where_nothing_was_assigned_nothing_is_told() -> None:
    assert read_buffers(message((1, message((1, "jit_f"))))) is None


@pytest.mark.parametrize("seed", range(40))
def test_damage_never_raises(seed: int) -> None:
    values = [value(id, MB, id) for id in range(5)]
    events = heap((ALLOCATE, 2), (SHARE, 3, 2), (SHARE, 2, 3), (FREE, 2), (FREE, 9), (ALLOCATE, 4))
    data = bytearray(program(values, [allocation(2, 2 * MB, 2, 3, 4)], [events]))
    random = np.random.default_rng(seed)
    for at in random.integers(0, len(data), 6).tolist():
        data[at] = int(random.integers(0, 256))
    for damaged in (bytes(data), bytes(data[: int(random.integers(0, len(data)))])):
        spaces = read_buffers(damaged)
        assert all(one.peak >= 0 for one in spaces or ())
