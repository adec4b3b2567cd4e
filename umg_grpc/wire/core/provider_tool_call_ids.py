"""Ids of tool calls as providers accept them, for formats that restrict ids in requests."""

import hashlib
import re
from collections import deque

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_name_conversion import OpenCalls

DIGEST_CHARACTERS = 16


class ProviderCallIds:
    """Mapping from the ids of the tool calls of one conversation to ids that the provider accepts. A call and its
    result get the same id. Different calls get different ids, even if the caller uses one id for several calls.
    """

    def __init__(self, illegal: re.Pattern[str], max_characters: int | None = None) -> None:
        """Create an empty mapping. `illegal`: pattern of a rejected character. `max_characters`: None for no limit."""
        self._illegal = illegal
        self._max_characters = max_characters
        self._sent: dict[str, str] = {}  # id of the last call of this id
        self._called: set[str] = set()
        self._waiting: dict[str, deque[str]] = {}  # ids of the calls of one message
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}  # legal id -> last number appended
        self._open = OpenCalls()

    def of_call(self, call: pb.ToolCall, default: str) -> str:
        """Return the id of a tool call for the provider, `default` without one. Characters that it rejects change."""
        own = call.call_id or default
        if own in self._called:
            self._sent.pop(own, None)
        self._called.add(own)
        call_id = self._legal(own)
        self._waiting.setdefault(own, deque()).append(call_id)
        if not call.call_id:
            self._open.add(call.name, call_id)
        return call_id

    def begin_message(self) -> None:
        """Begin a message of the assistant: later results belong to its calls, even if earlier ones have equal ids."""
        self._waiting.clear()

    def of_result(self, result: pb.ToolResult) -> str:
        """Return the id that the provider was sent for the call to which a tool result belongs.

        A result without an id belongs to the first open call of its tool, else to the first open call of any tool. If
        no call is open, the id is made from the tool's name.
        """
        if result.call_id:
            waiting = self._waiting.get(result.call_id)
            return waiting.popleft() if waiting else self._legal(result.call_id)
        return self._open.answered(result.name) or self._legal(f"toolu_{result.name or 'unknown'}")

    def _legal(self, call_id: str) -> str:
        if call_id not in self._sent:
            legal = plain = self._shortened(self._illegal.sub("_", call_id))
            while legal in self._taken:
                # continues from the last number: a conversation may have many calls of one id
                number = self._numbers[plain] = self._numbers.get(plain, 1) + 1
                legal = self._shortened(f"{plain}_{number}")
            self._sent[call_id] = legal
            self._taken.add(legal)
        return self._sent[call_id]

    def _shortened(self, call_id: str) -> str:
        if self._max_characters is None or len(call_id) <= self._max_characters:
            return call_id
        digest = hashlib.sha256(call_id.encode()).hexdigest()[:DIGEST_CHARACTERS]
        return f"{call_id[: self._max_characters - DIGEST_CHARACTERS - 1]}_{digest}"
