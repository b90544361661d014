"""Where a slice comes from: frames, ops, modules, annotations, recorded stacks, and the forward of a backward op."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stepscope.analysis import where
from stepscope.analysis.frame import Frame, parse_frame
from stepscope.analysis.where import Locator, Where
from stepscope.report import phrases
from stepscope.trace.trace import Trace
from tests.kit.builder import TraceDrawing
from tests.kit.drawing import draw
from tests.kit.kineto_writer import Form, write_kineto
from tests.support import trace_of, trace_of_bytes


def place(trace: Trace, name: str = "cudaLaunchKernel") -> Where:
    """Where the first slice of a name comes from."""
    return Locator(trace).where(next(s for s in range(len(trace.slices)) if trace.name_of(s) == name))


def place_in(drawing: str) -> Where:
    return place(trace_of(draw(drawing)))


def test_every_part_of_a_place():
    assert place_in("""
        main  |[P                        ]
        main  | [A                      ]
        main  |  [M                    ]
        main  |   [Q                  ]
        main  |    [aten::linear     ]
        main  |      [aten::addmm   ]
        main  |         [k  ]
        gpu0/7|               [k]
        P = py train.py(12): main
        A = ann validation
        M = py nn.Module: Linear_3
        Q = py torch/nn/modules/linear.py(124): forward
    """) == Where("train.py", 12, "main", "aten::linear", "Linear_3", "validation", defined=True)


def test_the_innermost_of_the_users_own_frames_counts():
    found = place_in("""
        main  |[P                  ]
        main  | [Q                ]
        main  |  [R              ]
        main  |    [k  ]
        gpu0/7|         [k]
        P = py train.py(12): main
        Q = py losses.py(7): focal
        R = py torch/nn/functional.py(3): cross_entropy
    """)
    assert (found.file, found.line, found.function) == ("losses.py", 7, "focal")


def test_where_all_frames_are_the_frameworks_the_innermost_counts():
    found = place_in("""
        main  |[P                  ]
        main  | [Q                ]
        main  |  [B              ]
        main  |    [k  ]
        gpu0/7|         [k]
        P = py torch/nn/modules/linear.py(124): forward
        Q = py torch/nn/functional.py(3): linear
        B = py <built-in function linear>
    """)
    assert (found.file, found.line) == ("torch/nn/functional.py", 3)


def test_a_library_that_the_user_chose_says_more_than_the_framework_inside_it():
    found = place_in("""
        main  |[P                  ]
        main  | [Q                ]
        main  |  [R              ]
        main  |    [k  ]
        gpu0/7|         [k]
        P = py vllm/model_executor/layers/layernorm.py(40): forward
        Q = py torch/_ops.py(1244): __call__
        R = py inspect.py(3346): signature
    """)
    assert (found.file, found.line) == ("vllm/model_executor/layers/layernorm.py", 40)


GENERATED = [
    "/tmp/torchinductor_me/ab/cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrstu.py",
    "/scratch/cache/x7/cabcdefghijklmnopqrstuvwxyz234567abcdefghijklmnopqrstu.py",
    "/root/.triton/cache/ABC/launcher.py",
    "<eval_with_key>.12",
    "<string>",
    "<frozen importlib._bootstrap>",
    "/tmp/__autograph_generated_file1a2b.py",
]


@pytest.mark.parametrize("file", GENERATED)
def test_the_line_of_a_generated_file_is_that_of_the_users_frame_around_it(file: str):
    def drawn(*frames: str) -> Where:
        drawing = TraceDrawing()
        for depth, frame in enumerate(frames):
            drawing.python(frame, depth, 100 - 2 * depth)
        drawing.kernel(drawing.launch(20, 5), "k", 30, 10)
        return place(trace_of(drawing.events()))

    found = drawn("train.py(12): main", "torch/_inductor/utils.py(2): run", f"{file}(99): call")
    assert (found.file, found.line) == ("train.py", 12)
    assert drawn(f"{file}(99): call").file is None


@pytest.mark.parametrize("file", ["<ipython-input-3-0a1b2c>", "/tmp/ipykernel_12/345.py", "/tmp/me/cab/train.py"])
def test_cells_and_scripts_in_odd_places_are_the_users(file: str):
    assert Frame(file, 3, "f").is_users


def test_the_innermost_module_and_annotation_and_the_outermost_op():
    found = place_in("""
        main  |[A                      ]
        main  | [M                    ]
        main  |  [B                  ]
        main  |   [N                ]
        main  |     [aten::linear  ]
        main  |       [aten::t ][k]
        gpu0/7|                    [k]
        A = ann outer
        B = ann inner
        M = py nn.Module: Net_0
        N = py nn.Module: Linear_0
    """)
    assert (found.op, found.module, found.annotation) == ("aten::linear", "Linear_0", "inner")


def test_a_step_marker_is_no_annotation():
    assert not place_in("""
        main  |[S      ]
        main  |  [k ]
        gpu0/7|     [k ]
        S = step 4
    """)


def test_a_marker_of_a_source_that_was_not_chosen_is_an_annotation():
    found = place_in("""
        main  |[S          ]
        main  | [O        ]
        main  |  [k ]
        gpu0/7|     [k ]
        S = step 4
        O = ann Optimizer.step#AdamW.step
    """)
    assert found.annotation == "Optimizer.step#AdamW.step"


def test_autograds_wrapper_is_not_the_op():
    found = place_in("""
        main  |[aten::embedding ]
        auto  |[W                             ]
        auto  |  [MmBackward0          ]
        auto  |     [aten::mm    ]
        auto  |        [k  ]
        gpu0/7|             [k]
        W = op autograd::engine::evaluate_function: MmBackward0
    """)
    assert found.op == "MmBackward0"


def test_of_nothing_nothing_is_known():
    found = place_in("""
        main  |[k ]
        gpu0/7|    [k]
    """)
    assert found == Where()
    assert not found


@pytest.mark.parametrize("known", ["file", "op", "module", "annotation"])
def test_a_place_of_which_anything_is_known_is_a_place(known: str):
    assert Where(**{known: "x"})


STACK = "torch/nn/functional.py(9): linear;model.py(31): forward;train.py(12): main"


def drawn_stack(stack: str, *, frames: bool = False) -> Trace:
    """An op with a recorded call stack and a launch in an op inside it."""
    drawing = TraceDrawing()
    if frames:
        drawing.python("loop.py(5): run", 0, 100)
    drawing.host("aten::linear", 0, 50, **{"Call stack": stack})
    drawing.host("aten::addmm", 5, 30)
    drawing.kernel(drawing.launch(10), "k", 30, 10)
    return trace_of(drawing.events())


def test_a_recorded_call_stack_stands_in_for_frames():
    found = place(drawn_stack(STACK))
    assert (found.file, found.line, found.function, found.op) == ("model.py", 31, "forward", "aten::linear")


def test_frames_are_preferred_to_a_call_stack():
    assert place(drawn_stack(STACK, frames=True)).file == "loop.py"


@pytest.mark.parametrize("stack", ["", ";", "no frame at all", "<built-in function x>;<eval>"])
def test_a_call_stack_without_a_frame_says_nothing(stack: str):
    found = place(drawn_stack(stack))
    assert (found.file, found.line, found.op) == (None, None, "aten::linear")


def test_the_call_stacks_of_2021_are_read():
    events = draw("""
        main  |[P                        ]
        main  | [Q                      ]
        main  |    [aten::linear     ]
        main  |         [k  ]
        gpu0/7|               [k]
        P = py train.py(12): main
        Q = py torch/nn/functional.py(3): linear
    """)
    found = place(trace_of_bytes(write_kineto(events, Form(generation="2021"))))
    assert (found.file, found.line, found.function) == ("train.py", 12, "main")


def backward(*, frames_of_its_own: bool = False) -> Trace:
    """A linear layer of ``train.py`` and its backward on another thread."""
    d = TraceDrawing()
    d.python("train.py(12): main", 0, 100)
    d.annotation("teacher", 0, 90)
    d.python("nn.Module: Linear_0", 0, 80)
    forward = d.host("aten::linear", 10, 20)
    if frames_of_its_own:
        d.python("autograd_function.py(4): backward", 0, 300, thread="autograd")
    wrapper = d.host("autograd::engine::evaluate_function: AddmmBackward0", 200, 50, thread="autograd")
    d.host("AddmmBackward0", 205, 40, thread="autograd")
    d.kernel(d.launch(210, name="cudaLaunchKernelExC", thread="autograd"), "k", 230, 10)
    d.backward_of(forward, wrapper)
    return trace_of(d.events())


def test_a_backward_op_comes_from_where_its_forward_op_ran():
    found = place(backward(), "cudaLaunchKernelExC")
    assert found == Where("train.py", 12, "main", "AddmmBackward0", "Linear_0", "teacher", defined=True)


def test_a_backward_op_with_frames_of_its_own_keeps_them():
    found = place(backward(frames_of_its_own=True), "cudaLaunchKernelExC")
    assert found == Where("autograd_function.py", 4, "backward", "AddmmBackward0", defined=True)


# --- frames ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("train.py(12): main", Frame("train.py", 12, "main")),
        ("/srv/me/my (old) project/train.py(12): main", Frame("/srv/me/my (old) project/train.py", 12, "main")),
        ("src/a.py(3): <lambda>", Frame("src/a.py", 3, "<lambda>")),
        ("src/a.py(3): f(x): g", Frame("src/a.py", 3, "f(x): g")),
        ("<string>(1): <module>", Frame("<string>", 1, "<module>")),
        ("<built-in function linear>", None),
        ("<built-in method item of Tensor object at 0x7f0000002000>", None),
        ("nn.Module: Linear_0", None),
        ("train.py(x): main", None),
        ("train.py(12)", None),
        ("", None),
    ],
)
def test_what_a_frame_says(name: str, frame: Frame | None):
    assert parse_frame(name) == frame


@pytest.mark.parametrize(
    ("file", "users"),
    [
        ("train.py", True),
        ("src/models/resnet.py", True),
        ("/srv/me/project/train.py", True),
        ("/srv/torch_project/train.py", True),
        ("/srv/me/torch/my_experiment.py", True),
        ("torch/nn/modules/module.py", False),
        ("torchvision/models/resnet.py", False),
        ("transformers/trainer.py", False),
        ("/opt/conda/lib/python3.10/site-packages/mine/x.py", False),
        ("/usr/lib/python3/dist-packages/apt/cache.py", False),
        ("/opt/conda/lib/python3.10/threading.py", False),
        ("conda/lib/python3.10/asyncio/events.py", False),
        ("threading.py", False),
        ("asyncio/events.py", False),
        ("torch.py", False),
        ("<frozen importlib._bootstrap>", False),
        ("<string>", False),
    ],
)
def test_which_files_are_the_users_own(file: str, users: bool):
    assert Frame(file, 1, "f").is_users is users


@pytest.mark.parametrize(
    ("frame", "users"),
    [
        (Frame("ufunc_api.py", 176, "__call__"), False),
        (Frame("functions.py", 654, "softmax"), False),
        (Frame("numeric.py", 1230, "roll"), False),  # numpy, which jobs of JAX make batches with
        (Frame("my/numeric.py", 12, "roll"), True),
        (Frame("functions.py", 12, "train_step"), True),
        (Frame("src/functions.py", 12, "softmax"), True),
    ],
)
def test_files_of_jax_are_known_without_their_folder(frame: Frame, users: bool):
    assert frame.is_users is users


@pytest.mark.parametrize("file", ["torch\\nn\\modules\\module.py", "C:\\venv\\Lib\\site-packages\\mine\\x.py"])
def test_libraries_are_known_on_windows_too(file: str):
    assert not Frame(file, 1, "f").is_users


@pytest.mark.parametrize("shown", ["XPlane", "Kineto JSON", "viztracer"])
def test_a_line_that_is_where_the_function_begins_is_told_as_that(shown: str) -> None:
    """The tracers of TSL and PyTorch write where functions begin: which line of one ran is not in the file."""
    trace = trace_of(
        draw("""
        main  |[P   ]
        P = py train.py(24): load
    """)
    )
    trace = replace(trace, info=replace(trace.info, format=shown))
    made = Locator(trace).frame("train.py(24): load")
    assert made is not None
    assert made.is_definition is (shown != "viztracer")


def test_a_line_of_a_definition_is_never_shown_as_that_of_a_call() -> None:
    place = {"file": "train.py", "line": 24, "function": "load", "op": None, "module": None, "annotation": None}
    assert phrases.where(place | {"defined": True}) == "in load, which begins at train.py:24"
    assert phrases.where(place | {"defined": False}) == "train.py:24 in load"


def test_what_is_around_slices_is_the_same_by_either_road(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stacks that nest without end are walked once for all slices."""
    drawing = TraceDrawing()
    for depth in range(300):
        drawing.python(f"train.py({depth % 7 + 1}): f{depth % 5}", depth, 2_000 - 2 * depth)
    drawing.annotation("inner", 400, 900)
    for op in range(200):
        drawing.host("aten::linear", 410 + 4 * op, 3)
        drawing.host("aten::addmm", 411 + 4 * op, 1)
    trace = trace_of(drawing.events())
    rows = np.arange(len(trace.slices), dtype=np.int32)
    assert int(trace.slices.depth.sum()) > where._MOST_STEPS * rows.size
    by_all = Locator(trace)._climbed(rows)
    monkeypatch.setattr(where, "_MOST_STEPS", 1 << 20)
    by_each = Locator(trace)._climbed(rows)
    assert by_all.tolist() == by_each.tolist()
    assert (by_all >= 0).any()
    none = np.array([-1, 5], np.int32)
    assert Locator(trace)._climbed(none)[:, 0].tolist() == [-1] * by_all.shape[0]
