"""Names of the channels of a converted config: the provider, and a property that its other channels do not share."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from umg_grpc.config.importers.config_text_builder import ImportedChannel, ImportedConfig

KEY_VARIABLE = re.compile(r"\$\{(\w+)\}")
KEY_WORDS = frozenset({"api", "key", "token", "secret"})


class Label(NamedTuple):
    """Provider of a channel, and its region, resource or operation ("" if there is none)."""

    provider: str
    role: str


def name_channels(made: ImportedConfig, labels: Mapping[str, Label]) -> None:
    """Name each channel after its provider. Channels of one provider also get the first property that distinguishes
    them: role, variable of the key, or a model. `labels`: present name of a channel -> its label.
    """
    channels, made.channels[:] = list(made.channels), []
    names: dict[str, str] = {}
    by_provider = sorted(channels, key=lambda channel: labels[channel.name].provider)
    for provider, group in groupby(by_provider, key=lambda channel: labels[channel.name].provider):
        alike = list(group)
        for channel, name in zip(alike, _names(provider, alike, labels), strict=True):
            names[channel.name] = name
    for channel in channels:
        named = made.new_channel(names[channel.name], channel.keys)
        named.models, named.comments = channel.models, channel.comments


def _names(provider: str, channels: list[ImportedChannel], labels: Mapping[str, Label]) -> list[str]:
    names = [provider for _ in channels]
    properties = [list(_properties(channel, labels[channel.name])) for channel in channels]
    for values in zip(*properties, strict=True):
        if len(set(names)) == len(names):
            break
        if len(set(values)) == 1:
            continue
        shared = Counter(names)
        names = [
            f"{name}-{value}" if value and shared[name] > 1 else name for name, value in zip(names, values, strict=True)
        ]
    return names


def _properties(channel: ImportedChannel, label: Label) -> Iterator[str]:
    yield label.role
    match = KEY_VARIABLE.fullmatch(str(channel.keys.get("api_key", "")))
    words = match[1].lower().split("_") if match is not None else []
    yield "-".join(word for word in words if word not in KEY_WORDS and word not in label.provider.lower())
    yield channel.models[0]["id"].removeprefix(f"{label.provider}/").replace("*", "all")
