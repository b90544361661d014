"""At which line a function calls what, as its bytecode tells."""

from __future__ import annotations

import os
import time
from typing import Any

from stepscope.capture.call_sites import called_at


def calls(np: Any, load: Any, xs: Any, decode: Any) -> Any:
    batch = load(xs)
    made = (
        np.asarray(batch)
        .reshape(3, -1)
    )  # fmt: skip
    xs.append(made)
    return list(map(decode, xs))


def mentions_twice(np: Any, xs: Any) -> Any:
    fast = np.asarray
    xs.append(fast(xs))
    xs.append(np.asarray(xs))
    return np.zeros


def through_modules(xs: Any) -> Any:
    time.sleep(0.1)
    shown = os.path.join(*xs)
    xs.append(os.remove)
    return shown, time


def lines_from(function: Any) -> dict[str, int]:
    code = function.__code__
    return {name: line - code.co_firstlineno for name, line in called_at(code).items()}


def test_a_call_is_told_at_the_line_of_its_name() -> None:
    told = lines_from(calls)
    assert told["load"] == 1
    assert told["asarray"] == 3
    assert told["reshape"] == 4
    assert told["append"] == 6
    assert (told["list"], told["map"]) == (7, 7)


def test_of_a_module_s_function_the_function_is_called_and_not_the_module() -> None:
    told = lines_from(through_modules)
    assert (told["sleep"], told["join"]) == (1, 2)
    assert not {"time", "os", "path", "remove"} & set(told)


def test_what_is_only_handed_on_is_not_called() -> None:
    assert "decode" not in lines_from(calls)
    assert "zeros" not in lines_from(mentions_twice)


def test_a_name_that_stands_in_two_lines_tells_neither() -> None:
    told = lines_from(mentions_twice)
    assert "asarray" not in told
    assert "append" not in told
    assert told["fast"] == 2


def test_the_body_of_a_script_is_told_too() -> None:
    assert called_at(compile("import x\nfoo(1)\nbar(foo)\n", "train.py", "exec")).get("bar") == 3


def test_a_comprehension_runs_where_it_is_made() -> None:
    code = compile("def f(xs):\n    return 3, [x for x in xs]\n", "train.py", "exec").co_consts[0]
    assert called_at(code).get("<listcomp>", 2) == 2  # Since Python 3.12 it is no function.
