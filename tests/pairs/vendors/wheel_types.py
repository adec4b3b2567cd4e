"""Request types of an SDK in a wheel, read as source text: the package is never installed or imported."""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

TAGS = ("role", "type")
ALIAS = re.compile(r"alias='(\w+)'")
DEFINITION = re.compile(r"^(?:class (\w+)\(TypedDict\)|(\w+) = (?:TypeAliasType\(|Literal\[|Union\[))", re.MULTILINE)
WRAPPERS = {"NotRequired", "Nullable", "Optional", "Required", "Annotated"}


class Problem(NamedTuple):
    """Difference of JSON from a type. `known`: the values that the type has at this place."""

    kind: Literal["unknown", "value"]
    path: tuple[str, ...]
    value: Any
    known: tuple[str, ...] = ()


class WheelTypes:
    """Types of one folder of modules, each found by its name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _modules(self) -> Mapping[str, Path]:
        return {
            match[1] or match[2]: path
            for path in sorted(self._folder.glob("*.py"))
            for match in DEFINITION.finditer(path.read_text())
        }

    @cache  # noqa: B019  one instance lives as long as the tests
    def fields(self, name: str) -> Mapping[str, ast.expr]:
        """Return the keys of a `TypedDict`, each with its type."""
        found = self._definition(name)
        assert isinstance(found, ast.ClassDef), name
        aliases = self._aliases(name.removesuffix("TypedDict"))
        return {
            aliases.get(line.target.id, line.target.id): line.annotation
            for line in found.body
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
        }

    def _aliases(self, name: str) -> Mapping[str, str]:
        """Return the names in JSON of the fields of a model that are other than their names in Python."""
        path = self._modules.get(f"{name}TypedDict")
        lines = ast.parse(path.read_text()).body if path is not None else []
        found = next((line for line in lines if isinstance(line, ast.ClassDef) and line.name == name), None)
        return {
            line.target.id: match[1]
            for line in (found.body if found is not None else ())
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
            if (match := ALIAS.search(ast.unparse(line.annotation)))
        }

    def check(self, value: Any, name: str) -> Problem | None:
        """Return the first key or literal of a value that the type `name` does not have; None if it has all."""
        return self._check(value, ast.Name(name), ())

    @cache  # noqa: B019  as above
    def _definition(self, name: str) -> ast.ClassDef | ast.expr | None:
        path = self._modules.get(name)
        for line in ast.parse(path.read_text()).body if path is not None else ():
            if isinstance(line, ast.ClassDef) and line.name == name:
                return line
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == name:
                is_alias = isinstance(line.value, ast.Call) and ast.unparse(line.value.func) == "TypeAliasType"
                return line.value.args[1] if is_alias and isinstance(line.value, ast.Call) else line.value
        return None

    def _options(self, node: ast.expr) -> Iterator[ast.expr | ast.ClassDef]:
        """Yield the members of a union, with those of nested unions and aliases."""
        match node:
            case ast.Name(id=name):
                found = self._definition(name)
                if isinstance(found, ast.expr):
                    yield from self._options(found)
                else:
                    yield found or node
            case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=members)):
                for member in members:
                    yield from self._options(member)
            case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in WRAPPERS:
                yield from self._options(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
            case _:
                yield node

    def _check(self, value: Any, node: ast.expr, path: tuple[str, ...]) -> Problem | None:
        options = list(self._options(node))
        if isinstance(value, dict):
            return self._check_object(value, [each for each in options if isinstance(each, ast.ClassDef)], path)
        if isinstance(value, list):
            lists = [each for each in options if _is(each, "List")]
            inner = lists[0].slice if lists and isinstance(lists[0], ast.Subscript) else None
            problems = (self._check(each, inner, path) for each in value) if inner is not None else ()
            return next((problem for problem in problems if problem), None)
        known = [literal for each in options for literal in _literals(each)]
        closed = isinstance(value, str) and known and all(_is(each, "Literal") for each in options)
        return Problem("value", path, value, tuple(known)) if closed and value not in known else None

    def _check_object(self, value: dict[str, Any], types: list[ast.ClassDef], path: tuple[str, ...]) -> Problem | None:
        if not types:
            return None
        for tag in TAGS:
            by_tag = {literal: each for each in types for literal in self._tag(each, tag)}
            if by_tag and tag in value:
                if value[tag] not in by_tag:
                    return Problem("value", (*path, tag), value[tag], tuple(sorted(by_tag)))
                types = [by_tag[value[tag]]]
        if len(types) > 1:
            return None  # a union without a tag
        fields = self.fields(types[0].name)
        for key in sorted(value.keys() - fields.keys()):
            return Problem("unknown", (*path, key), value[key])
        for key, each in value.items():
            if problem := self._check(each, fields[key], (*path, key)):
                return problem
        return None

    def _tag(self, of: ast.ClassDef, tag: str) -> Iterator[str]:
        if (field := self.fields(of.name).get(tag)) is not None:
            for option in self._options(field):
                yield from _literals(option)


def _is(node: ast.expr | ast.ClassDef, name: str) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name


def _literals(node: ast.expr | ast.ClassDef) -> Iterator[str]:
    if isinstance(node, ast.Subscript) and _is(node, "Literal"):
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        yield from (each.value for each in inner if isinstance(each, ast.Constant) and isinstance(each.value, str))
