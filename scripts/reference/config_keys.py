"""Reference page of the keys of the config file: values, ranges, defaults and descriptions, from the structs that read
the file.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from scripts.reference.docstrings import attributes
from scripts.reference.markdown import code, paragraph, table
from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.config import (
    Config,
    alert_section,
    channel_quirks,
    channel_section,
    file_schema,
    model_settings,
    parse,
)
from umg_grpc.config.alert_settings import AlertSettings
from umg_grpc.config.config_values import (
    BlobStorage,
    Channel,
    ChannelModel,
    Discovery,
    KeySettings,
    MetricsAccess,
    ModelInfo,
    Retention,
    UsageRetention,
    VideoTaskConfig,
)
from umg_grpc.config.file_sections import ConfigEntry
from umg_grpc.config.section_types import (
    OPEN_ELEMENTS,
    SIZE_ENDINGS,
    bare_type,
    is_mapping,
    mappings_in,
    measure_text,
    member_types,
)
from umg_grpc.knowledge.model_quirk_definitions import Quirks

VALUES: Mapping[type[ConfigEntry], type] = {
    file_schema._File: Config,
    file_schema._RetentionEntry: Retention,
    file_schema._UsageEntry: UsageRetention,
    file_schema._BlobsEntry: BlobStorage,
    file_schema._MetricsEntry: MetricsAccess,
    file_schema._EgressEntry: EgressRules,
    file_schema._DiscoveryEntry: Discovery,
    file_schema._KeysEntry: KeySettings,
    file_schema._TasksEntry: VideoTaskConfig,
    alert_section.AlertsEntry: AlertSettings,
    channel_section._ChannelEntry: Channel,
    channel_section._ModelEntry: ChannelModel,
    channel_quirks.QuirksEntry: Quirks,
    model_settings._SettingsEntry: ModelInfo,
}
"""Class of the value that is made from an entry of the file; its docstrings describe the keys that have none."""
SHORTEST = "channels: [{name: main, protocols: [sandbox], models: [famO-5]}]"
SCALARS = {str: "text", int: "whole number", float: "number", bool: "`true` or `false`", object: "any value"}


@dataclass(frozen=True)
class Key:
    """Key of the config file."""

    section: str
    """Path of the mapping that has the key; "" for the whole file."""
    name: str
    value: str
    """Kind of its value, in Markdown."""
    default: str
    description: str

    @property
    def path(self) -> str:
        """Path of the key in the file, for example `channels[].timeout.idle`."""
        return f"{self.section}.{self.name}".lstrip(".")


@dataclass(frozen=True)
class Section:
    """Mapping of the config file with keys of its own."""

    path: str
    description: str
    keys: tuple[Key, ...]


def sections() -> Iterator[Section]:
    """Yield the section of the whole file, and of every mapping in it, in the order of the definitions."""
    defaults = parse(SHORTEST, "shortest.yaml", {})
    yield from _sections(file_schema._File, "", "Whole file.", defaults)


def all_keys() -> list[Key]:
    """Return all keys of the file."""
    return [key for section in sections() for key in section.keys]


def _sections(entry: type[ConfigEntry], path: str, description: str, defaults: object) -> Iterator[Section]:
    """Yield the section of a mapping, then those of the mappings in it."""
    hints = get_type_hints(entry, include_extras=True)
    fields = msgspec.structs.fields(entry)
    described = _descriptions(entry)
    made = {
        field.name: Key(
            path,
            field.encode_name,
            ("mapping" if hints[field.name] is object else "mappings")
            if (entry, field.name) in OPEN_ELEMENTS
            else _value(hints[field.name], getattr(defaults, field.name, None), field.name),
            _default(field, getattr(defaults, field.name, None)),
            described.get(field.name)
            or " ".join({_docstring(below): None for below, _ in mappings_in(entry, field.name, hints[field.name])}),
        )
        for field in fields
    }
    made = {name: replace(key, description=_without_unit(key)) for name, key in made.items()}
    tag = entry.__struct_config__.tag
    kind = [Key(path, tag_field(entry), code(tag), "required", "Selects this kind.")] if tag else []
    yield Section(path, description, (*kind, *made.values()))
    for field in fields:
        for below, place in mappings_in(entry, field.name, hints[field.name]):
            own = _docstring(below) or made[field.name].description
            name = below.__struct_config__.tag
            child = f"{made[field.name].path}{place}" + (f": {{{tag_field(below)}: {name}}}" if name else "")
            is_given = place == "" and not name
            yield from _sections(
                below, child, own, getattr(defaults, field.name, None) if is_given else VALUES.get(below)
            )


def tag_field(entry: type[ConfigEntry]) -> str:
    """Return the key whose value selects one of several kinds of mappings."""
    return entry.__struct_config__.tag_field or ""


def _docstring(entry: type[ConfigEntry]) -> str:
    own = entry.__dict__.get("__doc__") or getattr(VALUES.get(entry), "__doc__", None) or ""
    return _for_readers(own)


def _without_unit(key: Key) -> str:
    if key.value.startswith("duration"):
        return re.sub(r"^Seconds\b", "Time", key.description)
    return key.description.replace(", in bytes", "") if key.value.startswith("size") else key.description


def _for_readers(docstring: str) -> str:
    return re.sub(r"\bNone\b", "no value", re.sub(r"(?<=[.] )None\b", "No value", paragraph(docstring)))


def _descriptions(entry: type[ConfigEntry]) -> dict[str, str]:
    value = VALUES.get(entry)
    found = {**(attributes(value) if value is not None else {}), **attributes(entry)}
    return {name: _for_readers(text) for name, text in found.items()}


def _value(hint: object, default: object, name: str) -> str:
    """Return the description of a key's values: their kind and range."""
    if hint == str | None or hint is str:
        if isinstance(default, int | float):
            return "size, e.g. `64MiB`" if name.rpartition("_")[2] in SIZE_ENDINGS else "duration, e.g. `12h`"
        return "text"
    described = [text for kind in _written(hint) if (text := _kind(kind))]
    return " or ".join(dict.fromkeys(described))


def _written(hint: object) -> list[Any]:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]
    return [member for member in members if member is not NoneType]


def _kind(hint: Any) -> str:  # noqa: ANN401  any type
    ranges = [meta for meta in get_args(hint)[1:] if isinstance(meta, msgspec.Meta)] if _is_annotated(hint) else []
    bare = bare_type(hint)
    origin = get_origin(bare)
    if origin is Literal:
        return ", ".join(code(value) for value in get_args(bare))
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_kind(each) for each in _written(bare)))
    if origin in (list, tuple):
        return f"list of {_kind(get_args(bare)[0])}"
    if origin is dict:
        return f"mapping of names to {_kind(get_args(bare)[1])}"
    if is_mapping(bare):
        return "mapping"
    return " ".join([SCALARS[bare], *(text for meta in ranges if (text := _range(meta)))])


def _is_annotated(hint: object) -> bool:
    return get_origin(hint) is Annotated


def _range(meta: msgspec.Meta) -> str:
    if meta.min_length is not None:
        return f"of at least {meta.min_length} characters"
    low = f"{_number(meta.ge)}" if meta.ge is not None else f"more than {_number(meta.gt)}"
    high = _number(meta.le if meta.le is not None else meta.lt)
    return f"from {low} to {high}" if meta.ge is not None else f"{low}, at most {high}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _default(field: msgspec.structs.FieldInfo, effective: object) -> str:
    """Return the default in the syntax of the file; "" for a key whose default is the absent value."""
    if field.required:
        return "required"
    default = effective if isinstance(effective, bool | int | float | str | tuple) else field.default
    match default:
        case bool():
            return code(str(default).lower())
        case int() | float():
            return code(measure_text(field.name, int(default)) if str in member_types(field.type) else f"{default:g}")
        case str() if default:
            return code(default)
        case _:  # empty values, None and nested entries
            return ""


HEAD = """# Keys of the config

Every key of the config file, from the definitions that read it. [The configuration](../operating.md#configuration)
has an example of a whole file and the syntax; `umg check FILE` checks one. `[]` is an entry of a list, `ID` the public
id of a model.
"""


def page() -> str:
    """Return the reference page of all keys, as Markdown."""
    text = HEAD
    for section in sections():
        title = code(section.path) if section.path else "The file"
        rows = [[code(key.name), key.value, key.default, key.description] for key in section.keys]
        text += f"\n## {title}\n\n" + (f"{section.description}\n\n" if section.path else "")
        text += table(("key", "value", "default", "meaning"), rows) if rows else ""
    return text
