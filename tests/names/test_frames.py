"""What names of Python frames say."""

from __future__ import annotations

import pytest

from stepscope.names.frames import called_name, frame_parts, names_function


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("train.py", "train.py"),
        ("run/../train.py", "train.py"),  # A script that is started from a folder beside it.
        ("a/b/../../c/train.py", "c/train.py"),
        ("../b/../train.py", "../b/../train.py"),  # Cut at its beginning: where that leads is not known.
    ],
)
def test_paths_are_told_without_steps_back(file: str, told: str) -> None:
    assert frame_parts(f"{file}(9): main") == (told, 9, "main")


def test_a_function_is_known_by_the_end_of_its_path() -> None:
    assert names_function("run/../train.py(9): main", "/srv/x/run/../train.py", "main")
    assert names_function("x/train.py(9): main", "/srv/x/train.py", "main")
    assert not names_function("y/train.py(9): main", "/srv/x/train.py", "main")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("<built-in function asarray>", "asarray"),
        ("<unknown> reshape", "reshape"),
        ("x/train.py(9): <listcomp>", "<listcomp>"),
        ("<built-in method run of object at 0x1>", ""),
        ("nn.Module: Linear_0", ""),
    ],
)
def test_what_code_calls_a_function_by(name: str, told: str) -> None:
    assert called_name(name) == told
