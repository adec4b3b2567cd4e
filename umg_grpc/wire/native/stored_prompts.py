"""Beginnings of native prompts that a provider stores (`cachedContents`): their division, and bodies for them."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present
from umg_grpc.wire.core.prompt_cache_marks import PromptMark

STORED_PROMPTS_PATH = "/cachedContents"
STORED_MEMBERS = ("systemInstruction", "tools", "toolConfig")
"""Members that, if a beginning is stored, only it may contain; they are in the order in which the model reads them."""
USER_ROLE = "user"
DIGEST_BYTES = 20


class Beginning(NamedTuple):
    """Beginning of a prompt: instructions, tools and some contents. Beginnings with equal digests are equal."""

    digest: bytes
    content: int  # number of whole contents
    parts: int  # number of parts of the content after the whole ones
    size: int  # in bytes of the body
    is_long: bool  # whether a mark for an hour is at its end or later


class _Content(Struct):
    role: str = USER_ROLE
    parts: list[Raw] = []


class _PromptText(Struct):
    text: Raw = ABSENT_MEMBER


class Created(Struct, rename="camel"):
    """Response of a provider that has stored a beginning of a prompt."""

    class Usage(Struct, rename="camel"):
        """Size of the stored beginning."""

        total_token_count: int = 0

    name: str
    usage_metadata: Usage = msgspec.field(default_factory=Usage)


class Place(NamedTuple):
    """Where a provider stores beginnings of prompts."""

    base_url: str  # in front of `STORED_PROMPTS_PATH`; "" for the base URL of the channel
    models: str  # name of the collection of models, with a slash


_PROJECT = re.compile(r"(https?://.+?/v1(?:beta1)?/)(projects/[^/]+/locations/[^/]+)(/publishers/google)")
"""Base URL of Vertex AI, where stored beginnings belong to a project."""


def place_of(base_url: str) -> Place:
    """Return where the provider of a channel with this base URL stores beginnings of prompts."""
    if (found := _PROJECT.fullmatch(base_url)) is None:
        return Place("", "models/")
    return Place(found[1] + found[2], f"{found[2]}{found[3]}/models/")


decode_created = msgspec.json.Decoder(Created).decode


class DividedPrompt:
    """Body of a native request, divided into the beginnings that its marks allow to be stored."""

    def __init__(self, body: bytes, marks: Sequence[PromptMark], seed: bytes) -> None:
        """Read a body encoded by the gateway. `seed`: owner; prompts of different owners have different digests."""
        self._members = msgspec.json.decode(body, type=dict[str, Raw])
        self._contents = msgspec.json.decode(self._members["contents"], type=list[Raw])
        self._read = [msgspec.json.decode(raw, type=_Content) for raw in self._contents]
        self._marks = sorted(marks)
        self.beginnings = list(self._beginnings(seed))  # the shortest one first

    def _beginnings(self, seed: bytes) -> Iterator[Beginning]:
        """Yield the beginnings before each question of the user up to the last mark, and up to marks within a question:
        providers expect the remainder to begin with a question.
        """
        if not self._marks:
            return
        last, digest, size = self._marks[-1], hashlib.blake2b(seed, digest_size=DIGEST_BYTES), 0
        within = {(mark.content, mark.parts) for mark in self._marks if mark.parts}
        for name in STORED_MEMBERS:
            if (raw := self._members.get(name, ABSENT_MEMBER)) is not ABSENT_MEMBER:
                digest.update(name.encode() + bytes(raw))
                size += len(bytes(raw))
        for index, content in enumerate(self._read):
            if index > last.content:
                return
            is_question = content.role == USER_ROLE and bool(content.parts) and _is_text(content.parts[0])
            if is_question and (index or size):
                yield Beginning(digest.digest(), index, 0, size, self._is_long(index, 0))
            digest.update(f"<{content.role}>".encode())
            for count, part in enumerate(content.parts, start=1):
                digest.update(bytes(part))
                size += len(bytes(part))
                if is_question and count < len(content.parts) and (index, count) in within:
                    yield Beginning(digest.digest(), index, count, size, self._is_long(index, count))

    def _is_long(self, content: int, parts: int) -> bool:
        return any(mark.is_long for mark in self._marks if (mark.content, mark.parts) >= (content, parts))

    def stored(self, beginning: Beginning, model: str, seconds: int) -> bytes:
        """Return the body that stores a beginning for `seconds`. `model`: name of the model with its collection."""
        fields: dict[str, object] = {"model": model, "ttl": f"{seconds}s"}
        fields |= {name: self._members[name] for name in STORED_MEMBERS if name in self._members}
        contents: list[object] = [*self._contents[: beginning.content]]
        if beginning.parts:
            whole = self._read[beginning.content]
            contents.append({"role": whole.role, "parts": whole.parts[: beginning.parts]})
        if contents:
            fields["contents"] = contents
        return msgspec.json.encode(fields)

    def rest(self, beginning: Beginning, name: str) -> bytes:
        """Return the request body that refers to a stored beginning by `name` and contains only the remainder."""
        contents: list[object] = [*self._contents[beginning.content :]]
        if beginning.parts:
            whole = self._read[beginning.content]
            contents[0] = {"role": whole.role, "parts": whole.parts[beginning.parts :]}
        members = {name: raw for name, raw in self._members.items() if name not in STORED_MEMBERS}
        return msgspec.json.encode(members | {"contents": contents, "cachedContent": name})


def _is_text(part: Raw) -> bool:
    return is_present(msgspec.json.decode(part, type=_PromptText).text)
