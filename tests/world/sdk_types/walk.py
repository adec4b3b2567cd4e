"""Bodies for every alternative of an SDK's type: each field, literal and member of a union is in one of them."""

import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import typing_extensions

ALTERNATIVES = frozenset({"file_id", "file_data", "file_url", "image_url"})
"""Fields of which an object must have exactly one: the one that is tried replaces those of `completions`."""
SAMPLES: Mapping[type, object] = {str: "x", bool: True, int: 1, float: 1.0, bytes: b"ab", object: {}}


@dataclass(frozen=True)
class Variant:
    path: str
    """Path of the alternative that the value covers, for example `.messages[]{user}.content[]{image}.source{url}`."""
    value: Any


@dataclass
class Walker:
    """Walker that expands each object type once below each field of the body; elsewhere its smallest value is used.

    `samples`: values by the name of their field, for texts of a certain form. `completions`: required fields by the
    name of their type, although the type has them as optional. `replaced`: types by the name of their field, for types
    that cannot be walked.
    """

    samples: Mapping[str, Any] = field(default_factory=dict)
    completions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replaced: Mapping[str, Any] = field(default_factory=dict)
    expanded: set[tuple[str, Any]] = field(default_factory=set)
    expands: bool = True

    def variants(self, kind: Any, path: str = "", name: str = "") -> Iterator[Variant]:
        """Yield values that together contain every alternative of the type, the smallest one first."""
        kind = _bare(kind)
        if name in self.samples and not _is_object(kind):
            yield Variant(path, self.samples[name])
            return
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            for member in arguments:
                if member is not type(None) and _is_data(member):
                    yield from self.variants(member, path, name)
        elif origin is Literal:
            yield from (Variant(f"{path}={value}", value) for value in arguments)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            yield from (Variant(f"{path}={member.value}", member.value) for member in kind)
        elif _is_object(kind):
            yield from self._object(kind, path)
        elif isinstance(origin, type) and issubclass(origin, Mapping) and f"{name}{{}}" in self.samples:
            yield Variant(f"{path}{{}}", self.samples[f"{name}{{}}"])
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            yield from (
                Variant(f"{path}{one.path}", {"key": one.value}) for one in self.variants(arguments[1], "{}", name)
            )
        elif isinstance(origin, type) and arguments:  # lists and other sequences
            yield from (Variant(one.path, [one.value]) for one in self.variants(arguments[0], f"{path}[]", name))
        else:
            yield Variant(path, SAMPLES.get(kind, {}))

    def _least(self, kind: Any, name: str) -> Any:
        least = Walker(self.samples, self.completions, self.replaced, expands=False)
        return next(iter(least.variants(kind, "", name))).value

    def _object(self, kind: Any, path: str) -> Iterator[Variant]:
        fields = {name: (self.replaced.get(name, hint), required) for name, (hint, required) in _fields(kind).items()}
        tags = [get_args(_bare(hint))[0] for name, (hint, _) in fields.items() if name == "type" and _is_literal(hint)]
        root = path.partition(".")[2].partition(".")[0].partition("[")[0].partition("{")[0]
        path = f"{path}{{{tags[0] if tags else kind.__name__}}}" if path else path
        least = {name: self._least(hint, name) for name, (hint, required) in fields.items() if required}
        least |= self.completions.get(kind.__name__, {})
        yield Variant(path, least)
        if not self.expands or (root, kind) in self.expanded:
            return
        self.expanded.add((root, kind))
        for name, (hint, _) in fields.items():
            for one in self.variants(hint, f"{path}.{name}", name):
                if least.get(name, _ABSENT) != one.value:
                    instead = self.completions.get(kind.__name__, {}).keys() if name in ALTERNATIVES else ()
                    rest = {key: value for key, value in least.items() if key not in instead}
                    yield Variant(one.path, {**rest, name: one.value})


_ABSENT = object()


def _bare(kind: Any) -> Any:
    while get_origin(kind) in (typing_extensions.Required, typing_extensions.NotRequired, typing.Annotated):
        kind = get_args(kind)[0]
    return kind


def _is_literal(kind: Any) -> bool:
    return get_origin(_bare(kind)) is Literal


def _is_object(kind: Any) -> bool:
    return isinstance(kind, type) and (typing_extensions.is_typeddict(kind) or hasattr(kind, "model_fields"))


def _is_data(kind: Any) -> bool:
    return kind is not type and get_origin(kind) is not Callable and not str(kind).startswith(("<class 'PIL", "mcp"))


def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    if hasattr(kind, "model_fields"):
        return {name: (info.annotation, info.is_required()) for name, info in kind.model_fields.items()}
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    return {name: (hint, get_origin(hint) is typing_extensions.Required) for name, hint in hints.items()}
