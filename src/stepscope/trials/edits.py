"""Edits of one Python source, made together: the positions of each are those of the source as it was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, ParentNodeProvider, PositionProvider

from stepscope.capture.cures.cure import After, AfterImport, Around, Decorator, Edit, First, Keywords
from stepscope.capture.cures.places import Place

_Change = Callable[[Any], Any]


class EditedSource:
    """A file's text and what is to become of it."""

    def __init__(self, text: str) -> None:
        """Raises ValueError where it cannot be parsed."""
        self.text = text
        try:
            self._tree = MetadataWrapper(cst.parse_module(text))
        except cst.ParserSyntaxError as error:
            raise ValueError(str(error).splitlines()[0]) from error
        self._positions = self._tree.resolve(PositionProvider)
        self._parents = self._tree.resolve(ParentNodeProvider)
        self._lines = text.splitlines()
        self._changes: dict[cst.CSTNode, list[_Change]] = {}

    def edit(self, edit: Edit, place: Place, value: int | None) -> bool:
        """Whether an edit could be placed; it is made by ``changed``."""
        if isinstance(edit, AfterImport):
            return self._after_import(edit, value)
        if isinstance(edit, Decorator):
            return self._decorator(edit, place)
        call = self._call(place)
        if call is None:
            return False
        if isinstance(edit, Keywords):
            return self._keywords(call, [(name, _filled(code, value, place)) for name, code in edit.arguments])
        if isinstance(edit, First):
            return self._first(call, edit.expression.replace("{value}", str(value)))
        statement = self._statement(call)
        if statement is None:
            return False
        if isinstance(edit, After):
            target = _target(statement)
            if target is None or (edit.imported is not None and not self._has_name(edit.imported)):
                return False
            self._change(statement, _followed(edit.code.format(target=target, value=value)))
            return True
        if isinstance(edit, Around):
            self._change(statement, _wrapped(edit.code.format(device=place.get("device", "cuda"), value=value)))
            return True
        return False

    def changed(self) -> str:
        """The text with all edits made."""
        return self._tree.module.visit(_Changing(self._changes)).code if self._changes else self.text

    # --- where ------------------------------------------------------------------------------------------------------

    def _call(self, place: Place) -> cst.Call | None:
        """The call at a place: the one that begins and ends there, or the only one that begins in its line."""
        line = place.get("line")
        calls = [node for node in self._positions if isinstance(node, cst.Call)]
        here = [call for call in calls if self._range(call).start.line == line]
        if place.get("column") is not None and isinstance(line, int) and isinstance(place.get("end_line"), int):
            begin = (line, self._column(line, place["column"]))
            end = (place["end_line"], self._column(place["end_line"], place["end_column"]))
            exact = [call for call in here if _ends(self._range(call)) == (begin, end)]
            return exact[0] if len(exact) == 1 else None
        outer = [call for call in here if not any(self._holds(other, call) for other in here if other is not call)]
        return outer[0] if len(outer) == 1 else None

    def _range(self, node: cst.CSTNode) -> CodeRange:
        place: CodeRange = self._positions[node]
        return place

    def _holds(self, outer: cst.CSTNode, inner: cst.CSTNode) -> bool:
        (begin, end), (first, last) = _ends(self._range(outer)), _ends(self._range(inner))
        return begin <= first and last <= end

    def _column(self, line: int, column: int) -> int:
        """Python counts a line's bytes, LibCST its characters."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return len(text.encode()[:column].decode(errors="ignore"))

    def _statement(self, node: cst.CSTNode) -> cst.SimpleStatementLine | None:
        """The simple statement that holds an expression; None where that is the head of a loop, say."""
        above: Any = node
        while above is not None and not isinstance(above, (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            above = self._parents.get(above)
        return above if isinstance(above, cst.SimpleStatementLine) else None

    # --- what -------------------------------------------------------------------------------------------------------

    def _change(self, node: cst.CSTNode, change: _Change) -> None:
        self._changes.setdefault(node, []).append(change)

    def _keywords(self, call: cst.Call, wanted: Sequence[tuple[str, str | None]]) -> bool:
        given = {argument.keyword.value for argument in call.args if argument.keyword is not None}
        unpacked = any(argument.star == "**" for argument in call.args)
        if unpacked and any(name not in given for name, code in wanted if code is not None):
            return False  # It may be in there already.
        self._change(call, lambda node: _with_keywords(node, wanted))
        return True

    def _first(self, call: cst.Call, expression: str) -> bool:
        if len(call.args) != 1 or call.args[0].star:
            return False
        self._change(call, lambda node: node.with_deep_changes(node.args[0], value=cst.parse_expression(expression)))
        return True

    def _after_import(self, edit: AfterImport, value: int | None) -> bool:
        """Behind the first import of the module; behind the last import, with one of the module, where it has none."""
        imports = [
            line
            for line in self._tree.module.body
            if isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[0], (cst.Import, cst.ImportFrom))
        ]
        if not imports:
            return False
        code = edit.code.replace("{value}", str(value))
        plain = next((line for line in imports if _imports(line, edit.module)), None)
        if plain is not None:
            # Imports stay together: the statement comes behind the last of the first run of them.
            self._change(self._last_of_run(imports, plain), _followed(code))
        else:
            self._change(imports[-1], _followed(f"import {edit.module}", code))
        return True

    def _decorator(self, edit: Decorator, place: Place) -> bool:
        named = [
            node
            for node in self._positions
            if isinstance(node, cst.FunctionDef) and node.name.value == place.get("function")
        ]
        here = [
            node for node in named if self._range(node).start.line <= place["line"] <= self._range(node.body).start.line
        ]
        if len(here) != 1 or not (edit.imported is None or self._has_name(edit.imported)):
            return False
        decorator = cst.Decorator(cst.parse_expression(edit.code.removeprefix("@")))
        self._change(here[0], lambda node: node.with_changes(decorators=[decorator, *node.decorators]))
        return True

    def _has_name(self, name: str) -> bool:
        """Whether an import at the top of the script gives this name."""
        lines = [line.body[0] for line in self._tree.module.body if isinstance(line, cst.SimpleStatementLine)]
        given = [alias for line in lines if isinstance(line, cst.Import) for alias in line.names]
        return any((alias.evaluated_alias or alias.evaluated_name) == name for alias in given)

    def _last_of_run(self, imports: list[cst.SimpleStatementLine], begin: cst.SimpleStatementLine) -> cst.CSTNode:
        body: list[Any] = list(self._tree.module.body)
        last = begin
        for line in body[body.index(begin) + 1 :]:
            if line not in imports:
                break
            last = line
        return last


class _Changing(cst.CSTTransformer):
    """Makes the changes of each node as it is left."""

    def __init__(self, changes: dict[cst.CSTNode, list[_Change]]) -> None:
        super().__init__()
        self._changes = changes

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        """Every change of this node, one after the other."""
        made = super().on_leave(original_node, updated_node)
        for change in self._changes.get(original_node, ()):
            made = _within(made, change)
        return made


def _within(made: Any, change: _Change) -> Any:
    """Of a statement that was followed or wrapped already the statement itself is changed."""
    if not isinstance(made, cst.FlattenSentinel):
        return change(made)
    first, *rest = made
    again = change(first)
    return cst.FlattenSentinel([*(again if isinstance(again, cst.FlattenSentinel) else [again]), *rest])


def _filled(code: str | None, value: int | None, place: Place) -> str | None:
    return None if code is None else code.replace("{value}", str(value)).replace("{given}", str(place.get("given")))


def _ends(at: CodeRange) -> tuple[tuple[int, int], tuple[int, int]]:
    return (at.start.line, at.start.column), (at.end.line, at.end.column)


def _imports(line: cst.SimpleStatementLine, module: str) -> bool:
    statement = line.body[0]
    if not isinstance(statement, cst.Import):
        return False
    return any(alias.evaluated_name == module and alias.asname is None for alias in statement.names)


def _target(statement: cst.SimpleStatementLine) -> str | None:
    """What a statement assigns, where that is one name or attribute."""
    only = statement.body[0] if len(statement.body) == 1 else None
    if isinstance(only, cst.Assign) and len(only.targets) == 1:
        target: cst.BaseExpression = only.targets[0].target
    elif isinstance(only, cst.AnnAssign) and only.value is not None:
        target = only.target
    else:
        return None
    return cst.Module([]).code_for_node(target) if isinstance(target, (cst.Name, cst.Attribute)) else None


def _followed(*codes: str) -> _Change:
    return lambda statement: cst.FlattenSentinel([statement, *map(cst.parse_statement, codes)])


def _wrapped(code: str) -> _Change:
    def change(statement: Any) -> Any:
        wrapper = cst.ensure_type(cst.parse_statement(f"{code}\n    pass"), cst.With)
        inner = statement.with_changes(leading_lines=())
        return wrapper.with_changes(leading_lines=statement.leading_lines, body=cst.IndentedBlock([inner]))

    return change


def _with_keywords(call: cst.Call, wanted: Sequence[tuple[str, str | None]]) -> cst.Call:
    arguments = list(call.args)
    for name, code in wanted:
        given = [each.keyword.value if each.keyword is not None else None for each in arguments]
        at = given.index(name) if name in given else None
        if code is None:
            if at is not None:
                arguments = _without(arguments, at)
        elif at is not None:
            arguments[at] = arguments[at].with_changes(value=cst.parse_expression(code))
        else:
            arguments = _appended(arguments, name, cst.parse_expression(code))
    return call.with_changes(args=arguments)


def _without(arguments: list[cst.Arg], at: int) -> list[cst.Arg]:
    """The one before the last keeps the last one's comma, or has none."""
    gone = arguments.pop(at)
    if at == len(arguments) and arguments:
        arguments[-1] = arguments[-1].with_changes(comma=gone.comma, whitespace_after_arg=gone.whitespace_after_arg)
    return arguments


def _appended(arguments: list[cst.Arg], name: str, value: cst.BaseExpression) -> list[cst.Arg]:
    """Behind the last argument, in a line of its own where the others have one."""
    new = cst.Arg(
        keyword=cst.Name(name),
        value=value,
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    if not arguments:
        return [new]
    *_, last = arguments
    between = next((each.comma for each in reversed(arguments[:-1]) if isinstance(each.comma, cst.Comma)), None)
    comma = between or cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    new = new.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    return [*arguments[:-1], last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace("")), new]
