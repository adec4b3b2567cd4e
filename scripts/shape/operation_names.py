"""Measure of the axis of operations: the files outside of its rooms that name one operation, reranking.

It is the specimen: its word is that of nothing else, while images and videos are also parts of prompts. A file names it
by an identifier, an import or a text, not by a comment or a docstring.
"""

import ast
import re
from collections.abc import Iterator

from scripts.shape.import_graph import PRODUCT, ROOT
from scripts.shape.measure import Measure

WORD = re.compile("rerank", re.IGNORECASE)
ROOMS = (
    *("umg_grpc/operations", "umg_grpc/wire/rerank", "umg_grpc/service/operations/unary/rerank_pipeline.py"),
    *("umg_grpc/service/servicers/reranking.py", "umg_grpc/upstream", "umg_grpc/v1"),
)
"""Rooms of the operation: its row, its formats, its steps, its servicer, its channels, and the schema."""
OTHERS = 11
"""Ratchet: files outside of the rooms that name it."""


def measures() -> Iterator[Measure]:
    """Yield the measure of the files that name the operation."""
    files = (path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py")))
    outside = [path for path in files if not any(path.is_relative_to(ROOT / room) for room in ROOMS)]
    found = [str(path.relative_to(ROOT)) for path in outside if is_named(path.read_text(encoding="utf-8"))]
    name = "files that name reranking, outside of its rooms"
    yield Measure(name, len(found), OTHERS, ratchet=True, places=found)


def is_named(code: str) -> bool:
    """Return whether a module names the operation."""
    tree = ast.parse(code)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return any(WORD.search(name) for node in ast.walk(tree) if id(node) not in prose for name in _names(node))


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
