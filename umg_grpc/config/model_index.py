"""Index from model ids to channels. Channels with the exact id take precedence over those with a matching pattern."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from umg_grpc.base.wildcard_patterns import wildcard_match
from umg_grpc.config.channel_section import MODEL_ID
from umg_grpc.config.config_values import Channel, ChannelModel


class ModelMatch(NamedTuple):
    """Result of a look-up: the channels that serve a model id, and the id or pattern in the config that matched."""

    written: str
    """Id or pattern of the model in the config of the channels."""
    ways: list[tuple[Channel, ChannelModel]]
    """Pairs of a channel and its model; the wildcards in the ids are filled in."""

    @property
    def protocols(self) -> set[str]:
        """Protocols of all channels in `ways`."""
        return {protocol for channel, _ in self.ways for protocol in channel.protocols}


class ModelIndex:
    """Index from all model ids and patterns in the config to the channels that serve them."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._written: dict[str, list[tuple[Channel, ChannelModel]]] = {}
        for channel in channels:
            for model in channel.models:
                self._written.setdefault(model.id, []).append((channel, model))
        # longest literal text first; among equal lengths in the order of the file
        self._patterns = sorted((written for written in self._written if "*" in written), key=len, reverse=True)

    def exact(self) -> Iterator[str]:
        """Return the model ids in the config that are no patterns, in the order of the file."""
        return (written for written in self._written if "*" not in written)

    @property
    def has_patterns(self) -> bool:
        """Whether a channel serves models by a pattern."""
        return bool(self._patterns)

    def find(self, model: str) -> ModelMatch | None:
        """Return the channels that serve a model id; None if none does, or if `model` is a pattern. Channels that list
        the exact id exclude channels with patterns. Among patterns only the one with the longest literal text counts.
        """
        if "*" in model:
            return None
        if (ways := self._written.get(model)) is not None:
            return ModelMatch(model, ways)
        if not self._patterns or MODEL_ID.fullmatch(model) is None:
            return None
        for pattern in self._patterns:
            if (part := wildcard_match(pattern, model)) is not None:
                ways = [(channel, _fill_wildcard(served, model, part)) for channel, served in self._written[pattern]]
                ways = [(channel, named) for channel, named in ways if named.upstream]
                return ModelMatch(pattern, ways) if ways else None
        return None


def _fill_wildcard(pattern: ChannelModel, model: str, part: str) -> ChannelModel:
    return ChannelModel(model, pattern.upstream.replace("*", part), pattern.family)
