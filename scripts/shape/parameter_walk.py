"""Walk of a parameter through the functions to which it is passed.

The walk begins in a function, at one of its parameters, and enters each function of the gateway to which this value is
passed: by its name, by a name that is assigned from it, as a part of it (`request.model`), or in a field of an object
that is made with it (`NewTask(request=request)`). Functions are entered in the order of the calls in the code, branches
one after the other; the calls of a function are followed once for each parameter. `scripts.shape.callees` finds the
callees; another call, for example of a step in the table of a pipeline, ends that part of the walk. The code is read,
not run.

A **stay** is a sequence of entered functions of one module. A **return** is a stay in a module of an earlier stay.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from scripts.shape.callees import Function, House
from scripts.shape.import_graph import ROOT
from scripts.shape.measure import Measure

START = ("umg_grpc.service.servicers.videos", "VideoServicer", "CreateVideoTask")
STAYS, RETURNS = 8, 2
"""Limits of the walk of a request for a video."""


Fields = frozenset[str]
"""Fields of an object that hold the value; no field for the value itself."""
ITSELF: Fields = frozenset()


@dataclass
class Walk:
    """Walk of one value: the functions that it enters, in order."""

    house: House
    entered: list[Function] = field(default_factory=list)
    _seen: set[tuple[str, str, str, Fields]] = field(default_factory=set)

    def enter(self, function: Function, parameter: str, fields: Fields = ITSELF) -> None:
        """Enter a function with the value in a parameter, or in these fields of it, and follow its calls once."""
        self.entered.append(function)
        place = (function.module.name, function.name, parameter, fields)
        if place not in self._seen:
            self._seen.add(place)
            _Body(self, function, {parameter: fields}).visit_body()

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

    def __init__(self, walk: Walk, function: Function, names: dict[str, Fields]) -> None:
        self._walk = walk
        self._function = function
        self._names = names

    def visit_body(self) -> None:
        for statement in self._function.node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        if (fields := self._fields(node.value)) is not None:
            self._names |= {target.id: fields for target in node.targets if isinstance(target, ast.Name)}

    def visit_For(self, node: ast.For) -> None:
        if self._fields(node.iter) == ITSELF and isinstance(node.target, ast.Name):
            self._names[node.target.id] = ITSELF
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        callee = self._walk.house.callee(self._function, node.func)
        if callee is not None:
            for name, fields in self._received(callee, node):
                self._walk.enter(callee, name, fields)

    def _received(self, callee: Function, call: ast.Call) -> Iterator[tuple[str, Fields]]:
        """Yield the parameters of a callee in which it gets the value, with the fields that hold it."""
        given = [(parameter.arg, argument) for parameter, argument in zip(callee.parameters, call.args, strict=False)]
        given += [(each.arg, each.value) for each in call.keywords if each.arg]
        for name, argument in given:
            if (fields := self._fields(argument)) is not None:
                yield name, fields

    def _fields(self, expression: ast.expr) -> Fields | None:
        """Return the fields of an expression that hold the value; None if it is another value."""
        match expression:
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.Attribute(value=value, attr=name):
                fields = self._fields(value)
                return ITSELF if fields is not None and (fields == ITSELF or name in fields) else None
            case ast.Subscript(value=value) | ast.Await(value=value):
                return self._fields(value)
            case ast.IfExp(body=one, orelse=other):
                fields = self._fields(one)
                return self._fields(other) if fields is None else fields
            case ast.Call(func=called, keywords=keywords) if self._walk.house.is_class(self._function, called):
                held = frozenset(each.arg for each in keywords if each.arg and self._fields(each.value) == ITSELF)
                return held or None
            case _:  # another value, which may be made from it
                return None


def measures() -> Iterator[Measure]:
    """Yield the measures of the walk of a request for a video."""
    house = House.of(ROOT)
    walk = Walk(house)
    walk.enter(house.method(*START), "request")
    places = [f"{index:>2}. {stay}" for index, stay in enumerate(walk.stays(), start=1)]
    yield Measure("stays of CreateVideoTask:request", len(places), STAYS, places=places)
    yield Measure("returns of CreateVideoTask:request", walk.returns(), RETURNS, places=places)
