"""Regular expressions are compiled when they are first asked for, and each that the package declares is one."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from stepscope.regex import regex

COMPILED_AT_ONCE = """
import importlib, pkgutil, re
import stepscope, stepscope.regex
made = []
stepscope.regex.regex = lambda pattern, flags=0: made.append(re.compile(pattern, flags)) or made[-1]
for module in pkgutil.walk_packages(stepscope.__path__, "stepscope."):
    if not module.name.startswith(("stepscope.integrations", "stepscope.capture", "stepscope.__main__")):
        importlib.import_module(module.name)
print(len(made))
"""


def test_what_is_asked_is_answered_as_a_compiled_expression_does() -> None:
    number = regex(r"(?P<sign>-?)(\d+)")
    assert "match" not in vars(number)
    found = number.search("a -12")
    assert found is not None
    assert found["sign"] == "-"
    assert found[2] == "12"
    assert "match" in vars(number)
    compiled = re.compile(number.pattern)
    assert number.findall("1 -2") == compiled.findall("1 -2")
    assert number.sub("x", "1 -2") == "x x"
    assert dict(number.groupindex) == {"sign": 1}
    assert number.pattern == compiled.pattern


def test_flags_and_bytes() -> None:
    assert regex("a.c", re.IGNORECASE | re.DOTALL).fullmatch("A\nC")
    assert regex(rb"\d").findall(b"a1") == [b"1"]


def test_what_a_compiled_expression_has_not_is_told() -> None:
    with pytest.raises(AttributeError, match="matches"):
        regex("a").matches("a")  # type: ignore[attr-defined]


def test_each_that_the_package_declares_compiles() -> None:
    ran = subprocess.run([sys.executable, "-c", COMPILED_AT_ONCE], capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    assert ast.literal_eval(ran.stdout) > 500
