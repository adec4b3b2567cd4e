"""Names in the SDK `dashscope`, read in its wheel as source text: the package is never installed or imported."""

import ast
import zipfile
from collections.abc import Iterator
from functools import cache

from tests.pairs.vendors.sources import LOCK
from tests.world.sdk.runner import wheels


@cache
def module(path: str) -> ast.Module:
    """Return the syntax tree of a module, by its path in the package. Raise RuntimeError if the wheel cannot be
    downloaded.
    """
    (wheel,) = wheels(LOCK).glob("dashscope-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return ast.parse(archive.read(f"dashscope/{path}"))


def arguments(path: str, function: str) -> frozenset[str]:
    """Return the names of the arguments of the first function of a module with this name."""
    found = next(node for node in _nodes(path) if isinstance(node, ast.FunctionDef) and node.name == function)
    return frozenset(argument.arg for argument in (*found.args.args, *found.args.kwonlyargs))


def constants(path: str, name: str) -> frozenset[str]:
    """Return the texts that a class assigns to its names."""
    found = next(node for node in _nodes(path) if isinstance(node, ast.ClassDef) and node.name == name)
    values = (line.value for line in found.body if isinstance(line, ast.Assign))
    return frozenset(
        value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)
    )


def text_of(path: str, name: str) -> str:
    """Return the text that a module assigns to a name."""
    for node in module(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return str(ast.literal_eval(node.value))
    raise LookupError(name)


def _nodes(path: str) -> Iterator[ast.AST]:
    return ast.walk(module(path))
