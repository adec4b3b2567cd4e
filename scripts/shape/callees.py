"""Functions of the gateway and the functions that their calls enter, by the names and annotations in the code alone.

A callee is a function that the module of the call defines or imports, a method of the object that runs the call, a
method of the class of an attribute of `self` (by its annotation, by that of the parameter of `__init__` that sets it,
or by the class of which `__init__` makes it), or else the only method of its name in the gateway.

A pipeline runs the steps of its table, `_request_steps`, in the order of `PIPELINE_STEPS`; so they are read from both.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from scripts.shape.import_graph import PRODUCT

Definition = ast.FunctionDef | ast.AsyncFunctionDef
STEPS_MODULE, STEP_TABLE = "umg_grpc.service.pipeline.step_order", "_request_steps"
"""Module that names all steps in their order, and the method of a pipeline with the function of each of its steps."""


@dataclass(frozen=True)
class Function:
    """Function, or method of a class."""

    module: "Module"
    name: str
    node: Definition
    owner: "Class | None" = None
    receiver: "Class | None" = None
    """Class of the object that runs a method: `owner`, or a class that derives from it."""

    @property
    def parameters(self) -> list[ast.arg]:
        """Parameters by position, without `self`."""
        arguments = self.node.args
        listed = [*arguments.posonlyargs, *arguments.args]
        static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in self.node.decorator_list)
        return listed[1:] if self.owner is not None and not static else listed

    @property
    def annotations(self) -> dict[str, ast.expr]:
        """Annotations of the parameters, by their names."""
        arguments = [*self.parameters, *self.node.args.kwonlyargs]
        return {each.arg: each.annotation for each in arguments if each.annotation is not None}


@dataclass(frozen=True)
class Class:
    """Class: its methods by their names, and the annotations of its attributes."""

    module: "Module"
    node: ast.ClassDef

    @cached_property
    def methods(self) -> dict[str, Function]:
        """Methods by their names."""
        return {
            member.name: Function(self.module, f"{self.node.name}.{member.name}", member, self, self)
            for member in self.node.body
            if isinstance(member, Definition)
        }

    @cached_property
    def attributes(self) -> dict[str, ast.expr]:
        """Annotations of the attributes that the class declares or `__init__` sets from its parameters, and the names
        of the classes of which `__init__` makes others.
        """
        found = {
            each.target.id: each.annotation
            for each in self.node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        }
        if (made := self.methods.get("__init__")) is None:
            return found
        for statement in ast.walk(made.node):
            match statement:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=given)
                ):
                    found |= {name: made.annotations[given]} if given in made.annotations else {}
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Call(func=called)
                ):
                    found |= {name: called}
                case _:  # sets no attribute
                    pass
        return found


@dataclass(frozen=True)
class Module:
    """Module: its functions and classes, and the names that it imports."""

    name: str
    tree: ast.Module

    @cached_property
    def functions(self) -> dict[str, Function]:
        """Functions by their names."""
        return {each.name: Function(self, each.name, each) for each in self.tree.body if isinstance(each, Definition)}

    @cached_property
    def classes(self) -> dict[str, Class]:
        """Classes by their names."""
        return {each.name: Class(self, each) for each in self.tree.body if isinstance(each, ast.ClassDef)}

    @cached_property
    def imported(self) -> dict[str, str]:
        """Full names of imported modules and their members, by the names that this module uses."""
        found: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
        return found


class House:
    """Modules of the gateway, in which callees are found."""

    def __init__(self, modules: list[Module]) -> None:
        self._modules = {module.name: module for module in modules}
        self._by_method: defaultdict[str, list[Function]] = defaultdict(list)
        for module in modules:
            for each in module.classes.values():
                for name, method in each.methods.items():
                    self._by_method[name].append(method)

    @classmethod
    def of(cls, root: Path) -> "House":
        """Read the modules of the product below a folder."""
        files = [path for package in PRODUCT for path in sorted((root / package).rglob("*.py"))]
        return cls([Module(_dotted(path.relative_to(root)), ast.parse(path.read_text("utf-8"))) for path in files])

    def method(self, module: str, owner: str, name: str) -> Function:
        """Return a method. Raise KeyError if it does not exist."""
        return self._modules[module].classes[owner].methods[name]

    def callee(self, caller: Function, called: ast.expr) -> Function | None:
        """Return the function that a call enters; None if the code alone does not decide it."""
        if isinstance(named := self._named(caller.module, called), Function):
            return named
        match called:
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if caller.receiver is not None:
                return self._method_of(caller.receiver, name) or self._only(name)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=attribute), attr=name):
                held = self._held(caller.receiver, attribute) if caller.receiver is not None else None
                return self._method_of(held, name) if held is not None else self._only(name)
            case ast.Attribute(attr=name):
                return self._only(name)
            case _:  # a value, or a function of a library
                return None

    def steps(self, pipeline: Class) -> list[Function]:
        """Return the functions of the steps that a pipeline runs one after the other, in the order of the list."""
        taken = self._steps_by_name(pipeline, pipeline)
        listed = ast.walk(self._modules[STEPS_MODULE].tree)
        return [taken[each.target.id] for each in listed if isinstance(each, ast.NamedExpr) and each.target.id in taken]

    def is_pipeline(self, owner: Class | None) -> bool:
        """Return whether a class has a table of steps."""
        return owner is not None and self._method_of(owner, STEP_TABLE) is not None

    def _steps_by_name(self, pipeline: Class, base: Class) -> dict[str, Function]:
        """Return the functions of the steps of a pipeline by the names of the steps, from the table of `base`."""
        found: dict[str, Function] = {}
        if (table := self._method_of(base, STEP_TABLE)) is None:
            return found
        for node in ast.walk(table.node):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:  # `**super()._request_steps()`
                    for each in self._bases(table.owner):
                        found |= self._steps_by_name(pipeline, each)
                elif isinstance(key, ast.Name) and (step := self.callee(replace(table, receiver=pipeline), value)):
                    found[key.id] = step
        return found

    def is_class(self, caller: Function, called: ast.expr) -> bool:
        """Return whether a call makes an object of a class of the gateway."""
        return isinstance(self._named(caller.module, called), Class)

    def _only(self, name: str) -> Function | None:
        methods = self._by_method[name]
        return methods[0] if len(methods) == 1 else None

    def _named(self, module: Module, expression: ast.expr) -> Function | Class | None:
        """Return the function or class that a name or a member of an imported module is."""
        match expression:
            case ast.Name(id=name):
                own = module.functions.get(name) or module.classes.get(name)
                return own or self._full(module.imported.get(name, ""))
            case ast.Attribute(value=ast.Name(id=name), attr=member):
                return self._full(f"{module.imported.get(name, '')}.{member}")
            case _:  # a value
                return None

    def _full(self, full_name: str) -> Function | Class | None:
        name, _, member = full_name.rpartition(".")
        if (module := self._modules.get(name)) is None:
            return None
        own = module.functions.get(member) or module.classes.get(member)
        return own or (self._full(module.imported[member]) if member in module.imported else None)

    def _method_of(self, owner: Class, name: str) -> Function | None:
        if name in owner.methods:
            return owner.methods[name]
        found = next((found for base in self._bases(owner) if (found := self._method_of(base, name))), None)
        return None if found is None else replace(found, receiver=owner)

    def _held(self, owner: Class, attribute: str) -> Class | None:
        if attribute in owner.attributes:
            return self._annotated(owner.module, owner.attributes[attribute])
        return next((found for base in self._bases(owner) if (found := self._held(base, attribute))), None)

    def _bases(self, derived: Class | None) -> Iterator[Class]:
        for base in derived.node.bases if derived is not None else ():
            if (found := self._annotated(derived.module, base)) is not None:
                yield found

    def _annotated(self, module: Module, annotation: ast.expr) -> Class | None:
        """Return the class of an annotation, also of an optional or generic one."""
        match annotation:
            case ast.Constant(value=str(text)):
                return self._annotated(module, ast.parse(text, mode="eval").body)
            case ast.BinOp(left=one, right=other):
                return self._annotated(module, one) or self._annotated(module, other)
            case ast.Subscript(value=value):
                return self._annotated(module, value)
            case _:  # a name
                found = self._named(module, annotation)
                return found if isinstance(found, Class) else None


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")
