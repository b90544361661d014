"""Functions of text over columns of dictionary codes: asked once per distinct text, then looked up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.trace.tables import Rows


def used_codes(codes: npt.NDArray[Any], count: int) -> Rows:
    """The distinct codes below ``count`` in a column, rising; -1 is no code."""
    # Marking beats sorting: dictionaries are small, columns are not.
    used = np.zeros(count + 1, np.bool_)
    used[codes] = True
    return np.flatnonzero(used[:count])


def mapped(
    codes: npt.NDArray[Any], strings: Sequence[str], function: Callable[[str], float | bool], dtype: type[Any]
) -> npt.NDArray[Any]:
    """The function of each row's text, 0 where there is none."""
    table = np.zeros(len(strings) + 1, dtype)
    used = used_codes(codes, len(strings))
    table[used] = [function(strings[code]) for code in used.tolist()]
    return np.asarray(table[codes], dtype)
