"""The pages' modules -> one classic script, which runs where modules do not: from disk, in a notebook, in a worker.

A module may only import names, ``import { a, b as c } from './x.js';``, and export declarations, ``export const`` (or
``function``, ``async function``, ``class``); anything else is refused. Each becomes a function scope that returns what
it exports; imports are bound from the scopes before it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from functools import cache
from importlib import resources

from stepscope.regex import regex

_IMPORT = regex(r"^import \{(?P<names>[^}]*)\} from '(?P<path>\.[^']*\.js)';$", re.MULTILINE)
_EXPORT = regex(r"^export (?=(?:const|class|(?:async )?function\*?) +(?P<name>[A-Za-z_$][\w$]*))", re.MULTILINE)
_OTHER = regex(r"^(?:import|export)\b[^\n]*", re.MULTILINE)
_NAME = regex(r"(?P<from>[A-Za-z_$][\w$]*)(?: as (?P<to>[A-Za-z_$][\w$]*))?\Z")

Read = Callable[[str], str]


def bundle(entry: str, read: Read | None = None) -> str:
    """The script that running module ``entry`` (a path below ``static``) amounts to.

    Raises ValueError where a module does what the assembler cannot carry over, or imports go round in a circle.
    """
    order: list[str] = []
    texts: dict[str, str] = {}
    _collect(entry, read or static, order, texts, ())
    parts = [_scope(path, texts[path], order) for path in order]
    return "'use strict';\n(() => {\n" + "".join(parts) + "})();\n"


@cache
def static(path: str) -> str:
    """The text of a file of the package's ``static`` folder."""
    return resources.files(__package__).joinpath("static", *path.split("/")).read_text(encoding="utf-8")


def _collect(path: str, read: Read, order: list[str], texts: dict[str, str], above: tuple[str, ...]) -> None:
    if path in above:
        raise ValueError(f"modules import each other in a circle: {' -> '.join((*above, path))}")
    if path in texts:
        return
    texts[path] = read(path)
    for imported in _IMPORT.finditer(texts[path]):
        _collect(_resolved(path, imported["path"]), read, order, texts, (*above, path))
    order.append(path)


def _resolved(importer: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), target))


def _scope(path: str, text: str, order: list[str]) -> str:
    """One module as a constant that holds its exports."""
    exports = [exported["name"] for exported in _EXPORT.finditer(text)]

    def bound(exported: re.Match[str]) -> str:
        names = [_binding(path, name) for piece in exported["names"].split(",") if (name := piece.strip())]
        return f"const {{ {', '.join(names)} }} = m{order.index(_resolved(path, exported['path']))};"

    body = _EXPORT.sub("", _IMPORT.sub(bound, text))
    if left := _OTHER.search(body):
        raise ValueError(f"{path}: the assembler does not know {left[0]!r}")
    body = f"{body.rstrip()}\nreturn {{ {', '.join(exports)} }};"
    return f"// {path}\nconst m{order.index(path)} = (() => {{\n{body}\n}})();\n"


def _binding(path: str, text: str) -> str:
    match = _NAME.match(text)
    if match is None:
        raise ValueError(f"{path}: the assembler does not know the import {text!r}")
    return f"{match['from']}: {match['to']}" if match["to"] else match["from"]
