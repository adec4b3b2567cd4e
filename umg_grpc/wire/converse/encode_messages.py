"""Encoding of canonical messages as `system` and `messages` of Converse requests."""

from collections.abc import Iterator

from umg_grpc.knowledge.bedrock_models import BedrockModel
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.cache_points import Block
from umg_grpc.wire.converse.encode_parts import ConversePartEncoder
from umg_grpc.wire.core.alternating_turn_encoding import ASSISTANT_ROLE, USER_ROLE, AlternatingTurns, Turn
from umg_grpc.wire.core.inserted_turn_texts import ACKNOWLEDGED_TEXT, FILLER_TEXT, NO_RESULT
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report

REASONING_BLOCK, CALL_BLOCK, RESULT_BLOCK, DOCUMENT_BLOCK, TEXT_BLOCK = (
    "reasoningContent",
    "toolUse",
    "toolResult",
    "document",
    "text",
)
"""Members of blocks."""


class MessageEncoder(AlternatingTurns[Block]):
    """Encoder of the messages of a canonical request. The service requires a text in each turn that has a document."""

    format = "converse"
    id_prefix = "tooluse"

    def __init__(
        self, request: pb.GenerateRequest, names: ToolNames, model: BedrockModel, report: Report, quirks: Quirks
    ) -> None:
        parts = ConversePartEncoder(names, model, report, media_in_results=quirks.result_media is not False)
        super().__init__(request, parts, report, quirks)
        self._continues = model.continues if quirks.prefill is None else quirks.prefill

    def encode(self) -> None:
        """Fill `system` and `turns`. Raise UmgError(UNTRANSLATABLE) for content that the format cannot express."""
        self._encode_messages()
        self._order_turns()
        for turn in self.turns:
            if _have(turn.blocks, DOCUMENT_BLOCK) and not _have(turn.blocks, TEXT_BLOCK):
                self._report.drop("messages", "a text beside a document")
                turn.blocks.append(Block({TEXT_BLOCK: FILLER_TEXT}))

    def append_instruction(self, text: str) -> None:
        """Add a line at the end of the system prompt. The caller does so after `encode`."""
        self.system.append(Block({TEXT_BLOCK: text}))

    @property
    def blocks(self) -> list[Block]:
        return [block for turn in self.turns for block in turn.blocks]

    @property
    def has_tools(self) -> bool:
        return _have(self.blocks, CALL_BLOCK) or _have(self.blocks, RESULT_BLOCK)

    def _answer_calls(self) -> None:
        super()._answer_calls()
        if self._quirks.user_after_tool is False:
            self._separate_results()

    def _separate_results(self) -> None:
        """Move the other blocks of turns with tool results into a separate user turn, after a turn of the model."""
        turns = list[Turn[Block]]()
        for turn in self.turns:
            results = [block for block in turn.blocks if block.has(RESULT_BLOCK)]
            rest = [block for block in turn.blocks if not block.has(RESULT_BLOCK)]
            turns.append(turn)
            if results and rest:
                self._report.drop("messages", "an assistant's turn between")
                turn.blocks = results
                turns += [Turn(ASSISTANT_ROLE, [Block({TEXT_BLOCK: ACKNOWLEDGED_TEXT})]), Turn(USER_ROLE, rest)]
        self.turns = turns

    def _end_with_user(self, last: Turn[Block]) -> None:
        if _have(last.blocks, CALL_BLOCK):
            self.turns.append(Turn(USER_ROLE, []))
            self._answer_calls()
        elif self._continues:
            self._strip_end(last)
        else:
            self._append_continue()

    # --- blocks

    def _blocks_before(self, blocks: list[Block]) -> list[Block]:
        return blocks or (self.turns[-2].blocks if len(self.turns) > 1 else self.system)

    def _marked(self, block: Block, part: pb.Part) -> Block:
        block.take_mark(part, self._report)
        return block

    def _members(self, block: Block) -> JsonObject:
        return block.fields

    def _is_reasoning(self, block: Block) -> bool:
        return block.has(REASONING_BLOCK)

    def _call_id(self, block: Block) -> str | None:
        return _id_of(block, CALL_BLOCK)

    def _result_id(self, block: Block) -> str | None:
        return _id_of(block, RESULT_BLOCK)

    def _error_result(self, call_id: str) -> Block:
        return Block({RESULT_BLOCK: {"toolUseId": call_id, "content": [{TEXT_BLOCK: NO_RESULT}], "status": "error"}})

    def _result_content(self, block: Block) -> Iterator[Block]:
        fields = block.fields[RESULT_BLOCK]
        content = fields["content"] if isinstance(fields, dict) else []
        for entry in content if isinstance(content, list) else []:
            yield Block({TEXT_BLOCK: bytes(entry["json"]).decode()} if "json" in entry else dict(entry))


def _have(blocks: list[Block], member: str) -> bool:
    return any(block.has(member) for block in blocks)


def _id_of(block: Block, member: str) -> str | None:
    fields = block.fields.get(member)
    return str(fields["toolUseId"]) if isinstance(fields, dict) else None
