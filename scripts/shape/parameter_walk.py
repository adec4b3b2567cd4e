"""Walk of a parameter through the functions to which it is passed.

The walk begins in a function, at one of its parameters, and enters each function of the gateway to which this value is
passed: by its name, by a name that is assigned from it, or as a part of it (`request.model`). Functions are entered in
the order of the calls in the code, branches one after the other; the calls of a function are followed once for each
parameter. `scripts.shape.callees` finds the callees; another call, or an object in which the value is put down, ends
that part of the walk. The code is read, not run.

A **stay** is a sequence of entered functions of one module. A **return** is a stay in a module of an earlier stay.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from scripts.shape.callees import Function, House
from scripts.shape.import_graph import ROOT
from scripts.shape.measure import Measure

START = ("umg_grpc.service.servicers.videos", "VideoServicer", "CreateVideoTask")
STAYS, RETURNS = 13, 7
"""Ratchets of the walk of a request for a video, whose goals are 8 and 2."""


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
        self._value = {parameter}

    def visit_body(self) -> None:
        for statement in self._function.node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        if self._is_value(node.value):
            self._value |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def visit_For(self, node: ast.For) -> None:
        if self._is_value(node.iter) and isinstance(node.target, ast.Name):
            self._value.add(node.target.id)
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
                return name in self._value
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Await(value=value):
                return self._is_value(value)
            case ast.IfExp(body=one, orelse=other):
                return self._is_value(one) or self._is_value(other)
            case _:  # another value, which may be made from it
                return False


def measures() -> Iterator[Measure]:
    """Yield the measures of the walk of a request for a video."""
    house = House.of(ROOT)
    walk = Walk(house)
    walk.enter(house.method(*START), "request")
    places = [f"{index:>2}. {stay}" for index, stay in enumerate(walk.stays(), start=1)]
    yield Measure("stays of CreateVideoTask:request", len(places), STAYS, ratchet=True, places=places)
    yield Measure("returns of CreateVideoTask:request", walk.returns(), RETURNS, ratchet=True, places=places)
