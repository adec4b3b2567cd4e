"""Names in the modules of an SDK's wheel, read as source text: the package is never installed or imported."""

import ast
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from tests.pairs.vendors.sources import LOCK
from tests.world.sdk.runner import wheels

SETTINGS = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
"""Arguments that are no members of a body."""
WORDS = re.compile(r"\w+")


class Sdk(NamedTuple):
    """Wheel with the modules of an SDK."""

    wheel: str
    """Name in the file of the wheel."""
    package: str

    def module(self, path: str) -> ast.Module:
        """Return the syntax tree of a module, by its path in the package. Raise RuntimeError if the wheel cannot be
        downloaded.
        """
        return _module(self, path)

    def arguments(self, path: str, function: str) -> Mapping[str, str]:
        """Return the names of the arguments of the first function of a module with this name, each with its type."""
        nodes = self._nodes(path)
        found = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == function)
        arguments = (*found.args.args, *found.args.kwonlyargs)
        return {each.arg: _text(each.annotation) for each in arguments if each.arg not in SETTINGS}

    def fields(self, path: str, name: str) -> Mapping[str, str]:
        """Return the names of the fields of a class, each with its type."""
        lines = self._class(path, name).body
        return {
            line.target.id: _text(line.annotation)
            for line in lines
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }

    def note(self, path: str, name: str, field: str) -> str:
        """Return the text after a field of a class."""
        lines = self._class(path, name).body
        for line, after in pairwise(lines):
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == field and isinstance(after, ast.Expr):
                return str(ast.literal_eval(after.value))
        raise LookupError(field)

    def constants(self, path: str, name: str) -> frozenset[str]:
        """Return the texts that a class assigns to its names."""
        values = (line.value for line in self._class(path, name).body if isinstance(line, ast.Assign))
        return frozenset(
            value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)
        )

    def text_of(self, path: str, name: str) -> str:
        """Return the text that a module assigns to a name."""
        for node in self.module(path).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
                return str(ast.literal_eval(node.value))
        raise LookupError(name)

    def texts(self, path: str) -> frozenset[str]:
        """Return all texts in a module."""
        return frozenset(
            node.value for node in self._nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )

    def _class(self, path: str, name: str) -> ast.ClassDef:
        return next(node for node in self._nodes(path) if isinstance(node, ast.ClassDef) and node.name == name)

    def _nodes(self, path: str) -> Iterator[ast.AST]:
        return ast.walk(self.module(path))


@cache
def _module(sdk: Sdk, path: str) -> ast.Module:
    (wheel,) = wheels(LOCK).glob(f"{sdk.wheel}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return ast.parse(archive.read(f"{sdk.package}/{path}"))


def _text(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


DASHSCOPE = Sdk("dashscope", "dashscope")
ARK = Sdk("volcengine_ark_runtime", "volcenginesdkarkruntime")
