"""Reasoning states in a conversation (opaque data of a provider that belongs to reasoning, readable by its account
alone), and the channels that made them.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_UPSTREAMS

STANDARD_ALPHABET = str.maketrans("-_", "+/")

RESTORED_REASONING = "messages.parts.reasoning"
"""Name of restored reasoning in `RequestNotes.edited`: an upstream that starts from the caller's body encodes it."""


def needs(request: pb.GenerateRequest) -> bool:
    """Return whether a look-up in the reasoning store may find data for the request. It may for tool calls, whose
    reasoning may be missing, and for reasoning states of unknown channels.
    """
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            for part in message.parts:
                if part.HasField("state") and not part.state.channel:
                    return True
                if part.HasField("tool_call") and part.tool_call.call_id:
                    return True
    return False


def pinned_channel(request: pb.GenerateRequest) -> str:
    """Return the channel of the newest reasoning state in the request, which is preferred; "" if none is known."""
    for message in reversed(request.messages):
        for part in reversed(message.parts):
            if part.HasField("state") and part.state.channel:
                return part.state.channel
    return ""


def makers(request: pb.GenerateRequest) -> dict[str, str]:
    """Return data of a reasoning state -> channel that made it, for the request's states of known channels."""
    return {
        part.state.data: part.state.channel
        for message in request.messages
        if message.role == pb.ROLE_ASSISTANT
        for part in message.parts
        if part.HasField("state") and part.state.channel
    }


def without_states_of_others(request: pb.GenerateRequest, channel: str, known: Mapping[str, str]) -> pb.GenerateRequest:
    """Return the request without the reasoning states of other channels, which the account of `channel` cannot read.
    The result is the request itself if there are none. `known`: data of a reasoning state -> channel that made it, for
    states whose channel the request does not contain.
    """
    foreign = [
        (index, position)
        for index, message in enumerate(request.messages)
        if message.role == pb.ROLE_ASSISTANT
        for position, part in enumerate(message.parts)
        if part.HasField("state") and (part.state.channel or known.get(part.state.data, channel)) != channel
    ]
    if not foreign:
        return request
    copy = pb.GenerateRequest()
    copy.CopyFrom(request)
    for index, position in foreign:
        copy.messages[index].parts[position].ClearField("state")
    return copy


def digest_of(kind: str, text: str) -> str:
    """Return the key of an entry of the reasoning store: the BLAKE2b digest of a kind and a text, in hexadecimal. Kind
    and text are `call` and the id of a tool call, `object` and the id of a provider's object, or `state` and the data
    of a reasoning state. The base64 alphabet and padding of the data, which some clients change, make no difference.
    """
    if kind == "state":
        text = text.translate(STANDARD_ALPHABET).rstrip("=")
    return hashlib.blake2b(f"{kind}\0{text}".encode(), digest_size=16).hexdigest()


def state_digest(state: pb.ReasoningState) -> str:
    """Return the key of a reasoning state's entry. It stays the same if a client parses and serializes the state."""
    codec = TEXT_UPSTREAMS.get(state.format)
    return digest_of("state", state.data if codec is None else codec.state_identity(state.data))


def object_ids(part: pb.Part) -> Iterator[str]:
    """Yield the ids of all objects that a provider may store for a part: of items, media, containers and files."""
    yield from {
        part.message_id,
        part.reasoning.item_id,
        part.tool_call.item_id,
        part.server_tool_call.call_id,
        part.server_tool_call.container_id,
        part.media.media_id,
        *_ids_in_json(part),
    } - {""}


def container_id(candidate: pb.Candidate) -> str:
    """Return the id of the container in which the provider ran tools for the response; "" if there is none."""
    with suppress(ValueError, RecursionError):
        return msgspec.json.decode(candidate.container_json, type=_Item).id if candidate.container_json else ""
    return ""


class _Item(msgspec.Struct):
    """JSON object of an opaque part, of which only the member `id` is read."""

    id: str = ""


def _ids_in_json(part: pb.Part) -> Iterator[str]:
    """Yield the ids in a part of raw JSON in a provider's format: of the part itself, of files and of vector stores."""
    wire_format, text = part.opaque.format, part.opaque.json
    if part.HasField("server_tool_result"):
        wire_format, text = part.server_tool_result.format, part.server_tool_result.output_json
    if not text or (codec := TEXT_UPSTREAMS.get(wire_format)) is None:
        return
    with suppress(ValueError, RecursionError):
        yield msgspec.json.decode(text, type=_Item).id
    yield from (named.id for named in codec.objects.in_json(text))


def digests_of(request: pb.GenerateRequest) -> Iterator[str]:
    """Yield the digests of the request's tool calls and reasoning states, the keys of the reasoning store."""
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            for part in message.parts:
                if part.HasField("state") and not part.state.channel:
                    yield state_digest(part.state)
                if part.HasField("tool_call") and part.tool_call.call_id:
                    yield digest_of("call", part.tool_call.call_id)
