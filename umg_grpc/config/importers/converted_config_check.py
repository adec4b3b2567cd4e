"""Check of a converted config: removes and lists values that the schema of the config file rejects. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from umg_grpc.config.file_schema import parse
from umg_grpc.config.importers.config_text_builder import ImportedConfig
from umg_grpc.config.yaml_document import ConfigError, Path, Problem

FILE_NAME = "config"
VARIABLE_VALUE = "us-east-1"
"""Value of an environment variable during the check: valid as a region, as a part of a host and as a key."""
URL_START, REDIS_PORT = re.compile(r"\$\{(\w+)\}"), re.compile(r":\$\{(\w+)\}(?:/|$)")
DETAIL_KEYS = frozenset({"concurrency", "headers", "max_inputs", "priority", "query", "timeout", "weight"})
"""Optional keys of a channel, which without them calls the same provider with the same credentials."""


class Variables(Mapping[str, str]):
    """Environment in which every variable has a value that is valid where the converted config refers to it."""

    def __init__(self, made: ImportedConfig) -> None:
        self._values: dict[str, str] = {}
        for channel in made.channels:
            if match := URL_START.match(str(channel.keys.get("base_url", ""))):
                self._values[match[1]] = "https://provider.example"
        redis = str(made.sections.get("redis", ""))
        if match := URL_START.match(redis):
            self._values[match[1]] = "redis://redis.example"
        if match := REDIS_PORT.search(redis):
            self._values[match[1]] = "6379"

    def __getitem__(self, name: str) -> str:
        return self._values.get(name, VARIABLE_VALUE)

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def checked(made: ImportedConfig) -> ImportedConfig:
    """Remove the values that the config file does not accept, list them as unconverted settings, and return the config.
    Raise ValueError with the list if no enabled channel remains.
    """
    while True:
        if not made.channels:
            listed = "".join(f"\n- {note}" for note in made.lost)
            raise ValueError(f"expected a model that can be converted; not converted:{listed or ' nothing else'}")
        try:
            parse(made.text(enabled=True), FILE_NAME, Variables(made))
        except ConfigError as error:
            _remove_all(made, error.problems)
            continue
        if not made.used_channels:
            raise ValueError("expected a channel in use; all that can be converted are disabled")
        return made


def _remove_all(made: ImportedConfig, problems: Iterable[Problem]) -> None:
    """Remove the values with problems and channels that lose their last model; list them in file order. Removal starts
    at the end of a list, so that earlier positions stay valid.
    """
    by_place = {_place(problem.keys): problem for problem in problems}
    places = sorted(by_place, key=_order)
    for place in places:
        _list(made, place, by_place[place])
    for place in reversed(places):
        _remove(made, place)
    made.channels[:] = [channel for channel in made.channels if channel.models]


def _list(made: ImportedConfig, place: Path, problem: Problem) -> None:
    match place:
        case ("channels", int(position), "models", int(index)):
            made.lose(_model(made, position, made.channels[position].models[index]["id"]), problem.expected)
        case ("channels", int(position)):
            key = _joined(problem.keys[2:])
            for model in made.channels[position].models:
                reason = f"{key}: {problem.expected}" if key else problem.expected
                made.lose(_model(made, position, model["id"]), reason)
        case ("channels", int(position), *path):
            made.lose(f"{_joined(path)} of channel `{made.channels[position].name}`", problem.expected)
        case (str(section), *_) if section in made.sections:
            made.lose(_joined(place), problem.expected)
        case _:  # no value of the result: the converter is at fault
            raise ValueError(f"expected a config that can be converted: {problem.path}: {problem.expected}")


def _model(made: ImportedConfig, position: int, public: str) -> str:
    channel = made.channels[position]
    others = (model for each in made.channels if each is not channel for model in each.models)
    return f"model `{public}`" + (f" of channel `{channel.name}`" if any(m["id"] == public for m in others) else "")


def _remove(made: ImportedConfig, place: Path) -> None:
    match place:
        case ("channels", int(position), "models", int(index)):
            made.channels[position].models.pop(index)
        case ("channels", int(position)):
            made.channels.pop(position)
        case ("channels", int(position), *path):
            _remove_nested(made.channels[position].keys, path)
        case _:  # of a section
            _remove_nested(made.sections, place)


def _place(keys: Path) -> Path:
    """Return the path to remove for a problem at the path `keys`: that of a model, an optional key, or a channel."""
    match keys:
        case ("channels", int(position), "models", int(index), *_):
            return ("channels", position, "models", index)
        case ("channels", int(position), str(key), *_) if key not in DETAIL_KEYS:
            return ("channels", position)
    return keys


def _order(place: Path) -> tuple[tuple[bool, int, str], ...]:
    return tuple((isinstance(part, int), part if isinstance(part, int) else 0, str(part)) for part in place)


def _remove_nested(values: dict[str, object], path: Sequence[str | int]) -> None:
    """Remove the value at a path or, where the path ends early, its last mapping; and mappings that become empty."""
    first, *rest = (str(part) for part in path)
    inner = values.get(first)
    if rest and isinstance(inner, dict) and rest[0] in inner:
        _remove_nested(inner, rest)
        if inner:
            return
    values.pop(first, None)


def _joined(path: Iterable[str | int]) -> str:
    return ".".join(map(str, path))
