"""Untrusted text made safe to show, and long kernel names made short enough to read."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size

from stepscope.regex import regex

_NAMESPACES = regex(r"\b(?:[A-Za-z_]\w*::)+(?=[A-Za-z_~])")
_LONGEST = 8192
"""Characters of a name that are looked at; the rest is cut, so that no name costs more than a glance."""


def visible(text: str) -> str:
    r"""Write every character that a terminal would act on, or not show, as an escape.

    That covers control characters, bidirectional overrides, zero-width characters and lone surrogates.

    >>> visible("\x1b[31mred\x07")
    '\\x1b[31mred\\x07'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def code_spans(line: str) -> list[tuple[str, bool]]:
    """Split a line of prose at its `backticks`: pieces, and whether each is code; a lone backtick is text.

    >>> code_spans("use `foreach=True` here")
    [('use ', False), ('foreach=True', True), (' here', False)]
    """
    pieces = line.split("`")
    if len(pieces) % 2 == 0:
        pieces[-2:] = ["`".join(pieces[-2:])]
    return [(piece, at % 2 == 1) for at, piece in enumerate(pieces) if piece]


def shorten(name: str, width: int) -> str:
    """Make a name fit ``width`` terminal cells, giving up what tells the least first.

    A C++ name loses its return type and parameters, then nested template arguments, namespaces and the last
    template arguments; what is still too long loses its middle.

    >>> shorten("void at::native::add<float, std::array<char*, 3ul> >(int, float)", 50)
    'at::native::add<float, std::array<…>>'
    """
    if len(name) > _LONGEST:
        name = name[:_LONGEST] + "…"
    name = visible(name)
    if cell_len(name) <= width:
        return name
    if "::" in name or name.startswith("void "):
        for candidate in _simpler_cpp(name, width):
            if cell_len(candidate) <= width:
                return candidate
            name = candidate
    return _cut_middle(name, width)


def shorten_path(path: str, width: int) -> str:
    """Make a file path fit, keeping its end: the file's name tells more than the folders above it.

    >>> shorten_path("/usr/lib/python3/site-packages/torch/nn/module.py", 24)
    '…/torch/nn/module.py'
    """
    if cell_len(visible(path)) <= width:
        return visible(path)
    parts = [visible(part) for part in path.replace("\\", "/").split("/")]
    kept = parts.pop()
    while parts and cell_len(f"…/{parts[-1]}/{kept}") <= width:
        kept = f"{parts.pop()}/{kept}"
    shorter = f"…/{kept}"
    return shorter if cell_len(shorter) <= width else _cut_middle(kept, width)


def _simpler_cpp(name: str, width: int) -> Iterator[str]:
    """Ever shorter forms of a C++ name: template arguments tell like kernels apart, so they go last."""
    name = _without_parameters(name.removeprefix("void ")).replace("(anonymous namespace)::", "")
    name = name.replace("> >", ">>")
    yield name
    name = _without_templates(name)
    yield name
    head, bracket, arguments = name.partition("<")
    arguments = _NAMESPACES.sub("", arguments)
    yield head + bracket + arguments
    head = _NAMESPACES.sub("", head)
    yield head + bracket + arguments
    if bracket:
        room = width - cell_len(head) - len("<…>")
        yield f"{head}<{set_cell_size(arguments, max(room, 0)).rstrip(', ')}…>"


def _without_parameters(name: str) -> str:
    """Drop a trailing, balanced parameter list."""
    if not name.endswith(")"):
        return name
    depth = 0
    for at in range(len(name) - 1, -1, -1):
        depth += (name[at] == ")") - (name[at] == "(")
        if depth == 0:
            return name[:at] if at else name
    return name


def _without_templates(name: str) -> str:
    """Write template arguments of template arguments as ``…``; an unbalanced name stays whole."""
    kept: list[str] = []
    depth = 0
    for at, char in enumerate(name):
        closes = char == ">" and name[at - 1 : at] != "-"
        depth -= closes
        if depth < 0:
            return name
        if depth <= 1:
            kept.append(char)
        if char == "<":
            depth += 1
            if depth == 2:
                kept.append("…")
    return name if depth else "".join(kept)


def _cut_middle(text: str, width: int) -> str:
    if width <= 1:
        return "…"[:width]
    if cell_len(text) <= width:
        return text
    tail_width = (width - 1) // 3
    head = set_cell_size(text, width - 1 - tail_width).rstrip()
    tail = set_cell_size(text[::-1], tail_width)[::-1].lstrip() if tail_width else ""
    return f"{head}…{tail}"
