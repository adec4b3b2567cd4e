"""Settings in force: each key of the config file that has a value, with the source of the value. Secrets are masked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, get_type_hints

import msgspec

from umg_grpc.config.config_values import Channel, Config
from umg_grpc.config.file_schema import FILE_TYPE
from umg_grpc.config.file_sections import ConfigEntry
from umg_grpc.config.section_types import (
    OF_ITSELF,
    OF_LIST,
    OF_MAPPING,
    mappings_in,
    measure_text,
    member_types,
)
from umg_grpc.config.shown_values import References, is_secret, shown_text, variables_in
from umg_grpc.config.yaml_document import Path, Value, YamlDocument, path_text
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS


class SettingSource(StrEnum):
    """Place from which the value of a setting comes, as `umg.v1.ConfigSource` in JSON."""

    FILE = "file"
    ENVIRONMENT = "environment"
    DEFAULT = "default"
    FLAG = "flag"


@dataclass(frozen=True)
class Setting:
    """Value of one key, as it may be shown."""

    path: str
    value: str
    source: SettingSource
    line: int = 0
    """Line of the file; 0 for a value that is not in it."""
    variables: tuple[str, ...] = ()
    """Environment variables from which the value comes."""
    is_secret: bool = False


def settings_in_force(config: Config, environment: Mapping[str, str]) -> Iterator[Setting]:
    """Yield the settings of a config in the order of the schema, with the defaults of the keys that the file does not
    have. Keys without a value are left out.
    """
    reader = _Reader(YamlDocument(config.written.text, config.written.filename, References()), environment)
    value = reader.document.value
    yield from reader.section((), "", value if isinstance(value, dict) else {}, FILE_TYPE, config)


class _Reader:
    """Reader of the values of one file, as they are written."""

    def __init__(self, document: YamlDocument, environment: Mapping[str, str]) -> None:
        self.document = document
        self._environment = environment

    def section(
        self, path: Path, key: str, written: Mapping[str, Value], kind: type[ConfigEntry], effective: object
    ) -> Iterator[Setting]:
        """Yield the settings of a mapping with known keys. `key`: the path without positions and ids; `effective`:
        object that the gateway made of it, of which only the defaults are used.
        """
        hints = get_type_hints(kind)
        tag = kind.__struct_config__.tag_field
        if tag is not None and tag in written:
            yield from self._values((*path, tag), f"{key}.{tag}", written[tag])
        for field in msgspec.structs.fields(kind):
            place, name = (*path, field.encode_name), f"{key}.{field.encode_name}".lstrip(".")
            value, made = written.get(field.encode_name), getattr(effective, field.name, None)
            if value is not None:
                yield from self._written(place, name, value, [*mappings_in(kind, field.name, hints[field.name])], made)
            elif name == "channels.api_key":
                yield from self._preset_key(place, written)
            else:
                yield from self._default(place, name, field, hints[field.name], made)

    def _written(
        self, path: Path, key: str, value: Value, kinds: Sequence[tuple[type[ConfigEntry], str]], effective: object
    ) -> Iterator[Setting]:
        """Yield the settings of a value in the file. `kinds`: types of the mappings in it, and the steps to them."""
        if isinstance(value, dict) and (kind := _kind_of(value, kinds, OF_ITSELF)) is not None:
            yield from self.section(path, key, value, kind, effective)
        elif isinstance(value, dict) and any(step == OF_MAPPING for _, step in kinds):
            for name, item in value.items():
                kind = _kind_of(item, kinds, OF_MAPPING)
                made = effective.get(name) if isinstance(effective, Mapping) else None
                yield from self._element((*path, name), key, item, kind, made)
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            for place, item in enumerate(value):
                made = _named(effective, item)
                yield from self._element((*path, place), key, item, _kind_of(item, kinds, OF_LIST), made)
        else:
            yield from self._values(path, key, value)

    def _element(
        self, path: Path, key: str, value: Value, kind: type[ConfigEntry] | None, effective: object
    ) -> Iterator[Setting]:
        if kind is not None and isinstance(value, dict):
            yield from self.section(path, key, value, kind, effective)
        else:
            yield from self._values(path, key, value)

    def _values(self, path: Path, key: str, value: Value) -> Iterator[Setting]:
        """Yield the settings of a value whose keys are names of the operator: one for each text or list of texts."""
        if isinstance(value, dict):
            for name, item in value.items():
                yield from self._values((*path, name), key, item)
        elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
            for place, item in enumerate(value):
                yield from self._values((*path, place), key, item)
        elif value is not None:
            texts = [each for each in value if isinstance(each, str)] if isinstance(value, list) else [value]
            variables = tuple(dict.fromkeys(name for text in texts for name in variables_in(text)))
            source = SettingSource.ENVIRONMENT if variables else SettingSource.FILE
            shown = ", ".join(_shown(key, place, text) for place, text in enumerate(texts))
            line = self.document.line(path)
            yield Setting(path_text(path), shown, source, line, variables, is_secret(key))

    def _default(
        self, path: Path, key: str, field: msgspec.structs.FieldInfo, hint: object, effective: object
    ) -> Iterator[Setting]:
        for nested in (effective, field.default):
            if isinstance(nested, ConfigEntry):
                yield from self.section(path, key, {}, type(nested), effective)
                return
        sections = [kind for kind in member_types(hint) if isinstance(kind, type) and issubclass(kind, ConfigEntry)]
        if sections:  # a section that the file does not have
            return
        text = _default_text(field, effective)
        if text:
            yield Setting(path_text(path), shown_text(key, text), SettingSource.DEFAULT, is_secret=is_secret(key))

    def _preset_key(self, path: Path, channel: Mapping[str, Value]) -> Iterator[Setting]:
        """Yield the key of a provider from the variable of its preset."""
        preset = PROVIDER_PRESETS.get(str(channel.get("provider")))
        found = preset.key_in(self._environment.get) if preset is not None and "auth" not in channel else None
        if found is not None:
            names = tuple(found[0].split(":"))
            shown = ":".join(f"${{{name}}}" for name in names)
            yield Setting(path_text(path), shown, SettingSource.ENVIRONMENT, 0, names, is_secret=True)


def _kind_of(value: Value, kinds: Sequence[tuple[type[ConfigEntry], str]], wanted: str) -> type[ConfigEntry] | None:
    """Return the type of a mapping among those at a step, by its key `kind` if there are several."""
    found = [kind for kind, step in kinds if step == wanted]
    if not isinstance(value, dict) or not found:
        return None
    if len(found) == 1:
        return found[0]
    return next((kind for kind in found if kind.__struct_config__.tag == value.get("kind")), None)


def _named(effective: object, item: Value) -> object:
    """Return the channel with the name of an entry of the file; None for an entry of another list."""
    if not isinstance(effective, tuple) or not isinstance(item, dict):
        return None
    name = item.get("name") or item.get("provider")
    return next((each for each in effective if isinstance(each, Channel) and each.name == name), None)


def _shown(key: str, place: int, text: str) -> str:
    is_program = key == "channels.auth.command" and place == 0
    return text if is_program and not variables_in(text) else shown_text(key, text)


def _default_text(field: msgspec.structs.FieldInfo, effective: object) -> str:
    """Return the default of a key in the syntax of the file; "" without one."""
    value: Any = effective if isinstance(effective, bool | int | float | str | tuple) else field.default
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return measure_text(field.name, int(value)) if str in member_types(field.type) else f"{value:.12g}"
        case str():
            return value
        case tuple():
            return ", ".join(str(getattr(each, "id", each)) for each in value)
        case _:  # nothing, or an empty list or mapping
            return ""
