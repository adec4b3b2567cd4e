"""Types of the mappings that a key of the config file may contain, and the units of its durations and sizes."""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from umg_grpc.config.alert_section import RECEIVER_KINDS, AlertsEntry
from umg_grpc.config.alert_settings import AlertRules
from umg_grpc.config.channel_section import CHANNEL_TYPE
from umg_grpc.config.file_schema import FILE_TYPE
from umg_grpc.config.file_sections import ConfigEntry, Fallbacks
from umg_grpc.config.guard_section import GUARD_KINDS
from umg_grpc.config.model_settings import MODEL_TYPE

OPEN_ELEMENTS: Mapping[tuple[type[ConfigEntry], str], tuple[type[ConfigEntry], ...]] = {
    (FILE_TYPE, "channels"): (CHANNEL_TYPE,),
    (FILE_TYPE, "models"): (MODEL_TYPE,),
    (FILE_TYPE, "fallbacks"): (Fallbacks,),
    (FILE_TYPE, "guards"): (*GUARD_KINDS.values(),),
    (AlertsEntry, "receivers"): (*RECEIVER_KINDS.values(),),
    (AlertsEntry, "rules"): (AlertRules,),
}
"""Mappings that a list or a mapping contains whose declared type is open."""
OF_LIST, OF_MAPPING, OF_ITSELF = "[]", ".ID", ""
"""Step of a path from a key to a mapping in its value."""
SIZE_ENDINGS = ("bytes", "limit")
"""Last words of the keys whose text is a size; all other text that is read as a number is a duration."""
SIZE_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
DURATION_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


def mappings_in(parent: type[ConfigEntry], name: str, hint: object) -> Iterator[tuple[type[ConfigEntry], str]]:
    """Yield the types of the mappings in a key's value, each with the step of the path that leads to it."""
    if elements := OPEN_ELEMENTS.get((parent, name)):
        step = {list: OF_LIST, dict: OF_MAPPING}.get(get_origin(bare_type(hint)), OF_ITSELF)
        yield from ((element, step) for element in elements)
        return
    for kind in member_types(hint):
        if is_mapping(kind):
            yield kind, OF_ITSELF
        elif get_origin(kind) in (list, tuple):
            yield from ((each, OF_LIST) for each in member_types(get_args(kind)[0]) if is_mapping(each))


def is_mapping(kind: object) -> bool:
    """Return whether a type is that of a mapping with known keys."""
    return isinstance(kind, type) and issubclass(kind, ConfigEntry)


def bare_type(hint: object) -> Any:  # noqa: ANN401  any type
    """Return an annotated type without its annotations."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def member_types(hint: object) -> list[Any]:
    """Return the members of a union without None, unions in it resolved; of any other type the type alone."""
    bare = bare_type(hint)
    if get_origin(bare) in (Union, UnionType):
        return [kind for member in get_args(bare) if member is not NoneType for kind in _member_or_annotated(member)]
    return [bare]


def _member_or_annotated(member: object) -> list[Any]:
    return [member] if get_origin(member) is Annotated else member_types(member)


def measure_text(name: str, value: int) -> str:
    """Return a number of bytes or seconds as the file has it, e.g. `64MiB` or `30d`. `name`: of the key."""
    units = SIZE_UNITS if name.rpartition("_")[2] in SIZE_ENDINGS else DURATION_UNITS
    return next((f"{value // size}{unit}" for unit, size in units if value % size == 0), str(value))
