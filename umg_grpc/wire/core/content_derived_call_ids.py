"""Ids of tool calls that are derived from the content of the calls, for clients that lose the ids of a response."""

import hashlib
from collections import Counter

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_argument_objects import call_arguments


class ContentIds:
    """Generator of ids for the calls of one conversation, in their order. The same calls get the same ids in each
    request. A response's ids are those of the calls that follow the conversation before it.
    """

    def __init__(self) -> None:
        self._counts = Counter[str]()

    @classmethod
    def after(cls, conversation: pb.GenerateRequest) -> "ContentIds":
        """Return the generator for the calls that follow a conversation."""
        ids = cls()
        for message in conversation.messages:
            for part in message.parts:
                if part.HasField("tool_call"):
                    ids.next(part.tool_call)
        return ids

    def next(self, call: pb.ToolCall) -> str:
        """Return a digest of the call's name and arguments (in any JSON form) with its number among equal calls."""
        arguments = msgspec.json.encode(call_arguments(call))
        plain = msgspec.json.encode(msgspec.json.decode(arguments), order="sorted")
        digest = hashlib.blake2b(call.name.encode() + b"\0" + plain, digest_size=12).hexdigest()
        number = self._counts[digest]
        self._counts[digest] += 1
        return f"call_{digest}_{number}" if number else f"call_{digest}"
