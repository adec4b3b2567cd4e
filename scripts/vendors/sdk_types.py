"""Comparison of the types of vendors' SDKs with the words of our wire formats.

A member or value is new if no source file of the format has its word. Members that only other formats of ours have are
therefore new, and a word that a format uses for something else is not: top-level members of requests are compared
exactly by `tests/world/sdk_types/test_lists.py`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scripts.vendors.findings import Finding
from scripts.vendors.python_types import Member, PackageTypes, Vocabulary
from umg_grpc.knowledge.finish_reason_words import meaning_of
from umg_grpc.knowledge.provider_quirks import known

WIRE = Path(__file__).resolve().parents[2] / "umg_grpc" / "wire"


@dataclass(frozen=True)
class Root:
    """Type of an SDK from which bodies of a format are made, or to which they are decoded."""

    package: str
    """Package on PyPI."""
    place: str
    """Module and name of the type, below the name under which the package is imported."""
    format: str
    """Folder of our wire format."""
    direction: str
    """`request`, `response` or `stream`."""

    @property
    def source(self) -> str:
        """Name of the source in findings."""
        return f"{self.package}, {self.format}"

    @property
    def named(self) -> tuple[str, str]:
        """Module and name of the type."""
        return _named(self.package, self.place)


PACKAGES: Mapping[str, str] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google-genai": "google.genai",
    "mistralai": "mistralai.client",
    "cohere": "cohere",
}
"""Package on PyPI -> name under which it is imported."""
_CHAT = "chat.completion_create_params"
_RESPONSES = "responses.response_create_params"
_EVENTS = "responses.response_stream_event"
_BETA_EVENTS = "beta.beta_raw_message_stream_event"
ROOTS = (
    Root("openai", f"types.{_CHAT}.CompletionCreateParamsBase", "chat", "request"),
    Root("openai", "types.chat.chat_completion.ChatCompletion", "chat", "response"),
    Root("openai", "types.chat.chat_completion_chunk.ChatCompletionChunk", "chat", "stream"),
    Root("openai", f"types.{_RESPONSES}.ResponseCreateParamsBase", "responses", "request"),
    Root("openai", "types.responses.response.Response", "responses", "response"),
    Root("openai", f"types.{_EVENTS}.ResponseStreamEvent", "responses", "stream"),
    Root("openai", "types.embedding_create_params.EmbeddingCreateParams", "embeddings", "request"),
    Root("anthropic", "types.message_create_params.MessageCreateParamsBase", "messages", "request"),
    Root("anthropic", "types.beta.message_create_params.MessageCreateParamsBase", "messages", "request"),
    Root("anthropic", "types.message.Message", "messages", "response"),
    Root("anthropic", "types.raw_message_stream_event.RawMessageStreamEvent", "messages", "stream"),
    Root("anthropic", f"types.{_BETA_EVENTS}.BetaRawMessageStreamEvent", "messages", "stream"),
    Root("google-genai", "types.GenerateContentConfig", "native", "request"),
    Root("google-genai", "types.Content", "native", "request"),
    Root("google-genai", "types.GenerateContentResponse", "native", "response"),
    Root("google-genai", "types.EmbedContentConfig", "native_embeddings", "request"),
    Root("mistralai", "models.chatcompletionrequest.ChatCompletionRequest", "chat", "request"),
    Root("mistralai", "models.chatcompletionresponse.ChatCompletionResponse", "chat", "response"),
    Root("mistralai", "models.completionchunk.CompletionChunk", "chat", "stream"),
    Root("cohere", "v2.types.v2rerank_response.V2RerankResponse", "rerank", "response"),
)


@dataclass(frozen=True)
class AllowList:
    """Type of an SDK that has all members which its vendor accepts, and the row of ours that lists them."""

    package: str
    place: str
    base_url: str
    protocol: str


ALLOW_LISTS = (
    AllowList("mistralai", "models.chatcompletionrequest.ChatCompletionRequest", "https://api.mistral.ai/v1", "chat"),
)
MEMBER_DEPTH, VALUE_DEPTH = 2, 3
"""Levels of objects that are compared: deeper ones are passed through, or kept as JSON."""
VALUES = frozenset(
    {
        *("type", "object", "role", "status", "finish_reason", "stop_reason", "reason", "block_reason", "mode"),
        *(
            "effort",
            "reasoning_effort",
            "thinking_level",
            "service_tier",
            "verbosity",
            "tool_choice",
            "encoding_format",
        ),
    }
)
"""Members whose values are compared: tags of unions, and words that the gateway translates."""
ENDS = frozenset({"finish_reason", "stop_reason"})
"""Members whose values are rows of finish reasons."""


def compared(package: str, types: PackageTypes) -> Iterator[Finding]:
    """Yield the findings of one SDK."""
    for root in ROOTS:
        if root.package == package:
            yield from _of_root(root, types)
    for row in ALLOW_LISTS:
        if row.package == package:
            yield from _of_allow_list(row, types)


def _of_root(root: Root, types: PackageTypes) -> Iterator[Finding]:
    try:
        members = set(types.members(*root.named))
    except KeyError:
        place = "ROOTS of scripts/vendors/sdk_types.py"
        yield Finding("types that moved", root.source, root.place, place)
        return
    words = _vocabulary(root.format)
    for member in members:
        if _is_compared(member) and not _is_known(member, words):
            yield _finding(root, member)


def _named(package: str, place: str) -> tuple[str, str]:
    module, _, name = f"{PACKAGES[package]}.{place}".rpartition(".")
    return module, name


def _is_compared(member: Member) -> bool:
    if member.value is None:
        return member.depth <= MEMBER_DEPTH
    return member.depth <= VALUE_DEPTH and member.name in VALUES


def _finding(root: Root, member: Member) -> Finding:
    folder = f"umg_grpc/wire/{root.format}"
    place = f"{folder}/schema.py, request.py" if root.direction == "request" else f"{folder}/response.py"
    if member.value is None:
        place = (
            f"{folder} ({'schema.py, request.py' if root.direction == 'request' else 'response.py, stream_decoder.py'})"
        )
        return Finding(f"{root.direction} members", root.source, f"{member.owner}.{member.name}", place)
    kind = "types" if member.name in ("type", "object", "role") else "values"
    place = f"{folder} ({'decode_messages.py' if root.direction == 'request' else 'stream_decoder.py'})"
    if member.name in ENDS:
        place = "umg_grpc/knowledge/data/finish_reasons.json"
    return Finding(f"{root.direction} {kind}", root.source, f"{member.name}={member.value}", place)


def _is_known(member: Member, words: Vocabulary) -> bool:
    if member.value is not None and member.name in ENDS:
        return meaning_of(member.value) is not None
    word = member.name if member.value is None else member.value
    return any(spelling in words for spelling in (word, word.lower(), _camel(word)))


def _camel(word: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), word)


@cache
def _vocabulary(name: str) -> Vocabulary:
    return Vocabulary((WIRE / name, WIRE / "core"))


def _of_allow_list(row: AllowList, types: PackageTypes) -> Iterator[Finding]:
    """Yield the differences between the members that a vendor accepts and the allow-list in our row."""
    ours = known("", "", row.base_url, row.protocol).accepts or frozenset()
    try:
        theirs = types.own_members(*_named(row.package, row.place))
    except KeyError:
        return  # found as a type that moved
    place = "umg_grpc/knowledge/data/dialects.json (accepts)"
    for name in theirs - ours:
        yield Finding("members that a vendor accepts", row.package, name, place)
    for name in ours - theirs:
        yield Finding("members that a vendor no longer accepts", row.package, name, place)
