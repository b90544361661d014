"""Tables made of rows: for the little that files beside a profile add to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from stepscope.trace import tables as t

TableT = TypeVar("TableT", bound=t.Table)


def table_of(
    strings: tuple[str, ...], kind: type[TableT], rows: Sequence[tuple[object, ...]]
) -> tuple[tuple[str, ...], TableT]:
    """The strings with those that are new, and a table of rows: texts as they are, but for halves of characters, which
    no encoding can write; None where one is absent."""
    if not rows:
        return strings, kind.empty()
    code = {text: at for at, text in reversed(list(enumerate(strings)))}
    new: list[str] = []
    columns = []
    for declared, column in zip(dataclasses.fields(kind), zip(*rows, strict=True), strict=True):
        values: Sequence[object] = column
        if declared.metadata["text"]:
            texts = [None if text is None else str(text).encode("utf-8", "replace").decode() for text in column]
            new += [text for text in dict.fromkeys(texts) if text is not None and text not in code]
            code |= {text: len(strings) + at for at, text in enumerate(new)}
            values = [-1 if text is None else code[text] for text in texts]
        columns.append(np.array(values, t.dtype_of(declared)))
        columns[-1].setflags(write=False)
    return (*strings, *new), kind(*columns)
