"""Measures of the axis of operations: the files outside of an operation's rooms that name it.

A file names an operation by an identifier, an import or a text, not by a comment or a docstring. The rows are in
`operation_words`.
"""

import ast
from collections.abc import Iterator, Mapping

from scripts.shape.import_graph import PRODUCT, ROOT
from scripts.shape.measure import Measure
from scripts.shape.operation_words import OPERATION_WORDS, OperationWord, is_in

PACKAGES = (*PRODUCT, "umg_sandbox")


def measures() -> Iterator[Measure]:
    """Yield for each operation the measure of the files that name it."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    names = {path.relative_to(ROOT).as_posix(): names_in(path.read_text(encoding="utf-8")) for path in paths}
    for row in OPERATION_WORDS:
        found = misplaced(row, names)
        yield Measure(f"files that name {row.operation}, outside of its rooms", len(found), places=found)


def misplaced(row: OperationWord, names: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the files that name the operation and are neither in its rooms nor exceptions, and the rooms and
    exceptions that do not name it. `names`: path of a file -> names in its code.
    """
    naming = {path for path, found in names.items() if any(map(row.word.search, found))}
    outside = {path for path in naming if not row.is_room(path)}
    strange = [path for path in sorted(outside) if not row.is_exception(path)]
    unused = [place for place in row.exceptions if not any(is_in(path, place) for path in outside)]
    empty = [room for room in row.rooms if not any(is_in(path, room) for path in naming)]
    unneeded = [f"{place}: an exception without need" for place in unused]
    return [*strange, *unneeded, *(f"{room}: a room without need" for room in empty)]


def names_in(code: str) -> frozenset[str]:
    """Return the identifiers, imports and texts of a module, without its comments and docstrings."""
    tree = ast.parse(code)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return frozenset(name for node in ast.walk(tree) if id(node) not in prose for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield from (name, other or name)
        case ast.ImportFrom(module=str(name)) | ast.Constant(value=str(name)):
            yield name
        case _:  # has no name
            return
