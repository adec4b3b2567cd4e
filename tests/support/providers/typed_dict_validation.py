"""Validation of JSON by a `TypedDict` of an official package: exactly its keys and types."""

import types
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Required, Union, get_args, get_origin

import typing_extensions
from typing_extensions import get_type_hints, is_typeddict

TAGS = ("type", "role")  # the keys that distinguish the members of a union
WRAPPERS = {Required, typing_extensions.Required, typing_extensions.NotRequired}
SEQUENCES = ("Iterable", "List", "list", "Sequence", "SequenceNotStr")
SCALARS = {str: "a string", bool: "a boolean", int: "an integer", float: "a number", type(None): "null"}

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """Difference of JSON from a type."""

    kind: Literal["unknown", "missing", "type", "value"]
    path: Path
    message: str


@dataclass(frozen=True)
class Field:
    """A key of a `TypedDict`."""

    type: Any
    required: bool


@dataclass(frozen=True)
class Leniency:
    """Exceptions where a real provider accepts more than its package allows, by the name of the `TypedDict`."""

    optional: Mapping[str, frozenset[str]]
    extra: Mapping[str, Mapping[str, Any]]  # keys that the package does not have, or has with a narrower type


def check(value: Any, of: Any, leniency: Leniency, path: Path = ()) -> Problem | None:
    """Return the deepest problem of a value; None if it is of the type."""
    origin, name = get_origin(of), getattr(of, "__name__", "")
    if of is Any or of is object:
        return None
    if isinstance(of, typing_extensions.TypeAliasType):
        return check(value, of.__value__, leniency, path)
    if origin in WRAPPERS or origin is typing_extensions.Annotated:
        return check(value, get_args(of)[0], leniency, path)
    if origin in (Union, types.UnionType):
        return _check_union(value, get_args(of), leniency, path)
    if origin is Literal:
        known = get_args(of)
        fits = any(value == each and type(value) is type(each) for each in known)
        values = ", ".join(repr(each) for each in known)
        return None if fits else Problem("value", path, f"Invalid value: {value!r}. Supported values are: {values}.")
    if is_typeddict(of):
        return _check_object(value, of, leniency, path)
    if getattr(origin, "__name__", name) in SEQUENCES:
        return _check_array(value, get_args(of), leniency, path)
    if origin in (dict, Mapping) or name in ("Dict", "dict"):
        return _check_mapping(value, get_args(of), leniency, path)
    return _check_scalar(value, of, path)


def _check_scalar(value: Any, of: Any, path: Path) -> Problem | None:
    if of not in SCALARS:
        return Problem("type", path, "Invalid type.")  # a file, a model of answers: never in a body
    of_type = isinstance(value, (int, float) if of is float else of) and (of is bool or not isinstance(value, bool))
    return None if of_type else Problem("type", path, f"Invalid type: expected {SCALARS[of]}, got {value!r:.60}.")


def _check_array(value: Any, args: tuple[Any, ...], leniency: Leniency, path: Path) -> Problem | None:
    if not isinstance(value, list):
        return Problem("type", path, f"Invalid type: expected an array, got {value!r:.60}.")
    return _first(check(each, args[0], leniency, (*path, index)) for index, each in enumerate(value))


def _check_mapping(value: Any, args: tuple[Any, ...], leniency: Leniency, path: Path) -> Problem | None:
    if not isinstance(value, dict):
        return Problem("type", path, f"Invalid type: expected an object, got {value!r:.60}.")
    of = args[1] if args else object
    return _first(check(each, of, leniency, (*path, key)) for key, each in value.items())


def _first(problems: Any) -> Problem | None:
    return next((problem for problem in problems if problem), None)


def _check_object(value: Any, of: Any, leniency: Leniency, path: Path) -> Problem | None:
    if not isinstance(value, dict):
        return Problem("type", path, f"Invalid type: expected an object, got {value!r:.60}.")
    fields, extra = _fields(of), leniency.extra.get(of.__name__, {})
    optional = leniency.optional.get(of.__name__, frozenset())
    for key, each in value.items():
        if key in extra:
            problem = check(each, extra[key], leniency, (*path, key))
        elif key in fields:
            problem = check(each, fields[key].type, leniency, (*path, key))
        elif getattr(of, "__pydantic_config__", {}).get("extra") == "allow":
            problem = None
        else:
            problem = Problem("unknown", (*path, key), f"Unknown field: {key!r}.")
        if problem:
            return problem
    absent = (key for key, field in fields.items() if field.required and key not in value and key not in optional)
    return _first(Problem("missing", (*path, key), f"Missing required field: {key!r}.") for key in absent)


def _check_union(value: Any, members: tuple[Any, ...], leniency: Leniency, path: Path) -> Problem | None:
    """Return None where one member fits; else the deepest problem, which is that of the intended member."""
    if object in members or Any in members:
        return None
    if isinstance(value, dict):
        members, unfit = _tagged(value, _flat(members), leniency, path)
        if unfit:
            return unfit
    problems = []
    for member in members:
        problem = check(value, member, leniency, path)
        if problem is None:
            return None
        problems.append(problem)
    return max(problems, key=lambda problem: len(problem.path))


def _flat(members: tuple[Any, ...]) -> list[Any]:
    """Return the members of a union, with those of nested unions."""
    flat: list[Any] = []
    for member in members:
        inner = member
        while get_origin(inner) in WRAPPERS or get_origin(inner) is typing_extensions.Annotated:
            inner = get_args(inner)[0]
        nested = get_origin(inner) in (Union, types.UnionType)
        flat += _flat(get_args(inner)) if nested else [inner]
    return flat


def _tagged(value: dict[str, Any], members: list[Any], leniency: Leniency, path: Path) -> tuple[Any, Problem | None]:
    """Return the members of a union whose tag an object has, or the problem of its tag."""
    objects = [member for member in members if is_typeddict(member)]
    mappings = [member for member in members if get_origin(member) is dict]
    for tag in TAGS:
        known = {member: _tags(member, tag) for member in objects}
        if not any(known.values()):
            continue
        fitting = [member for member in objects if _carries(value, member, tag, leniency)]
        if not fitting and not mappings:
            values = ", ".join(sorted({repr(name) for names in known.values() for name in names}))
            at = (*path, tag) if tag in value else path
            return [], Problem("value", at, f"Invalid value: {value.get(tag)!r}. Supported values are: {values}.")
        objects = fitting
    return [*objects, *mappings], None


def _carries(value: dict[str, Any], member: Any, tag: str, leniency: Leniency) -> bool:
    names = _tags(member, tag)
    if tag not in value:
        loose = tag in leniency.optional.get(member.__name__, frozenset())
        return not names or loose or not _fields(member)[tag].required
    return value[tag] in names if names else tag not in _fields(member) or value[tag] is None or tag != "type"


def _tags(member: Any, tag: str) -> tuple[Any, ...]:
    """Return the values of the tag that the `TypedDict` allows."""
    if tag not in _fields(member):
        return ()
    values: list[Any] = []
    for inner in _flat((_fields(member)[tag].type,)):
        values += get_args(inner) if get_origin(inner) is Literal else [None] if inner is type(None) else []
    return tuple(values)


@cache
def _fields(of: Any) -> dict[str, Field]:
    fields = {}
    for key, hint in get_type_hints(of, include_extras=True).items():
        origin = get_origin(hint)
        required = origin in (Required, typing_extensions.Required) or (
            origin is not typing_extensions.NotRequired and key in of.__required_keys__
        )
        fields[key] = Field(hint, required)
    return fields
