"""Encoding of canonical messages as `system` and `messages` of a messages request to a provider."""

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.alternating_turn_encoding import (
    ASSISTANT_ROLE,
    SYSTEM_ROLE,
    SYSTEM_ROLES,
    USER_ROLE,
    AlternatingTurns,
    Turn,
)
from umg_grpc.wire.core.inserted_turn_texts import NO_RESULT
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.core.unknown_role_messages import opaque_turn
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.messages.automatic_cache_marks import MAX_CACHE_MARKS
from umg_grpc.wire.messages.cache_control import encode_cache
from umg_grpc.wire.messages.encode_parts import MessagesPartEncoder, compact_content

REASONING_BLOCKS = ("thinking", "redacted_thinking")  # types of blocks with reasoning
BLANK_REASONING: JsonObject = {"type": "thinking", "thinking": "", "signature": ""}
"""Empty reasoning block before tool calls whose reasoning is missing, for providers that require reasoning there."""


class MessageEncoder(AlternatingTurns[object]):
    """Encoder of the messages of a canonical request as the members `system` and `messages`."""

    format = "messages"
    id_prefix = "toolu"

    def __init__(
        self, request: pb.GenerateRequest, names: ToolNames, report: Report, quirks: Quirks = NO_QUIRKS
    ) -> None:
        super().__init__(request, MessagesPartEncoder(request, names, report), report, quirks)
        self._extends_system = quirks.system_place is None  # a model of unknown rules
        self._last_instructions: list[JsonObject] = []

    def encode(self, tools: list[object]) -> JsonObject:
        """Return `system`, if any, and `messages`. Only four cache marks stay: those of `tools` are removed first."""
        self._encode_messages()
        self.system += self._last_instructions
        self._order_turns()
        if self._quirks.reasoning_required:
            self._complete_reasoning()
        marked = _marked_blocks(block for turn in self.turns for block in turn.blocks)
        self._limit_marks([*_marked_blocks([*tools, *self.system]), *marked])
        # a mark moves on with the next request, in which its turn keeps its form
        content_of = list if marked else compact_content
        fields: JsonObject = {}
        if self.system:
            fields["system"] = compact_content(self.system)
        fields["messages"] = [
            {"role": turn.role, "content": content_of(turn.blocks)} if turn.role else turn.blocks[0]
            for turn in self.turns
        ]
        return fields

    def append_instruction(self, text: str) -> None:
        """Add a line at the end of the system prompt. The caller does so before `encode`."""
        self._last_instructions.append({"type": "text", "text": text})

    # --- turns

    def _own_turn(self, message: pb.Message, at: str) -> Turn[object] | None:
        own = opaque_turn(message, "messages", at)
        return None if own is None else Turn("", [own])

    def _keeps_place(self, message: pb.Message, index: int) -> bool:
        # the instructions of a caller of this format, and those between a turn of the user and the model's response to
        # it, where newer models take them
        if self._quirks.system_place is None:
            return message.role == pb.ROLE_SYSTEM and self._request.source.format == "messages"
        if (
            self._quirks.system_place == "first"
            or not self.turns
            or self.turns[-1].role not in {USER_ROLE, SYSTEM_ROLE}
        ):
            return False
        later = (other.role for other in self._request.messages[index + 1 :])
        return next((role for role in later if role not in SYSTEM_ROLES), pb.ROLE_ASSISTANT) == pb.ROLE_ASSISTANT

    def _end_with_user(self, last: Turn[object]) -> None:
        if self._quirks.prefill is not False:
            self._strip_end(last)
        elif not any(_has_type(block, "tool_use") for block in last.blocks):
            self._append_continue()

    def _complete_reasoning(self) -> None:
        for turn in self.turns:
            has_calls = turn.role == ASSISTANT_ROLE and any(_has_type(block, "tool_use") for block in turn.blocks)
            if has_calls and not any(map(self._is_reasoning, turn.blocks)):
                turn.blocks.insert(0, dict(BLANK_REASONING))

    # --- blocks

    def _members(self, block: object) -> JsonObject:
        return block if isinstance(block, dict) else {}

    def _is_reasoning(self, block: object) -> bool:
        return isinstance(block, dict) and block.get("type") in REASONING_BLOCKS

    def _call_id(self, block: object) -> str | None:
        return str(block["id"]) if isinstance(block, dict) and block.get("type") == "tool_use" else None

    def _result_id(self, block: object) -> str | None:
        return str(block["tool_use_id"]) if isinstance(block, dict) and block.get("type") == "tool_result" else None

    def _error_result(self, call_id: str) -> JsonObject:
        return {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT, "is_error": True}

    def _result_content(self, block: object) -> Iterable[object]:
        content = self._members(block).get("content", "")
        return content if isinstance(content, list) else [{"type": "text", "text": content or NO_RESULT}]

    # --- cache marks

    def _blocks_before(self, blocks: list[object]) -> list[object]:
        return blocks

    def _marked(self, block: object, part: pb.Part) -> object:
        if self._is_reasoning(block):
            self._report.drop("cache_control")
            return block
        if isinstance(block, Raw):
            block = msgspec.json.decode(block, type=dict[str, Raw])
        return {**block, "cache_control": encode_cache(part.cache_control)} if isinstance(block, dict) else block

    def _shorten_marks(self, marked: list[JsonObject]) -> None:
        """Shorten a lifetime that follows a shorter one: providers reject it, while other formats accept it."""
        is_short = False
        for block in marked:
            mark = block["cache_control"]
            is_long = isinstance(mark, dict) and mark.get("ttl") == "1h"
            if is_short and is_long:
                block["cache_control"] = {"type": "ephemeral"}
                self._report.drop("cache_control", "5m")
            is_short = is_short or not is_long

    def _limit_marks(self, marked: list[JsonObject]) -> None:
        """Remove all but the last four of `marked`, a provider's maximum. A mark on the request counts, too."""
        room = MAX_CACHE_MARKS - self._request.HasField("cache_control")
        removed = max(0, len(marked) - room)
        for block in marked[:removed]:
            del block["cache_control"]
            self._report.drop("cache_control")
        if self._request.source.format not in {"", "messages"}:
            self._shorten_marks(marked[removed:])


def _marked_blocks(blocks: Iterable[object]) -> list[JsonObject]:
    return [block for block in blocks if isinstance(block, dict) and "cache_control" in block]


def _has_type(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind
