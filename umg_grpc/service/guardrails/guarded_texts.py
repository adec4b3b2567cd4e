"""Texts of a message that guards check. The option `guarded_text` marks their fields in the schema."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple, Protocol

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from umg_grpc.v1 import pb

JSON_TEXT, PLAIN_TEXT, NESTED_TEXT, FILE_TEXT = "json", "plain", "nested", "file"
"""Kinds of fields with guarded texts: JSON, any other text, a message with guarded texts, a file."""
TEXT_TYPES = ("text/", "application/json", "application/xml")
"""Beginnings of the media types of files that are checked as texts."""
ROLE_MEMBER, LOGPROBS_MEMBER, CITATIONS_MEMBER, MIME_TYPE = "role", "logprobs", "citations", "mime_type"


class _Field(NamedTuple):
    name: str
    kind: str
    is_repeated: bool
    has_presence: bool


class FoundText(NamedTuple):
    """Text of a message that guards check, with the field in which it is."""

    owner: Message
    field: str
    position: int | str | None
    """Index in a repeated field, or key of a map; None for a single one."""
    is_file: bool
    guarded: pb.GuardedText

    def replace(self, text: str) -> None:
        """Replace the text. Likelihoods of its tokens and positions of citations no longer fit, and are removed."""
        if self.position is not None:
            getattr(self.owner, self.field)[self.position] = text
        else:
            setattr(self.owner, self.field, text.encode() if self.is_file else text)
        names = self.owner.DESCRIPTOR.fields_by_name
        if LOGPROBS_MEMBER in names:
            self.owner.ClearField(LOGPROBS_MEMBER)
        for citation in getattr(self.owner, CITATIONS_MEMBER, ()):
            citation.ClearField("start_index")
            citation.ClearField("end_index")


def texts_of(message: Message, path: str = "", role: "pb.Role.ValueType" = pb.ROLE_UNSPECIFIED) -> Iterator[FoundText]:
    """Yield the texts of a message that are not empty, in the order of the fields. `path`: path of the message, with
    which the paths of the texts begin. `role`: role of the conversation's message that contains this message.
    """
    if isinstance(message, pb.Message):
        role = message.role
    for name, kind, is_repeated, has_presence in _fields(message.DESCRIPTOR):
        if not is_repeated and has_presence and not message.HasField(name):
            continue
        value, place = getattr(message, name), f"{path}{name}"
        for key, each, at in _entries(value, place) if is_repeated else ((None, value, place),):
            if kind == NESTED_TEXT:
                yield from texts_of(each, f"{at}.", role)
            elif kind == FILE_TEXT:
                if (content := _text_of_file(message, each)) is not None:
                    yield FoundText(message, name, key, True, _guarded(content, at, role, PLAIN_TEXT))
            elif each:
                yield FoundText(message, name, key, False, _guarded(each, at, role, kind))


class Found(Protocol):
    """Text that guards check, with a method to replace it."""

    @property
    def guarded(self) -> pb.GuardedText: ...

    def replace(self, text: str) -> None:
        """Replace the text where it was found."""


def replace_texts(found: Iterable[Found], texts: Mapping[str, str]) -> None:
    """Replace texts by path. Raise ValueError for an unknown path, and if a text that is not JSON replaces JSON."""
    by_path = {each.guarded.path: each for each in found}
    for path, text in texts.items():
        if (place := by_path.get(path)) is None:
            raise ValueError(f"no checked text has the path {path[:100]!r}")
        if place.guarded.is_json and is_json(place.guarded.text) and not is_json(text):
            raise ValueError(f"the replacement of {path[:100]!r} is not JSON")
    for path, text in texts.items():
        by_path[path].replace(text)


def _guarded(text: str, path: str, role: "pb.Role.ValueType", kind: str) -> pb.GuardedText:
    return pb.GuardedText(path=path, text=text, role=role, is_json=kind == JSON_TEXT)


def _entries(value: Iterable[Any], path: str) -> Iterator[tuple[int | str, Any, str]]:
    """Yield (index or key, entry, path of the entry) for each entry of a repeated field or of a map."""
    if isinstance(value, Mapping):
        yield from ((key, value[key], f"{path}.{key}") for key in sorted(value))
    else:
        yield from ((index, each, f"{path}[{index}]") for index, each in enumerate(value))


def _text_of_file(message: Message, data: bytes) -> str | None:
    """Return the text of a file in a message; None if its media type is not a text, or its bytes are not UTF-8."""
    if not data or not str(getattr(message, MIME_TYPE, "")).startswith(TEXT_TYPES):
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def is_json(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


@cache
def _fields(descriptor: Descriptor) -> tuple[_Field, ...]:
    return tuple(
        _Field(field.name, kind, field.is_repeated, field.has_presence)
        for field in descriptor.fields
        if (kind := _kind(field)) is not None
    )


def _kind(field: FieldDescriptor) -> str | None:
    is_guarded = field.GetOptions().Extensions[pb.guarded_text]
    if field.message_type is not None:
        if field.message_type.GetOptions().map_entry:
            return PLAIN_TEXT if is_guarded else None
        return NESTED_TEXT if has_texts(field.message_type) else None
    if not is_guarded:
        return None
    if field.type == FieldDescriptor.TYPE_BYTES:
        return FILE_TEXT
    return JSON_TEXT if field.name == "json" or field.name.endswith("_json") else PLAIN_TEXT


def has_texts(descriptor: Descriptor, seen: frozenset[Descriptor] = frozenset()) -> bool:
    """Return whether a message type, or the type of a field in it, has a guarded text. `seen`: types around it."""
    if descriptor in seen:
        return False
    inner = seen | {descriptor}
    return any(
        field.GetOptions().Extensions[pb.guarded_text]
        if field.message_type is None
        else has_texts(field.message_type, inner)
        for field in descriptor.fields
    )


def fit_parts(response: pb.TranscribeResponse) -> None:
    """Remove the words of a transcription that no longer match its text, and join its segments if they do not match: a
    guard that masks "4111 1111 1111 1111" in the text does not find the number in its four words.
    """
    text = _letters([response.text])
    if _letters(word.word for word in response.words) != text:
        del response.words[:]
    if response.segments and _letters(segment.text for segment in response.segments) != text:
        first, last = response.segments[0], response.segments[-1]
        whole = pb.TranscriptionSegment(
            segment_id=first.segment_id, start=first.start, end=last.end, text=response.text
        )
        del response.segments[:]
        response.segments.append(whole)


def _letters(texts: Iterable[str]) -> str:
    return "".join(filter(str.isalnum, "".join(texts)))
