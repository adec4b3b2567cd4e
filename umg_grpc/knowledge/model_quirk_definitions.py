"""Quirks of a provider's model: restrictions and needs beyond the wire format; `provider_quirks` has those of real
providers. An operator's `quirks` of a channel take precedence (`routing.channel_target`). Codecs apply quirks when they
encode a request for the provider; this module changes no request. Pure: no I/O and no clock.
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


Sampling = Literal["all", "one", "without_reasoning", "never"]
"""`all`: temperature and top_p are accepted; `one`: one of the two; `without_reasoning`: only while reasoning is off;
`never`: neither, nor top_k.
"""
Thinking = Literal["never", "off", "on", "always"]
"""`never`: the model does not reason; `off`, `on`: default of a switch; `always`: it cannot be switched off."""
ReasoningForm = Literal["effort", "thinking", "enable_thinking", "reasoning"]
"""Member of a chat body that controls reasoning: `reasoning_effort` alone; `thinking: {type}`, beside an effort for a
model with efforts; `enable_thinking`; or the object `reasoning` of routers.
"""
ToolChoices = Literal["all", "without_reasoning", "named_without_reasoning", "named", "required", "none"]
"""Forced tools that are accepted: every form; every form, but not while the model reasons; a named function, but not
while the model reasons; a named function, but not `required`; `required`, but no named function; or no form.
"""
SystemPlace = Literal["anywhere", "first"]
"""Places of instructions in a conversation: `first`: one message before all others."""
SchemaDialect = Literal["openai", "claude", "gemini", "moonshot", "json_object", "none"]
"""Accepted JSON schemas of responses: a vendor's rules; `json_object`: JSON without a schema; `none`."""
ChatTools = Literal["always", "without_effort", "effort_none", "never"]
"""Whether functions are accepted in chat: always; without an effort; only with effort `none`; or never."""


Breakpoints = Literal["prompt_cache_breakpoint", "cache_control"]
"""Marks of content parts at which a prompt cache ends."""


@dataclass(frozen=True, kw_only=True)
class Quirks:
    """Restrictions and needs of one provider's model in one wire format, by which codecs adapt requests; None is
    unknown, and changes nothing.
    """

    # --- members of the provider's body
    accepts: frozenset[str] | None = None
    """Top-level members of the body that the provider accepts, of a provider that refuses all others."""
    rejects: frozenset[str] | None = None
    """Members of the body that the provider refuses, as dotted paths; `service_tier=flex` is only this value of one.
    Rows add to one another.
    """
    rejects_beside_reasoning: frozenset[str] | None = None
    """Members that the provider refuses while the model reasons."""
    renames: Mapping[str, str] | None = None
    """Top-level member of the body -> its name at this provider (`seed` -> `random_seed`)."""
    service_tiers: tuple[str, ...] | None = None
    """Values of `service_tier` that are accepted."""
    max_stop_sequences: int | None = None
    """Maximum number of stop sequences; 0 for none, so that the gateway itself ends the text there."""
    max_candidates: int | None = None
    """Maximum of candidates (`n`) of one request."""
    # --- reasoning
    thinking: Thinking | None = None
    """Whether the model reasons, and whether that can be switched."""
    efforts: tuple[str, ...] | None = None
    """Efforts that are accepted, lowest first, with `none` if it switches reasoning off; empty if no effort is."""
    nearest_efforts: Mapping[str, str] | None = None
    """Effort that the model lacks -> the vendor's own equivalent; any other is moved to the nearest."""
    reasoning_form: ReasoningForm | None = None
    """Member of chat that controls reasoning."""
    adaptive: bool | None = None
    """Whether the model may choose its amount of reasoning itself (messages format)."""
    max_effort_when_off: str | None = None
    """Highest effort (messages format) beside which thinking may be disabled."""
    budget_range: tuple[int, int] | None = None
    """Least and most reasoning tokens of a budget."""
    # --- tools and formats of the response
    tool_choices: ToolChoices | None = None
    """Forms of a forced tool that are accepted."""
    chat_tools: ChatTools | None = None
    """Efforts beside which functions are accepted in chat."""
    served: bool | None = None
    """Whether the provider serves the model in the format at all."""
    schema_dialect: SchemaDialect | None = None
    """Rules of the JSON schemas of responses that are accepted."""
    json_word: bool | None = None
    """Whether JSON without a schema needs the word JSON in the conversation."""
    call_ids: Literal["nine"] | None = None
    """`nine`: ids of tool calls have exactly nine letters and digits."""
    # --- the conversation
    developer: bool | None = None
    """Whether the role `developer` is known; if false, `system` is sent."""
    system_place: SystemPlace | None = None
    """Places in a conversation in which instructions are accepted."""
    prefill: bool | None = None
    """Whether the conversation may end with an assistant's message that the model continues."""
    prefix: bool | None = None
    """Whether this last message needs `prefix: true`."""
    user_after_tool: bool | None = None
    """Whether a user's message may follow tool results (chat), or be in their turn (Converse); if false, an assistant's
    message is put between.
    """
    streams_tools: bool | None = None
    """Whether a request for a stream may have tools (Converse); if false, the complete response is requested."""
    result_media: bool | None = None
    """Whether tool results may contain media (Converse); if false, the media follow the results."""
    exact_media_types: bool | None = None
    """Whether a picture is refused whose declared media type is not that of its bytes (messages format)."""
    inputs: frozenset[str] | None = None
    """Kinds of media in a prompt that the model accepts: `image`, `file`, `audio`, `video`."""
    file_form: Literal["document_url"] | None = None
    """`document_url`: chat has a part of this type for files, with an address or a data URL."""
    versions: tuple[str, ...] | None = None
    """Values of `anthropic-version` that are accepted (messages format), oldest first."""

    breakpoints: Breakpoints | None = None
    """Member of content parts that marks the end of a cached prefix (chat and responses)."""
    cache_key: bool | None = None
    """Whether the provider takes a key of its prompt cache (`prompt_cache_key`): the gateway then makes one for callers
    whose format has none.
    """
    cache_scopes: bool | None = None
    """Whether prompt cache marks may have a `scope` (messages format); unless true, it is left out."""
    session_header: str | None = None
    """Header in which the provider takes the name of a conversation, to keep it at one cache; the gateway makes it."""
    client_headers: tuple[str, ...] | None = None
    """Owners of the headers of clients (`client_headers`) that the provider is sent, and whose headers in its responses
    are passed back; all others are left out.
    """
    compaction: bool | None = None
    """Whether the provider compacts conversations itself (responses); unless true, its model writes the summary."""
    client_lines: tuple[str, ...] | None = None
    """Beginnings of lines that agents put in front of the system prompt (`client_lines`) and that the provider reads;
    all others are left out.
    """
    min_user_characters: int | None = None
    """Minimum of characters of the end user's id (`user`, `metadata.user_id`); a shorter id is hashed."""
    max_user_characters: int | None = None
    """Maximum of characters of the end user's id; a longer id is hashed."""
    plain_user: bool | None = None
    """Whether the end user's id may only have letters, digits, `_` and `-`; another id is hashed."""
    web_search: bool | None = None
    """Whether the provider can search the web; if false, a needed search is refused, another one is left out."""
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
    reasoning_required: bool | None = None
    """Whether each message with tool calls needs reasoning (`reasoning_content` in chat, a block in the messages
    format); one without gets a blank.
    """
    top_k: bool | None = None
    """Whether chat has `top_k`."""
    custom_tools: bool | None = None
    """Whether chat accepts tools of type `custom`; if false, each becomes a function with one text."""
    tool_types: frozenset[str] | None = None
    """Types of tools that responses accept, of a provider that refuses all others."""
    custom_names: frozenset[str] | None = None
    """Names of the tools of type `custom` that responses accept, of a provider that refuses all others."""
    signatures: bool | None = None
    """Whether calls need a thought signature in chat; the first call of a turn without one gets a placeholder. If
    false, chat has no signatures, and none is sent.
    """
    sampling: Sampling | None = None
    """Sampling options that are accepted."""
    max_output_tokens: int | None = None
    """Maximum of output tokens; a higher limit of the caller is lowered to it."""
    default_output_tokens: int | None = None
    """Default output limit, for formats that require one, if the caller set none and `max_output_tokens` is unset."""
    threads: bool | None = None
    """Whether the provider stores message threads; if false, it receives the whole conversation."""
    cache_marks: bool | None = None
    """Whether prompt cache marks are added to a request without any: in the messages format, and in chat to a relay of
    marks (`breakpoints`).
    """

    def takes(self, member: str) -> bool:
        return (self.accepts is None or member in self.accepts) and member not in (self.rejects or ())

    @cached_property
    def nested_rejects(self) -> tuple[str, ...]:
        """Entries of `rejects` that are no names of the top level, have a second spelling (native), or a value."""
        return tuple(sorted(path for path in self.rejects or () if not path.islower() or "." in path or "=" in path))

    @cached_property
    def while_reasoning(self) -> "Quirks":
        """Copy in which the members of `rejects_beside_reasoning` are rejected, for a request with reasoning."""
        if self.rejects_beside_reasoning is None:
            return self
        return replace(self, rejects=self.rejects_beside_reasoning | (self.rejects or frozenset()))

    @cached_property
    def without_reasoning(self) -> "Quirks":
        """Copy that does not require reasoning in earlier turns, for a request in which the model does not reason."""
        return self if self.reasoning_required is None else replace(self, reasoning_required=None)

    @cached_property
    def takes_cache_key(self) -> bool:
        """Whether the gateway may add a prompt cache key that it made itself."""
        return self.cache_key is True and "prompt_cache_key" not in (self.rejects or ())

    def limited(self, tokens: int) -> "Quirks":
        """Return a copy with the maximum of output tokens lowered to `tokens`, if it is higher or unset."""
        own = self.max_output_tokens
        return replace(self, max_output_tokens=tokens if own is None else min(own, tokens))

    def first(self, other: "Quirks") -> "Quirks":
        """Return a copy of these quirks, which an operator set, with unset values from `other`. An operator's `rejects`
        replaces the other one; it is not added to it.
        """
        merged = self.over(other)
        return merged if self.rejects is None else replace(merged, rejects=self.rejects)

    def restricted(self, refused: "Quirks") -> "Quirks":
        """Return a copy with the restrictions that a provider's rejection has shown, which take precedence."""
        renames = {**(self.renames or {}), **(refused.renames or {})}
        limits = [quirks.max_output_tokens for quirks in (self, refused) if quirks.max_output_tokens is not None]
        beside = (self.rejects_beside_reasoning or frozenset()) | (refused.rejects_beside_reasoning or frozenset())
        return replace(
            refused.over(self),
            renames=renames or None,
            max_output_tokens=min(limits, default=None),
            rejects_beside_reasoning=beside or None,
        )

    def over(self, other: "Quirks") -> "Quirks":
        """Return a copy of these quirks with unset values from `other`."""
        if other is NO_QUIRKS:
            return self
        if self is NO_QUIRKS:
            return other
        own = {name: value for name in QUIRK_NAMES if (value := getattr(self, name)) is not None}
        merged = {name: getattr(other, name) for name in QUIRK_NAMES} | own
        if self.rejects is not None and other.rejects is not None:
            merged["rejects"] = self.rejects | other.rejects
        return Quirks(**merged)


QUIRK_NAMES = tuple(field.name for field in fields(Quirks))
NO_QUIRKS = Quirks()


@dataclass(frozen=True)
class ChannelQuirks:
    """Quirks of one model of a channel, by the wire format in which its provider is called."""

    by_protocol: Mapping[str, Quirks] = field(default_factory=lambda: MappingProxyType({}))
    """Protocol -> quirks, for requests that are translated into it."""
    written: Quirks = NO_QUIRKS
    """Quirks that the operator has set, for requests in the format of the provider."""
    certain: Mapping[str, Quirks] = field(default_factory=lambda: MappingProxyType({}))
    """Protocol -> certain refusals of the channel's vendor, for requests in the format of the provider: rows that are
    sure, and refusals after which a repaired call succeeded on the last day.
    """

    def of(self, protocol: str, source_format: str) -> Quirks:
        """Return the quirks for a request that is encoded as `protocol`. A body that came in this format
        (`source_format`) is sent unchanged except for the operator's quirks and the certain ones.
        """
        if protocol == source_format:
            return self._same_format.get(protocol, self.written)
        return self.by_protocol.get(protocol, NO_QUIRKS)

    @cached_property
    def _same_format(self) -> Mapping[str, Quirks]:
        return {protocol: self.written.first(quirks) for protocol, quirks in self.certain.items()}

    def limited(self, tokens: int) -> "ChannelQuirks":
        """Return a copy with the maximum of output tokens lowered to `tokens` in each format."""
        by_protocol = {protocol: quirks.limited(tokens) for protocol, quirks in self.by_protocol.items()}
        return ChannelQuirks(MappingProxyType(by_protocol), self.written.limited(tokens), self.certain)

    def restricted(self, protocol: str, refused: Quirks) -> "ChannelQuirks":
        """Return a copy with restrictions that a refusal in the format `protocol` has shown, also for other formats."""
        by_protocol, certain = dict(self.by_protocol), dict(self.certain)
        by_protocol[protocol] = by_protocol.get(protocol, NO_QUIRKS).restricted(refused)
        certain[protocol] = certain.get(protocol, NO_QUIRKS).restricted(refused)
        return ChannelQuirks(MappingProxyType(by_protocol), self.written, MappingProxyType(certain))

    def accepts_reasoning(self, protocol: str) -> bool:
        """Return whether a provider called in the format `protocol` may get stored reasoning that a caller omitted."""
        return protocol != "chat" or self.by_protocol.get(protocol, NO_QUIRKS).reasoning_content is not False

    @cached_property
    def expecting_reasoning(self) -> frozenset[str]:
        """Wire formats in which the provider requires the reasoning of earlier responses, or its state."""
        return frozenset(
            name
            for name, quirks in self.by_protocol.items()
            if quirks.reasoning_content is True or quirks.signatures is True
        )

    @cached_property
    def takes_cache_key(self) -> bool:
        """Whether the provider takes a key of its prompt cache in one of its formats."""
        return any(quirks.takes_cache_key for quirks in self.by_protocol.values())

    @cached_property
    def takes_client_headers(self) -> bool:
        """Whether the provider takes headers of clients in one of its formats."""
        return any(quirks.client_headers for quirks in self.by_protocol.values())

    @cached_property
    def takes_session_header(self) -> bool:
        """Whether the provider takes the name of a conversation in a header, in one of its formats."""
        return any(quirks.session_header for quirks in self.by_protocol.values())

    @property
    def keeps_threads(self) -> bool:
        """Whether the provider may store message threads, which callers of its own format can start."""
        return self.by_protocol.get("messages", NO_QUIRKS).threads is not False


NO_CHANNEL_QUIRKS = ChannelQuirks()
