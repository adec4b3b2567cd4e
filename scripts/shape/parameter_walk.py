"""Walk of a parameter through the functions to which it is passed.

The walk begins in a function, at one of its parameters, and enters each function of the gateway to which this value is
passed: by its name, by a name that is assigned from it, as a part of it (`request.model`), or in a field of an object
that is made with it (`NewTask(request=request)`). Functions are entered in the order of the calls in the code, branches
one after the other; the calls of a function are followed once for each parameter. Where a pipeline calls the steps of
its table in a loop, the walk enters them in their order. `scripts.shape.callees` finds the callees; another call ends
that part of the walk, for example one through an interface. The code is read, not run.

A **stay** is a sequence of entered functions of one module. A **return** is a stay in a module of an earlier stay. The
limits are those of a walk with the pipeline as one stay: its methods, the functions of its table, and those of their
modules that they call. Two more measures count a stay for each change of the module in the pipeline too.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from scripts.shape.callees import Function, House
from scripts.shape.import_graph import ROOT
from scripts.shape.measure import Measure

START = ("umg_grpc.service.servicers.videos", "VideoServicer", "CreateVideoTask")
STAYS, RETURNS = 8, 2
"""Limits of the walk of a request for a video, with the pipeline as one stay."""
STAYS_BY_STEP, RETURNS_BY_STEP = 12, 1
"""Limits of the same walk with each step in its module: the values of today."""
THE_PIPELINE = "the pipeline"
"""Place of the methods of a pipeline, of the functions of its steps, and of those of their modules that they call."""

Fields = frozenset[str]
"""Fields of an object that hold the value; no field for the value itself."""
ITSELF: Fields = frozenset()


@dataclass
class Walk:
    """Walk of one value: the functions that it enters, in order."""

    house: House
    entered: list[Function] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    """For each entered function its module, or `THE_PIPELINE`."""
    _seen: set[tuple[str, str, str, Fields]] = field(default_factory=set)

    def enter(self, function: Function, parameter: str, fields: Fields = ITSELF, *, is_step: bool = False) -> None:
        """Enter a function with the value in a parameter, or in these fields of it, and follow its calls once.
        `is_step`: whether it is a part of a step.
        """
        is_step = is_step or self.house.is_pipeline(function.receiver)
        self.entered.append(function)
        self.places.append(THE_PIPELINE if is_step else function.module.name)
        known = (function.module.name, function.name, parameter, fields)
        if known not in self._seen:
            self._seen.add(known)
            _Body(self, function, {parameter: fields}, is_step=is_step).visit_body()

    def stays(self) -> list[str]:
        """Return the modules of the stays, in order."""
        return _without_repeats([function.module.name for function in self.entered])

    def stays_beside_pipeline(self) -> list[str]:
        """Return the places of the stays, in order, with the pipeline once, at the first of its stays."""
        stays = _without_repeats(self.places)
        return [place for index, place in enumerate(stays) if place != THE_PIPELINE or place not in stays[:index]]


def returns(stays: Sequence[str]) -> int:
    """Return the number of stays in a place that had a stay before."""
    return len(stays) - len(set(stays))


def _without_repeats(names: Sequence[str]) -> list[str]:
    return [name for index, name in enumerate(names) if index == 0 or names[index - 1] != name]


class _Body(ast.NodeVisitor):
    """Calls of one function that pass the value on."""

    def __init__(self, walk: Walk, function: Function, names: dict[str, Fields], *, is_step: bool) -> None:
        self._walk = walk
        self._function = function
        self._names = names
        self._is_step = is_step
        self._loop_variables: set[str] = set()

    def visit_body(self) -> None:
        for statement in self._function.node.body:
            self.visit(statement)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        if (fields := self._fields(node.value)) is not None:
            self._names |= {target.id: fields for target in node.targets if isinstance(target, ast.Name)}

    def visit_For(self, node: ast.For) -> None:
        self._take_items(node.target, node.iter)
        self.generic_visit(node)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for each in node.generators:  # before the calls with their variables, which the code has first
                self._take_items(each.target, each.iter)
        super().visit(node)

    def _take_items(self, target: ast.expr, items: ast.expr) -> None:
        """Note the variable of a loop, and whether its values are parts of the value."""
        match target, items:
            case ast.Tuple(elts=[_, each]), ast.Call(func=ast.Name(id="enumerate"), args=[listed, *_]):
                self._take_items(each, listed)
            case ast.Name(id=name), _:
                self._loop_variables.add(name)
                if self._fields(items) == ITSELF:
                    self._names[name] = ITSELF
            case _:  # several variables
                pass

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        callee = self._walk.house.callee(self._function, node.func)
        if callee is not None:
            is_step = self._is_step and callee.module == self._function.module
            for name, fields in self._received(callee, node):
                self._walk.enter(callee, name, fields, is_step=is_step)
        elif isinstance(node.func, ast.Name) and node.func.id in self._loop_variables:
            self._visit_steps(node)

    def _visit_steps(self, call: ast.Call) -> None:
        house, pipeline = self._walk.house, self._function.receiver
        for step in house.steps(pipeline) if pipeline is not None and house.is_pipeline(pipeline) else ():
            for name, fields in self._received(step, call):
                self._walk.enter(step, name, fields, is_step=True)

    def _received(self, callee: Function, call: ast.Call) -> Iterator[tuple[str, Fields]]:
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
    name, stays, by_step = "of CreateVideoTask:request", walk.stays_beside_pipeline(), walk.stays()
    listed, all_listed = _numbered(stays), _numbered(by_step)
    yield Measure(f"stays {name}", len(stays), STAYS, places=listed)
    yield Measure(f"returns {name}", returns(stays), RETURNS, places=listed)
    yield Measure(f"stays {name}, by step", len(by_step), STAYS_BY_STEP, ratchet=True, places=all_listed)
    yield Measure(f"returns {name}, by step", returns(by_step), RETURNS_BY_STEP, ratchet=True, places=all_listed)


def _numbered(stays: Sequence[str]) -> list[str]:
    return [f"{index:>2}. {stay}" for index, stay in enumerate(stays, start=1)]
