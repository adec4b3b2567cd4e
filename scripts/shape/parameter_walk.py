"""Walk of a parameter through the functions to which it is passed.

The walk begins in a function, at one of its parameters, and enters each function of the gateway to which this value is
passed: by its name, by a name that is assigned from it, or as a part of it (`request.model`). Functions are entered in
the order of the calls in the code, branches one after the other; the calls of a function are followed once for each
parameter. A callee is a function that the module defines or imports, a method of `self`, or the only method of this
name in the gateway; other calls, and objects in which the value is put down, end that part of the walk. The code is
read, not run.

A **stay** is a sequence of entered functions of one module. A **return** is a stay in a module of an earlier stay.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from scripts.shape.import_graph import PRODUCT, ROOT
from scripts.shape.measure import Measure

Definition = ast.FunctionDef | ast.AsyncFunctionDef
START = ("umg_grpc.service.servicers.videos", "VideoServicer.CreateVideoTask", "request")
STAYS, RETURNS = 13, 7
"""Ratchets of the walk of a request for a video, whose goals are 8 and 2."""


@dataclass(frozen=True)
class Function:
    """Function or method of a module."""

    module: "Module"
    name: str
    """Name in the module, with that of its class."""
    node: Definition

    @property
    def parameters(self) -> list[ast.arg]:
        """Parameters by position, without `self`."""
        arguments = self.node.args
        listed = [*arguments.posonlyargs, *arguments.args]
        return listed[1:] if "." in self.name and not _is_static(self.node) else listed


@dataclass(frozen=True)
class Module:
    """Module of the gateway: its functions, and the names that it imports."""

    name: str
    tree: ast.Module

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions by their names; methods by `Class.method`."""
        found: dict[str, Function] = {}
        for statement in self.tree.body:
            if isinstance(statement, Definition):
                found[statement.name] = Function(self, statement.name, statement)
            if isinstance(statement, ast.ClassDef):
                for member in statement.body:
                    if isinstance(member, Definition):
                        name = f"{statement.name}.{member.name}"
                        found[name] = Function(self, name, member)
        return found

    @cached_property
    def imported(self) -> dict[str, str]:
        """Full names of imported modules and their members, by the names that this module uses."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            if isinstance(node, ast.Import):
                found |= {each.asname: each.name for each in node.names if each.asname}
        return found


class House:
    """Modules of the gateway, in which callees are found."""

    def __init__(self, modules: list[Module]) -> None:
        self._modules = {module.name: module for module in modules}
        self._methods: defaultdict[str, list[Function]] = defaultdict(list)
        for module in modules:
            for name, function in module.functions.items():
                if "." in name:
                    self._methods[function.node.name].append(function)

    @classmethod
    def of(cls, root: Path) -> "House":
        """Read the modules of the product below a folder."""
        files = [path for package in PRODUCT for path in sorted((root / package).rglob("*.py"))]
        return cls([Module(_dotted(path.relative_to(root)), ast.parse(path.read_text("utf-8"))) for path in files])

    def function(self, full_name: str) -> Function | None:
        """Return the function of a full name, also where a package hands it on; None if there is none."""
        module, _, name = full_name.rpartition(".")
        if module not in self._modules:
            return None
        found = self._modules[module]
        return found.functions.get(name) or (self.function(found.imported[name]) if name in found.imported else None)

    def start(self, module: str, name: str) -> Function:
        """Return the function at which a walk begins. Raise KeyError if it does not exist."""
        return self._modules[module].functions[name]

    def callee(self, caller: Function, called: ast.expr) -> Function | None:
        """Return the function that a call enters; None if the code alone does not decide it."""
        match called:
            case ast.Name(id=name):
                return caller.module.functions.get(name) or self.function(caller.module.imported.get(name, ""))
            case ast.Attribute(value=ast.Name(id="self"), attr=method):
                own = caller.module.functions.get(f"{caller.name.partition('.')[0]}.{method}")
                return own or self._only(method)
            case ast.Attribute(value=ast.Name(id=name), attr=member) if name in caller.module.imported:
                return self.function(f"{caller.module.imported[name]}.{member}")
            case ast.Attribute(attr=method):
                return self._only(method)
            case _:  # the callee is a value
                return None

    def _only(self, method: str) -> Function | None:
        return self._methods[method][0] if len(self._methods[method]) == 1 else None


@dataclass
class Walk:
    """Walk of one value: the functions that it enters, in order."""

    house: House
    entered: list[Function] = field(default_factory=list)
    _seen: set[tuple[str, str, str]] = field(default_factory=set)

    def enter(self, function: Function, parameter: str) -> None:
        """Enter a function with the value in a parameter, and go on through its calls, once for each parameter."""
        self.entered.append(function)
        place = (function.module.name, function.name, parameter)
        if place not in self._seen:
            self._seen.add(place)
            _Body(self, function, parameter).visit_body()

    def stays(self) -> list[str]:
        """Return the modules of the stays, in order."""
        names = [function.module.name for function in self.entered]
        return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]

    def returns(self) -> int:
        """Return the number of stays in a module that had a stay before."""
        stays = self.stays()
        return len(stays) - len(set(stays))


class _Body(ast.NodeVisitor):
    """Calls of one function that pass the value on."""

    def __init__(self, walk: Walk, function: Function, parameter: str) -> None:
        self._walk = walk
        self._function = function
        self._names = {parameter}

    def visit_body(self) -> None:
        for statement in self._function.node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        if self._is_value(node.value):
            self._names |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def visit_For(self, node: ast.For) -> None:
        if self._is_value(node.iter) and isinstance(node.target, ast.Name):
            self._names.add(node.target.id)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        callee = self._walk.house.callee(self._function, node.func)
        if callee is not None:
            for name in self._received(callee, node):
                self._walk.enter(callee, name)

    def _received(self, callee: Function, call: ast.Call) -> Iterator[str]:
        """Yield the parameters of a callee in which it gets the value."""
        for parameter, argument in zip(callee.parameters, call.args, strict=False):
            if self._is_value(argument):
                yield parameter.arg
        yield from (each.arg for each in call.keywords if each.arg and self._is_value(each.value))

    def _is_value(self, expression: ast.expr) -> bool:
        """Return whether an expression is the value, or a part of it."""
        match expression:
            case ast.Name(id=name):
                return name in self._names
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Await(value=value):
                return self._is_value(value)
            case ast.IfExp(body=one, orelse=other):
                return self._is_value(one) or self._is_value(other)
            case _:  # another value, which may be made from it
                return False


def measures() -> Iterator[Measure]:
    """Yield the measures of the walk of a request for a video."""
    module, name, parameter = START
    house = House.of(ROOT)
    walk = Walk(house)
    walk.enter(house.start(module, name), parameter)
    places = [f"{index:>2}. {stay}" for index, stay in enumerate(walk.stays(), start=1)]
    yield Measure("stays of CreateVideoTask:request", len(places), STAYS, ratchet=True, places=places)
    yield Measure("returns of CreateVideoTask:request", walk.returns(), RETURNS, ratchet=True, places=places)


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _is_static(node: Definition) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
