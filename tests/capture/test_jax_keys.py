"""By what a function is known that JAX is given anew in each step."""

from __future__ import annotations

import functools
from collections.abc import Callable

from stepscope.capture.jax_hooks import code_key


def losses(number: int) -> Callable[[int], int]:
    return lambda weight: weight * number


def test_a_function_that_is_made_anew_is_known_by_its_code() -> None:
    assert code_key(losses(1)) == code_key(losses(2))
    assert code_key(losses(1)) != code_key(losses)


def test_arguments_that_are_filled_in_make_no_other_function() -> None:
    filled = [functools.partial(functools.partial(losses, 1)), functools.partial(losses, 2), losses]
    assert len(set(map(code_key, filled))) == 1


def test_what_has_no_code_is_itself() -> None:
    first, second = functools.lru_cache(losses), functools.lru_cache(losses)
    assert code_key(first) == code_key(first)
    assert code_key(first) != code_key(second)
