"""Builder of a config file from the config of another gateway. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|https?://[A-Za-z0-9_.:/-]+|[0-9]+(?:\.[0-9]+)?")
RESERVED = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
"""Words that YAML reads as something else than text."""
NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME_CHARACTERS = 60
"""Most characters of a name, which leaves place for a number behind it."""


@dataclass
class ImportedChannel:
    """Channel of the converted config."""

    name: str
    keys: dict[str, object]
    """Keys besides `name` and `models`, in the order in which they are written."""
    models: list[dict[str, str]] = field(default_factory=list)
    """Models with `id` and, if it differs, `upstream`."""
    comments: list[str] = field(default_factory=list)

    def add(self, public: str, upstream: str) -> bool:
        """Add a model. Return False if the channel has one with this id already."""
        if any(model["id"] == public for model in self.models):
            return False
        self.models.append({"id": public} if public == upstream else {"id": public, "upstream": upstream})
        return True


@dataclass
class ImportedConfig:
    """Converted config, with the settings that have no counterpart."""

    source: str
    """Name of the other gateway."""
    channels: list[ImportedChannel] = field(default_factory=list)
    sections: dict[str, object] = field(default_factory=dict)
    """Further keys of the config."""
    lost: list[str] = field(default_factory=list)
    """Settings without a counterpart, each with the remedy."""

    def new_channel(self, name: str, keys: dict[str, object]) -> ImportedChannel:
        """Add a channel, whose name is changed as needed: valid, and different from the others."""
        valid = NAME_CHARACTERS.sub("-", name).strip("-._")[:MAX_NAME_CHARACTERS] or "channel"
        names, number, free = {channel.name for channel in self.channels}, 1, valid
        while free in names:
            number += 1
            free = f"{valid}-{number}"
        channel = ImportedChannel(free, keys)
        self.channels.append(channel)
        return channel

    def lose(self, setting: str, remedy: str = "") -> None:
        """Record a setting without a counterpart, once."""
        note = f"{setting}: {remedy}" if remedy else setting
        if note not in self.lost:
            self.lost.append(note)

    def text(self) -> str:
        """Return the config file."""
        lines = [f"# Converted from a config of {self.source}. Check this file with `umg check FILE`."]
        if self.lost:
            lines += ["#", "# Not converted, since there is no counterpart:", *(f"# - {note}" for note in self.lost)]
        lines.append("channels:" if self.channels else "channels: []")
        for channel in self.channels:
            lines += [f"  # {_one_line(comment)}" for comment in channel.comments]
            lines.append(f"  - name: {written(channel.name)}")
            lines += [f"    {key}: {written(value)}" for key, value in channel.keys.items()]
            if channel.models:
                lines.append("    models:")
                lines += [f"      - {written(_short(model))}" for model in channel.models]
        for key, value in self.sections.items():
            if isinstance(value, Mapping) and value and all(isinstance(each, Mapping) for each in value.values()):
                lines.append(f"{key}:")
                lines += [f"  {written(name)}: {written(each)}" for name, each in value.items()]
            else:
                lines.append(f"{key}: {written(value)}")
        return "\n".join(lines) + "\n"


def _short(model: Mapping[str, str]) -> object:
    return model if "upstream" in model else model["id"]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def written(value: object) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{written(key)}: {written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        is_plain = PLAIN.fullmatch(value) and value.lower() not in RESERVED
        return value if is_plain else json.dumps(value)  # a JSON string is a YAML string
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def literal(text: str) -> str:
    """Return text of another config, in which `${` is no variable."""
    return text.replace("${", "$${")


def mapping(value: object) -> Mapping[str, object]:
    """Return a mapping of another config; an empty one for any other value."""
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[object]:
    """Return a list of another config; an empty one for any other value."""
    return value if isinstance(value, list) else ()


def number(value: object) -> float | None:
    """Return a number of another config, also one in text; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def compact(value: float) -> int | float:
    """Return a number without a fraction of zero."""
    return int(value) if value == int(value) else value
