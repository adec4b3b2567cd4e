"""Providers in the module of data of the package `genai-prices`."""

import ast
from typing import Any


def providers(source: str) -> list[dict[str, Any]]:
    """Return the providers in the source of the package's module of data, which is parsed and not executed."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "providers":
            found = _value(node.value)
            assert isinstance(found, list)
            return found
    raise ValueError("the module has no list of providers")


def _value(node: ast.expr) -> object:
    """Return the value of an expression: a literal, list or dictionary, or the arguments of a call by name."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple():
            return [_value(each) for each in node.elts]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {_value(key): _value(value) for key, value in pairs if key is not None}
        case ast.Call(func=ast.Name(id="Decimal")):
            return _value(node.args[0])
        case ast.Call():
            named = {each.arg: _value(each.value) for each in node.keywords if each.arg is not None}
            return named | ({"arguments": [_value(each) for each in node.args]} if node.args else {})
        case ast.Attribute():
            return node.attr
        case _:  # of the many kinds of expressions the data has no other
            raise ValueError(f"no value in the data: {ast.dump(node)}")
