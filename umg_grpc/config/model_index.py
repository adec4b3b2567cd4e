"""Which channels an id of a model means: those that name it exactly, else those of the pattern that fits best."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from umg_grpc.config.channels import MODEL_ID
from umg_grpc.config.values import Channel, ChannelModel


class Found(NamedTuple):
    """The channels of an id."""

    written: str
    """The id or the pattern by which they have it."""
    ways: list[tuple[Channel, ChannelModel]]
    """Each with what it knows the id by; none of them is a pattern."""

    @property
    def protocols(self) -> set[str]:
        """Those of all the channels."""
        return {protocol for channel, _ in self.ways for protocol in channel.protocols}


class Served:
    """The ids and patterns of channels."""

    def __init__(self, channels: Iterable[Channel]) -> None:
        self._written: dict[str, list[tuple[Channel, ChannelModel]]] = {}
        for channel in channels:
            for model in channel.models:
                self._written.setdefault(model.id, []).append((channel, model))
        # the longest literal text first, and of equal ones the first in the file
        self._patterns = sorted((written for written in self._written if "*" in written), key=len, reverse=True)

    def exact(self) -> Iterator[str]:
        """The ids, in the order of the file, without the patterns."""
        return (written for written in self._written if "*" not in written)

    def find(self, model: str) -> Found | None:
        """The channels of the id, None for one that is not served. An id that is named exactly has only the channels
        that name it so, and a pattern has no part of what a better one fits.
        """
        if "*" in model:
            return None
        if (ways := self._written.get(model)) is not None:
            return Found(model, ways)
        if not self._patterns or MODEL_ID.fullmatch(model) is None:
            return None
        for pattern in self._patterns:
            if (part := _part(pattern, model)) is not None:
                ways = [(channel, _named(served, model, part)) for channel, served in self._written[pattern]]
                ways = [(channel, named) for channel, named in ways if named.upstream]
                return Found(pattern, ways) if ways else None
        return None


def _part(pattern: str, model: str) -> str | None:
    """What the `*` of the pattern stands for in the id, None for one that it does not fit."""
    head, _, tail = pattern.partition("*")
    if len(model) < len(head) + len(tail) or not (model.startswith(head) and model.endswith(tail)):
        return None
    return model[len(head) : len(model) - len(tail)]


def _named(pattern: ChannelModel, model: str, part: str) -> ChannelModel:
    return ChannelModel(model, pattern.upstream.replace("*", part), pattern.family)
