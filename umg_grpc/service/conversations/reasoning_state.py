"""What a conversation says of reasoning states, and what it leaves to be known: whose they are. Pure."""

import hashlib
from collections.abc import Iterator, Mapping

from umg_grpc.v1 import pb

STANDARD_ALPHABET = str.maketrans("-_", "+/")

THOUGHTS = "messages.parts.reasoning"
"""What restoring changed, for an upstream that starts from the caller's body."""


def needs(request: pb.GenerateRequest) -> bool:
    """Whether the vault may know something of the request that the request does not say itself."""
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            for part in message.parts:
                if part.HasField("state") and not part.state.channel:
                    return True
                if part.HasField("tool_call") and part.tool_call.call_id:
                    return True
    return False


def may_be_stripped(request: pb.GenerateRequest) -> bool:
    """Whether thoughts may be missing although the upstream is of the caller's format: chat has no place for them that
    clients know, and only a model that was asked to think is likely to want them back.
    """
    return request.source.format == "chat" and request.HasField("reasoning") and needs(request)


def pinned_channel(request: pb.GenerateRequest) -> str:
    """The channel that made the newest reasoning state of the conversation; "" when none is known."""
    for message in reversed(request.messages):
        for part in reversed(message.parts):
            if part.HasField("state") and part.state.channel:
                return part.state.channel
    return ""


def makers(request: pb.GenerateRequest) -> dict[str, str]:
    """The channels that made the reasoning states of the conversation, by their data, where they are known."""
    return {
        part.state.data: part.state.channel
        for message in request.messages
        if message.role == pb.ROLE_ASSISTANT
        for part in message.parts
        if part.HasField("state") and part.state.channel
    }


def without_states_of_others(request: pb.GenerateRequest, channel: str, known: Mapping[str, str]) -> pb.GenerateRequest:
    """The request without the states that another channel made, since no other account can read them; itself where
    there are none. `known` are makers of states whose request does not say them.
    """
    strange = [
        (index, position)
        for index, message in enumerate(request.messages)
        if message.role == pb.ROLE_ASSISTANT
        for position, part in enumerate(message.parts)
        if part.HasField("state") and (part.state.channel or known.get(part.state.data, channel)) != channel
    ]
    if not strange:
        return request
    less = pb.GenerateRequest()
    less.CopyFrom(request)
    for index, position in strange:
        less.messages[index].parts[position].ClearField("state")
    if less.HasField("source") and "messages" not in less.source.edited_fields:
        less.source.edited_fields.append("messages")
    return less


def digest_of(kind: str, text: str) -> str:
    """Of states only what their base64 says counts: clients write it anew in the other alphabet, and pad it."""
    if kind == "state":
        text = text.translate(STANDARD_ALPHABET).rstrip("=")
    return hashlib.blake2b(f"{kind}\0{text}".encode(), digest_size=16).hexdigest()


def object_ids(part: pb.Part) -> Iterator[str]:
    """Ids of all that a provider may keep of a part of its answer."""
    yield from {
        part.message_id,
        part.reasoning.item_id,
        part.tool_call.item_id,
        part.server_tool_call.call_id,
        part.media.media_id,
    } - {""}


def digests_of(request: pb.GenerateRequest) -> Iterator[str]:
    """Of all that the vault may know something of."""
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            for part in message.parts:
                if part.HasField("state") and not part.state.channel:
                    yield digest_of("state", part.state.data)
                if part.HasField("tool_call") and part.tool_call.call_id:
                    yield digest_of("call", part.tool_call.call_id)
