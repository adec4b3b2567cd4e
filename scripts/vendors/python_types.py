"""Types of a Python package, read from its source files without importing them: members of classes and literals."""

import ast
import zipfile
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple


class Member(NamedTuple):
    """Member of a class, or a literal text that a member may have."""

    owner: str
    name: str
    depth: int
    """Number of classes from the first type to the owner, which counts: 1 for a member of the first type itself."""
    value: str | None = None
    """Literal; None for the member itself."""


@dataclass
class _Module:
    """Names that a source file defines, and the modules from which it imports others."""

    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name -> (module, name in it)."""


def of_wheel(wheel: Path, package: str) -> dict[str, str]:
    """Return the source files of a package in a wheel by the names of their modules."""
    with zipfile.ZipFile(wheel) as archive:
        names = [
            name
            for name in archive.namelist()
            if name.startswith(f"{package.replace('.', '/')}/") and name.endswith(".py")
        ]
        return {_module_name(name): archive.read(name).decode() for name in names}


def of_folder(folder: Path, package: str) -> dict[str, str]:
    """Return the source files of an installed package, in a folder of packages, by the names of their modules."""
    paths = sorted((folder / package.replace(".", "/")).rglob("*.py"))
    return {_module_name(path.relative_to(folder).as_posix()): path.read_text(encoding="utf-8") for path in paths}


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class PackageTypes:
    """Types of a package, whose files are parsed when they are needed."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._modules: dict[str, _Module] = {}
        self._open = set[tuple[str, str]]()
        """Aliases whose types are being read."""

    def members(self, module: str, name: str) -> Iterator[Member]:
        """Yield all members and literals that can be reached from a type, the nearest first. Raise KeyError if the
        type is missing.
        """
        if not self._has(module, name):
            raise KeyError(f"{module}.{name}")
        waiting = deque[_Class]()
        yield from self._named(_Place(module, Member("", "", 0), waiting), name)
        seen = set[tuple[str, str]]()
        while waiting:
            found = waiting.popleft()
            if (found.module, found.node.name) not in seen:
                seen.add((found.module, found.node.name))
                place = _Place(found.module, found.at, waiting)
                yield from self._class(place, found.node, found.node.name)

    def own_members(self, module: str, name: str) -> set[str]:
        """Return the names of the members of a class, without those of its members' types."""
        return {member.name for member in self.members(module, name) if member.owner == name and member.value is None}

    def _has(self, module: str, name: str) -> bool:
        found = self._module(module)
        return name in found.classes or name in found.aliases or name in found.imports

    def _module(self, name: str) -> _Module:
        if name not in self._modules:
            is_package = any(other.startswith(f"{name}.") for other in self._sources)
            self._modules[name] = _parsed(name, self._sources.get(name, ""), is_package=is_package)
        return self._modules[name]

    def _named(self, place: "_Place", name: str) -> Iterator[Member]:
        """Yield the literals of the type that a name stands for. Its classes are added to the waiting ones."""
        found = self._module(place.module)
        if name in found.classes:
            place.waiting.append(_Class(place.module, found.classes[name], place.at))
        elif name in found.aliases:
            if (place.module, name) not in self._open:  # aliases may name themselves
                self._open.add((place.module, name))
                yield from self._type(place, found.aliases[name])
                self._open.remove((place.module, name))
        elif name in found.imports:
            other, original = found.imports[name]
            if other in self._sources:
                yield from self._named(place.within(other), original)

    def _class(self, place: "_Place", node: ast.ClassDef, owner: str) -> Iterator[Member]:
        """Yield the members of a class and of its bases, as those of `owner`."""
        is_enum = any("Enum" in ast.unparse(base) for base in node.bases)
        depth = place.at.depth + 1
        for base in node.bases:
            if isinstance(base, ast.Name):
                yield from self._base(place, base.id, owner)
        for line in node.body:
            if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                name = _alias(line) or line.target.id
                if not name.startswith("_") and name != "model_config":
                    member = Member(owner, name, depth)
                    yield member
                    yield from self._type(_Place(place.module, member, place.waiting), line.annotation)
            elif is_enum and isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant):
                yield place.at._replace(value=str(line.value.value))

    def _base(self, place: "_Place", name: str, owner: str) -> Iterator[Member]:
        found = self._module(place.module)
        if name in found.classes:
            yield from self._class(place, found.classes[name], owner)
        elif name in found.aliases and isinstance(call := found.aliases[name], ast.Call) and len(call.args) == 2:
            fields = call.args[1]  # TypedDict("Name", {"member": type})
            if isinstance(fields, ast.Dict):
                for key in fields.keys:
                    if isinstance(key, ast.Constant):
                        yield Member(owner, str(key.value), place.at.depth + 1)
        elif name in found.imports and found.imports[name][0] in self._sources:
            other, original = found.imports[name]
            yield from self._base(place.within(other), original, owner)

    def _type(self, place: "_Place", node: ast.expr) -> Iterator[Member]:
        """Yield the literals of the type that an annotation states. Its classes are added to the waiting ones."""
        match node:
            case ast.Name(id=name):
                yield from self._named(place, name)
            case ast.Attribute(value=ast.Name(id=prefix), attr=name):
                other, original = self._module(place.module).imports.get(prefix, ("", ""))
                yield from self._named(place.within(f"{other}.{original}"), name)
            case ast.Constant(value=str(text)):
                yield from self._type(place, ast.parse(text, mode="eval").body)
            case ast.BinOp(left=left, right=right):
                yield from self._type(place, left)
                yield from self._type(place, right)
            case ast.Subscript(value=value, slice=inner):
                yield from self._subscript(place, ast.unparse(value), inner)
            case ast.Call(args=[_, inner, *_]):  # TypeAliasType("Name", type)
                yield from self._type(place, inner)
            case _:  # any other expression names no type of the package
                pass

    def _subscript(self, place: "_Place", origin: str, inner: ast.expr) -> Iterator[Member]:
        elements = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        if origin.endswith("Literal"):
            for element in elements:
                if isinstance(element, ast.Constant) and isinstance(element.value, str):
                    yield place.at._replace(value=element.value)
            return
        for element in elements[:1] if origin.endswith("Annotated") else elements:
            yield from self._type(place, element)


class _Class(NamedTuple):
    """Class whose members are still to be read."""

    module: str
    node: ast.ClassDef
    at: Member
    """Member that has this type."""


@dataclass(frozen=True)
class _Place:
    """Place of a type: its module, the member that has it, and the classes that wait."""

    module: str
    at: Member
    waiting: deque[_Class]

    def within(self, module: str) -> "_Place":
        """Return the place of the same type in another module."""
        return replace(self, module=module)


def _alias(line: ast.AnnAssign) -> str:
    for node in ast.walk(line):
        if isinstance(node, ast.keyword) and node.arg == "alias" and isinstance(node.value, ast.Constant):
            return str(node.value.value)
    return ""


def _parsed(name: str, source: str, *, is_package: bool) -> _Module:
    """Return the names of a source file, those in its conditions (`if TYPE_CHECKING`) included."""
    module = _Module()
    lines = list(ast.parse(source).body)
    while lines:
        line = lines.pop(0)
        match line:
            case ast.ClassDef(name=own):
                module.classes[own] = line
            case ast.Assign(targets=[ast.Name(id=own)], value=value):
                module.aliases[own] = value
            case ast.AnnAssign(target=ast.Name(id=own), value=ast.expr() as value):
                module.aliases[own] = value
            case ast.ImportFrom():
                origin = _origin(name, line, is_package=is_package)
                module.imports |= {each.asname or each.name: (origin, each.name) for each in line.names}
            case ast.If() | ast.Try():
                lines[:0] = [*line.body, *line.orelse]
            case _:  # any other statement defines no type
                pass
    return module


def _origin(name: str, line: ast.ImportFrom, *, is_package: bool) -> str:
    if not line.level:
        return line.module or ""
    parts = name.split(".")
    base = parts[: len(parts) - line.level + is_package]
    return ".".join([*base, *([line.module] if line.module else [])])


@dataclass(frozen=True)
class Vocabulary:
    """Words that the source files in some folders use: names, and words in texts other than docstrings."""

    folders: tuple[Path, ...]

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of all files."""
        return frozenset(
            word for folder in self.folders for path in sorted(folder.rglob("*.py")) for word in _words(path)
        )

    def __contains__(self, word: str) -> bool:
        return word in self.words


def _words(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text
                yield from text.replace("[]", "").replace("{", " ").replace("}", " ").replace(".", " ").split()
            case _:  # any other node has no word
                pass
