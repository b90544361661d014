"""Names as they are shown: nothing a terminal acts on, and short without losing what tells kernels apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from stepscope.report.names import code_spans, shorten, shorten_path, visible

ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
)


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("\x9b31m", "\\x9b31m"),
        ("half \ud800", "half \\ud800"),
        ("größe 漢字 🙂 [bold]", "größe 漢字 🙂 [bold]"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(raw: str, shown: str):
    assert visible(raw) == shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (200, ADD),
        (120, "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
              "std::array<char*, 3ul>>"),
        (100, "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<…>, std::array<…>>"),
        (80, "at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…>>"),
        (69, "vectorized_elementwise_kernel<4, CUDAFunctor_add<…>, array<…>>"),
        (50, "vectorized_elementwise_kernel<4, CUDAFunctor_add…>"),
        (20, "vectorized_el…nel<…>"),
    ],
)  # fmt: skip
def test_a_cpp_name_gives_up_parameters_then_templates_then_its_middle(width: int, shown: str):
    assert shorten(ADD, width) == shown


@pytest.mark.parametrize(
    ("name", "width", "shown"),
    [
        ("Memcpy HtoD (Pageable -> Device)", 24, "Memcpy HtoD (Pag…Device)"),
        ("ns::odd<a->b, c<d>>::kernel(int)", 24, "odd<a->b, c<…>>::kernel"),
        ("ns::unbalanced<<<broken::name_of_a_kernel", 20, "unbalanced<<<name_…>"),
        ("漢字" * 10, 11, "漢字漢…字"),
    ],
)
def test_other_names_keep_their_ends(name: str, width: int, shown: str):
    assert shorten(name, width) == shown
    assert cell_len(shown) <= width


@given(st.text(alphabet=st.sampled_from("ab<>:()-, …漢\x1b\u202e"), max_size=60), st.integers(0, 40))
def test_a_shortened_name_always_fits_and_is_printable(name: str, width: int):
    short = shorten(name, width)
    assert cell_len(short) <= width
    assert short.isprintable()


def test_an_endless_name_costs_nothing():
    name = "void ns::" + "f<" * 2_000_000 + "::the_end"
    short = shorten(name, 80)
    assert cell_len(short) <= 80
    assert "the_end" not in short  # Only the beginning was looked at.


@pytest.mark.parametrize(
    ("path", "width", "shown"),
    [
        ("/a/train.py", 40, "/a/train.py"),
        ("/usr/lib/site-packages/torch/nn/module.py", 20, "…/torch/nn/module.py"),
        ("C:\\Users\\ana\\jobs\\train.py", 16, "…/jobs/train.py"),
        ("/x/a_very_long_file_name_of_a_profile.json.gz", 20, "a_very_long_f…son.gz"),
        ("/x/evil\x1b[2J.json", 60, "/x/evil\\x1b[2J.json"),
    ],
)
def test_a_path_keeps_its_end(path: str, width: int, shown: str):
    assert shorten_path(path, width) == shown


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("plain", [("plain", False)]),
        ("`a` and `b`", [("a", True), (" and ", False), ("b", True)]),
        ("a lone ` stays", [("a lone ` stays", False)]),
        ("`a` then ` lone", [("a", True), (" then ` lone", False)]),
        ("", []),
    ],
)
def test_code_spans(line: str, pieces: list[tuple[str, bool]]):
    assert code_spans(line) == pieces
