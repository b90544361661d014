"""HloProto bytes: what the instructions of a module are, whatever the version that wrote them, whole or damaged."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.hlo import instructions as hlo
from stepscope.hlo.instructions import HloModule, HloOp, is_collective, read_hlo
from stepscope.protobuf.columns import Spans, children, decode, texts
from tests.kit.traces import real_trace
from tests.kit.wire import Value, message, packed

LIBRARY, USER, MAIN = "/env/site-packages/flax/linen/linear.py", "/proj/model.py", "/proj/train.py"


def metadata(*fields: tuple[int, Value]) -> tuple[int, bytes]:
    return 7, message(*fields)


def instruction(name: str, opcode: str, *fields: tuple[int, Value]) -> tuple[int, bytes]:
    return 2, message((1, name), (2, opcode), *fields)


def frames_index() -> tuple[int, bytes]:
    """Frame 1 is train.py:9, frame 2 model.py:20 called from it, frame 3 library code called from that."""
    return 17, message(
        *((1, file) for file in (LIBRARY, USER, MAIN)),
        *((2, function) for function in ("__call__", "forward", "<module>")),
        *((3, message((1, file), (2, file), (3, line))) for file, line in ((3, 9), (2, 20), (1, 7))),
        *((4, message((1, location), (2, location - 1))) for location in (1, 2, 3)),
    )


def module(*instructions: tuple[int, bytes], more: tuple[tuple[int, Value], ...] = ()) -> bytes:
    entry = message((1, "main"), *instructions, (5, 70), (6, 1))
    fused = message((1, "fused"), instruction("p0", "parameter"), (5, 71))
    return message((1, message((1, "jit_f"), (3, fused), (3, entry), (5, 12), *more)), (3, b"\x08\x01"))


def read(data: bytes, before: int = 0) -> HloModule:
    whole = np.frombuffer(b"\xff" * before + data + b"\xff", np.uint8)
    return read_hlo(whole, before, before + len(data))


def only(data: bytes) -> HloOp:
    return next(op for op in read(data).ops.values() if op.name != "p0")


def test_a_module_and_its_instructions() -> None:
    op = instruction(
        "fusion.1", "fusion", metadata((1, "dot_general"), (2, "jit(f)/fwd/dot"), (15, 3)), (38, packed(71, 99))
    )
    found = read(module(op, more=(frames_index(),)), before=5)
    assert (found.name, found.program, sorted(found.ops)) == ("jit_f", 12, ["fusion.1", "p0"])
    assert found.ops["p0"] == HloOp("p0", "parameter", None, None, (), None, ())
    assert found.ops["fusion.1"] == HloOp(
        "fusion.1",
        "fusion",
        "jit(f)/fwd/dot",
        f"{USER}:20",
        (f"{LIBRARY}:7 __call__", f"{USER}:20 forward", f"{MAIN}:9 <module>"),
        None,
        ("fused",),
    )


def test_the_line_the_compiler_names_comes_first() -> None:
    data = module(instruction("a", "add", metadata((3, "x.py"), (4, 33), (15, 3))), more=(frames_index(),))
    assert only(data).source == "x.py:33"
    assert only(data).stack[0] == f"{LIBRARY}:7 __call__"


def test_a_stack_of_library_code_alone_gives_its_innermost_line() -> None:
    index = 17, message((1, LIBRARY), (3, message((1, 1), (3, 5))), (4, message((1, 1))))
    assert only(module(instruction("a", "add", metadata((15, 1))), more=(index,))).source == f"{LIBRARY}:5"


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/usr/lib/python3.11/functools.py", True),
        ("/src/jax/_src/numpy/lax_numpy.py", True),
        ("flax/nnx/module.py", True),
        ("<frozen runpy>", True),
        ("/proj/jax/train.py", False),
        ("/proj/flax_models/train.py", False),
    ],
)
def test_what_counts_as_library_code(path: str, library: bool) -> None:
    index = 17, message(
        (1, path), (1, MAIN), (3, message((1, 1), (3, 5))), (3, message((1, 2), (3, 6))),
        (4, message((1, 2))), (4, message((1, 1), (2, 1))),
    )  # fmt: skip
    expected = f"{MAIN}:6" if library else f"{path}:5"
    assert only(module(instruction("a", "add", metadata((15, 2))), more=(index,))).source == expected


def test_frames_that_call_each_other_end() -> None:
    loop = 17, message((1, "a.py"), (3, message((1, 1), (3, 5))), (4, message((1, 1), (2, 1))), (4, message((2, 2))))
    data = module(instruction("a", "add", metadata((15, 1))), instruction("b", "add", metadata((15, 2))), more=(loop,))
    ops = read(data).ops
    assert len(ops["a"].stack) == hlo.STACK_DEPTH
    assert (ops["b"].stack, ops["b"].source) == ((), None)


GROUPS = [(1, message((1, packed(0, 1)))), (1, message((1, packed(2, 3))))]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([(49, group) for _, group in GROUPS], "{{0,1},{2,3}}"),
        ([(49, b"")], "{{}}"),
        ([(87, message(*GROUPS))], "{{0,1},{2,3}}"),
        ([(92, message((1, 2), (2, 4), (3, packed(8))))], "[2,4]<=[8]"),
        ([(92, message((1, 4), (2, 2), (3, packed(2, 4)), (4, packed(1, 0))))], "[4,2]<=[2,4]T(1,0)"),
        ([], None),
    ],
)
def test_replica_groups_in_every_form(fields: list[tuple[int, Value]], text: str | None) -> None:
    assert only(module(instruction("ar", "all-reduce", *fields))).replica_groups == text


AXES = [(1, message((1, "x"), (2, 2))), (1, message((1, "y"), (2, 4)))]
Y = (2, message((1, 1)))


@pytest.mark.parametrize(
    ("mesh", "used", "text"),
    [
        ([], [(2, b"")], "mesh['x'=2,'y'=4] {'x'}"),
        ([], [(2, b""), Y], "mesh['x'=2,'y'=4] {'x','y'}"),
        ([], [(2, message((1, 1), (2, message((1, 2), (2, 2)))))], "mesh['x'=2,'y'=4] {'y':(2)2}"),
        ([(2, packed(1, 0))], [Y], "mesh['x'=2,'y'=4], device_ids=(1,0) {'y'}"),
        (
            [(3, message((1, packed(4, 2)), (2, packed(1, 0))))],
            [Y],
            "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}",
        ),
        ([], [(2, message((1, 7)))], "mesh['x'=2,'y'=4] {?}"),
    ],
)
def test_replica_groups_along_axes_of_a_mesh(
    mesh: list[tuple[int, Value]], used: list[tuple[int, Value]], text: str
) -> None:
    field = 93, message((1, message(*AXES, *mesh)), *used)
    assert only(module(instruction("ar", "all-reduce", field))).replica_groups == text


def test_groups_belong_to_their_instruction() -> None:
    ops = read(module(instruction("a", "all-reduce", (49, message((1, packed(5))))), instruction("b", "add"),
                      instruction("c", "all-reduce", (92, message((1, 1), (2, 2), (3, packed(2))))))).ops  # fmt: skip
    assert [op.replica_groups for op in ops.values()] == [None, "{{5}}", None, "[1,2]<=[2]"]


@pytest.mark.parametrize("opcode", sorted(hlo.COLLECTIVE_OPCODES))
def test_collectives_and_their_asynchronous_halves(opcode: str) -> None:
    assert is_collective(opcode)
    assert is_collective(f"{opcode}-start")
    assert is_collective(f"{opcode}-done")


def test_what_is_no_collective() -> None:
    assert not any(map(is_collective, ["", "fusion", "copy-start", "all-reduce.3", "reduce", "send"]))


def test_program_zero_is_left_out_of_the_bytes_but_known() -> None:
    assert read(message((1, message((1, "m"))))).program == 0
    assert read(message((1, message((1, "m")) + b"\x1a\x7f"))).program is None


def test_the_parameters_of_a_program() -> None:
    matrix = (1, message((2, 11), (3, packed(512, 256))))
    scalar = (1, message((2, 4)))
    shape = (4, message(matrix, scalar, (2, message((2, 11)))))
    assert read(module(more=(shape,))).parameters == ("f32[512,256]", "s32[]")
    assert read(module()).parameters is None


def test_bytes_that_are_no_module() -> None:
    assert read(b"") == read(b"\xff\xff") == read(message((2, "x"))) == HloModule("", None, {})


def test_a_module_cut_anywhere_keeps_the_instructions_before_the_cut() -> None:
    data = module(instruction("a", "add"), instruction("b", "sub", metadata((2, "scope"))), more=(frames_index(),))
    sizes = [len(read(data[:cut]).ops) for cut in range(len(data) + 1)]
    assert sizes == sorted(sizes)
    assert set(sizes) == {0, 1, 2, 3}


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_damage_never_raises(draw: st.DataObject) -> None:
    data = bytearray(module(instruction("a", "add", metadata((15, 3)), (38, packed(71)), (87, message(*GROUPS)),
                                        (93, message((1, message(*AXES)), Y))), more=(frames_index(),)))  # fmt: skip
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    read(bytes(data))


@pytest.mark.real
def test_modules_of_a_real_profile() -> None:
    modules = {found.name: found for found in modules_of(real_trace("xplane/mi300_jax_conv.xplane.pb"))}
    conv = modules["jit_forward_3d_conv"]
    assert (conv.program, len(conv.ops)) == (15, 19)
    fusion = conv.ops["input_transpose_fusion"]
    assert fusion.opcode == "fusion"
    assert fusion.scope == "jit(forward_3d_conv)/jit(main)/conv_general_dilated"
    assert fusion.source is not None
    assert fusion.source.endswith("/jax_conv_profiling.py:77")
    assert fusion.stack[-1].endswith("/jax_conv_profiling.py:136 <module>")
    assert fusion.called == ("fused_transpose",)


def modules_of(path: Path) -> list[HloModule]:
    """Every module in the metadata plane of an XPlane file."""
    data = np.fromfile(path, np.uint8)
    planes = children(data, Spans.whole(data), 1).spans
    plane = decode(data, texts(data, planes, 2)).index("/host:metadata")
    entries = texts(data, children(data, planes[plane : plane + 1], 4).spans, 2)
    content = texts(data, children(data, entries, 5).spans, 6)
    return [read_hlo(data, start, end) for start, end in zip(content.start, content.end, strict=True) if start >= 0]


def test_doctests() -> None:
    assert doctest.testmod(hlo).failed == 0
