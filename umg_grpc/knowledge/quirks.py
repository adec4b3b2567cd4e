"""Quirks of a provider's model: its restrictions and needs beyond the wire format.

`dialects` has those of real providers. The operator's `quirks` of a channel have precedence
(`routing.channel_target`). Codecs apply the result when they encode a request for the provider; this module changes no
request.

Pure: no I/O and no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal

HASH_CHARACTERS = 64
"""Maximum length of the hash that replaces an end user's id."""

SearchWithFunctions = Literal["send", "declare", "drop"]
"""`send`: both are sent unchanged; `declare`: both, with the switch that newer native models require for it; `drop`:
the search is left out where there are functions.
"""


@dataclass(frozen=True, kw_only=True)
class Quirks:
    """Restrictions and needs of one provider's model in one wire format, by which codecs adapt requests.

    None means unknown: the request is not changed for it.
    """

    min_user_characters: int | None = None
    """Minimum of characters of the end user's id (`user`, `metadata.user_id`); a shorter id is hashed."""
    max_user_characters: int | None = None
    """Maximum of characters of the end user's id; a longer id is hashed."""
    web_search: bool | None = None
    """Whether the provider can search the web; if false, no search is requested."""
    search_with_functions: SearchWithFunctions | None = None
    """Handling of a search that is requested together with functions; None is `send`."""
    reasoning: bool | None = None
    """Whether an effort, a budget or a switch for reasoning is accepted."""
    reasoning_budget: bool | None = None
    """Whether a budget of reasoning tokens is accepted; if false, the messages format requests adaptive thinking
    instead.
    """
    reasoning_content: bool | None = None
    """Whether chat messages of earlier turns may contain `reasoning_content`."""
    custom_tools: bool | None = None
    """Whether chat accepts tools of type `custom`; if false, each becomes a function with one text."""
    signatures: bool | None = None
    """Whether the calls of the current turn need a thought signature in chat; a call without one gets a placeholder."""
    sampling: bool | None = None
    """Whether `temperature`, `top_p` and `top_k` are accepted."""
    max_output_tokens: int | None = None
    """Maximum of output tokens; a higher limit of the caller is lowered to it."""
    default_output_tokens: int | None = None
    """Default output limit, for formats that require one, where the caller set none and `max_output_tokens` is unset.
    """
    threads: bool | None = None
    """Whether the provider stores message threads; if false, it receives the whole conversation."""
    cache_marks: bool | None = None
    """Whether prompt cache marks are added to a request without any (messages format)."""

    def limited(self, tokens: int) -> "Quirks":
        """Return a copy with the maximum of output tokens lowered to `tokens`, if it is higher or unset."""
        own = self.max_output_tokens
        return replace(self, max_output_tokens=tokens if own is None else min(own, tokens))

    def over(self, other: "Quirks") -> "Quirks":
        """Return a copy of these quirks in which unset values are taken from `other`."""
        if other is NO_QUIRKS:
            return self
        if self is NO_QUIRKS:
            return other
        own = {name: value for name in _NAMES if (value := getattr(self, name)) is not None}
        return Quirks(**{name: getattr(other, name) for name in _NAMES} | own)


_NAMES = tuple(field.name for field in fields(Quirks))
NO_QUIRKS = Quirks()


@dataclass(frozen=True)
class ChannelQuirks:
    """Quirks of one model of a channel, by the wire format in which its provider is called."""

    by_protocol: Mapping[str, Quirks] = field(default_factory=lambda: MappingProxyType({}))
    """Protocol -> quirks, for requests that are translated into it."""
    written: Quirks = NO_QUIRKS
    """The operator's own quirks, for requests that came in the provider's own format."""

    def of(self, protocol: str, source_format: str) -> Quirks:
        """Return the quirks for a request that is encoded as the wire format `protocol`.

        For a request that came in the same format (`source_format`) they are only the operator's own, since its body is
        sent as it came.
        """
        return self.written if protocol == source_format else self.by_protocol.get(protocol, NO_QUIRKS)

    def limited(self, tokens: int) -> "ChannelQuirks":
        """Return a copy with the maximum of output tokens lowered to `tokens` in each format."""
        by_protocol = {protocol: quirks.limited(tokens) for protocol, quirks in self.by_protocol.items()}
        return ChannelQuirks(MappingProxyType(by_protocol), self.written.limited(tokens))

    def accepts_reasoning(self, protocol: str) -> bool:
        """Return whether the provider may get the stored reasoning of earlier answers, which the caller left out of the
        conversation, in the format `protocol`.
        """
        return protocol != "chat" or self.by_protocol.get(protocol, NO_QUIRKS).reasoning_content is not False

    @cached_property
    def expecting_reasoning(self) -> frozenset[str]:
        """Wire formats in which the provider is known to require the reasoning of earlier answers in the
        conversation.
        """
        return frozenset(name for name, quirks in self.by_protocol.items() if quirks.reasoning_content is True)

    @property
    def keeps_threads(self) -> bool:
        """Whether the provider may store message threads, which callers of its own format can start."""
        return self.by_protocol.get("messages", NO_QUIRKS).threads is not False


NO_CHANNEL_QUIRKS = ChannelQuirks()
