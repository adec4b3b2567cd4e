"""Builder of the text of a config file, from the config of another gateway. Pure."""

import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

PLAIN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|https?://[A-Za-z0-9_.:/-]+|[0-9]+(?:\.[0-9]+)?")
RESERVED_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
"""Words that YAML does not read as text unless they are quoted."""
NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")
MAX_NAME_CHARACTERS = 60
"""Most characters of a channel's name, before a number may be appended to it."""


@dataclass
class ImportedChannel:
    """Channel of the converted config, before it is written as text: its keys, models and comments."""

    name: str
    keys: dict[str, object]
    """Keys besides `name` and `models`, in the order in which they are written."""
    models: list[dict[str, str]] = field(default_factory=list)
    """Models: each has `id`, `upstream` if it differs from `id`, and `family` if one is stated."""
    comments: list[str] = field(default_factory=list)
    disabled: str = ""
    """Reason why the other gateway does not use the channel, for a comment; "" for a channel in use."""

    def add(self, public: str, upstream: str, family: str = "") -> bool:
        """Add a model with its family ("" for none). Return False if the channel has a model with this public
        id.
        """
        if any(model["id"] == public for model in self.models):
            return False
        self.models.append(model_entry(public, upstream, family))
        return True

    def lines(self) -> list[str]:
        """Return the lines of the channel in the text of the config file, without its comments."""
        lines = [f"  - name: {written(self.name)}"]
        lines += [f"    {key}: {written(value)}" for key, value in self.keys.items()]
        if self.models:
            lines.append("    models:")
            lines += [f"      - {written(_short(model))}" for model in self.models]
        return lines


@dataclass
class ImportedConfig:
    """Converted config of another gateway while it is built, and a list of the settings that were not converted."""

    source: str
    """Name of the other gateway."""
    channels: list[ImportedChannel] = field(default_factory=list)
    sections: dict[str, object] = field(default_factory=dict)
    """Sections of the config besides `channels`."""
    lost: list[str] = field(default_factory=list)
    """Settings that could not be converted, each with the manual replacement."""

    def new_channel(self, name: str, keys: dict[str, object]) -> ImportedChannel:
        """Add a channel with these keys, and return it. An invalid or already used name is changed."""
        valid = NAME_CHARACTERS.sub("-", name).strip("-._")[:MAX_NAME_CHARACTERS] or "channel"
        channel = ImportedChannel(free_name(valid, {channel.name for channel in self.channels}, "-"), keys)
        self.channels.append(channel)
        return channel

    def lose(self, setting: str, remedy: str = "") -> None:
        """Record once that a setting cannot be converted. `remedy`: manual replacement, for the report."""
        note = f"{setting}: {remedy}" if remedy else setting
        if note not in self.lost:
            self.lost.append(note)

    @property
    def used_channels(self) -> list[ImportedChannel]:
        """Channels that the other gateway uses."""
        return [channel for channel in self.channels if not channel.disabled]

    def text(self, *, enabled: bool = False) -> str:
        """Return the config file. Comments contain unconverted settings and, unless `enabled`, disabled channels."""
        lines = [f"# Converted from a config of {self.source}. Check this file with `umg check FILE`."]
        if self.lost:
            lines += ["#", "# Not converted, each with the reason or the remedy:"]
            lines += [f"# - {_one_line(note)}" for note in self.lost]
        lines.append("channels:" if enabled or self.used_channels else "channels: []")
        for channel in self.channels:
            lines += [f"  # {_one_line(comment)}" for comment in channel.comments]
            if channel.disabled and not enabled:
                lines.append(f"  # {channel.disabled}; to use it, remove the `# ` of its lines")
                lines += [f"  # {line[2:]}" for line in channel.lines()]
            else:
                lines += channel.lines()
        for key, value in self.sections.items():
            if isinstance(value, Mapping) and value and all(isinstance(each, Mapping) for each in value.values()):
                lines.append(f"{key}:")
                lines += [f"  {written(name)}: {written(each)}" for name, each in value.items()]
            else:
                lines.append(f"{key}: {written(value)}")
        return "\n".join(lines) + "\n"


def model_entry(public: str, upstream: str, family: str = "") -> dict[str, str]:
    """Return a model's entry in a channel's list: public id, upstream id if different, `family` ("" for none)."""
    upstreams = {} if public == upstream else {"upstream": upstream}
    return {"id": public, **upstreams, **({"family": family} if family else {})}


def free_name(name: str, taken: Container[str], separator: str) -> str:
    """Return a name that is not taken: `name`, or `name` with the first free number from 2 behind the separator."""
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name}{separator}{count}"
    return free


def _short(model: Mapping[str, str]) -> object:
    return model if len(model) > 1 else model["id"]


def _one_line(text: str) -> str:
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


def written(value: object) -> str:
    """Return a JSON-like value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{written(key)}: {written(each)}" for key, each in value.items()) + "}"
    if isinstance(value, str):
        is_plain = PLAIN_TEXT.fullmatch(value) and value.lower() not in RESERVED_WORDS
        return value if is_plain else _quoted(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)


def literal(text: str) -> str:
    """Return another gateway's text with `${` escaped, so that this gateway reads no environment variable in it."""
    return text.replace("${", "$${")


def mapping(value: object) -> Mapping[str, object]:
    """Return the value if it is a mapping; otherwise an empty mapping."""
    return {str(key): each for key, each in value.items()} if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[object]:
    """Return the value if it is a list; otherwise an empty list."""
    return value if isinstance(value, list) else ()


def number(value: object) -> float | None:
    """Return the value as a number, also if it is text; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if isfinite(found) else None


def compact(value: float) -> int | float:
    """Return a number without a fraction as an int, for shorter text; any other number unchanged."""
    return int(value) if value == int(value) else value
