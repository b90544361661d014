"""Tables fit the width they are given, with and without a column of names."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from stepscope.report.columns import laid_out
from stepscope.report.section import Section, name, number

TITLES = ("device", "per step", "ended last in", "waiting for host memory", "computing (kernels)", "device latency")


def shown(section: Section, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(laid_out(section, width))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [50, 60, 80, 200])
@pytest.mark.parametrize("named", [True, False])
def test_no_title_and_no_figure_is_cut(width: int, named: bool):
    columns = (*([name("name")] if named else []), *map(number, TITLES))
    row = (*(["TPU v6 Lite"] if named else []), "0", "784 ms", "96 of 98", "760 ms", "24.0 ms", "1.47 µs")
    lines = shown(Section("Devices", columns, [row]), width)
    text = " ".join(" ".join(lines).split())
    assert all(value in text for value in row)
    assert all(word in text for title in TITLES for word in title.split())
