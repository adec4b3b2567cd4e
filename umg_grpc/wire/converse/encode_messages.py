"""Encoding of canonical messages as `system` and `messages` of Converse requests."""

from collections.abc import Iterator

from umg_grpc.knowledge.bedrock_models import BedrockModel
from umg_grpc.knowledge.quirks import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.cache_points import Block
from umg_grpc.wire.converse.encode_parts import FILLER, NO_RESULT, PartEncoder, encode_text
from umg_grpc.wire.core.added_turns import ACKNOWLEDGED, CONTINUE, marked
from umg_grpc.wire.core.client_lines import without_client_lines
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.core.unknown_role_messages import omits_turn
from umg_grpc.wire.dropped_fields_report import Report, no_role, untranslatable
from umg_grpc.wire.messages.encode_messages import SYSTEM_ROLES, join_reasoning

USER, ASSISTANT = "user", "assistant"
REASONING, CALL, RESULT, DOCUMENT, TEXT = "reasoningContent", "toolUse", "toolResult", "document", "text"
"""Members of blocks."""


class Turn:
    """Turn of the conversation: its role and its blocks."""

    def __init__(self, role: str, *blocks: Block) -> None:
        self.role = role
        self.blocks = list(blocks)

    def has(self, member: str) -> bool:
        """Return whether it has a block of this kind."""
        return any(block.has(member) for block in self.blocks)


class MessageEncoder:
    """Encoder of the messages of a canonical request. One instance per request, since tool calls and their results are
    paired across messages.

    The service requires turns of the user and the model to alternate, the user's to be the first, the results of all
    calls of a turn in the next one, and a text beside a document. Blank texts are left out, because it refuses them.
    """

    def __init__(
        self, request: pb.GenerateRequest, names: ToolNames, model: BedrockModel, report: Report, quirks: Quirks
    ) -> None:
        self._request = request
        self._model = model
        self._report = report
        self._quirks = quirks
        self._parts = PartEncoder(names, model, report, media_in_results=quirks.result_media is not False)
        self.system: list[Block] = []
        self.turns: list[Turn] = []

    def encode(self) -> None:
        """Fill `system` and `turns`. Raise UmgError(UNTRANSLATABLE) for content that the format cannot express."""
        for index, part in enumerate(self._request.instructions):
            self._append_instruction(part, f"instructions[{index}]")
        for index, message in enumerate(self._request.messages):
            self._message(message, index)
        self._answer_calls()
        if self._quirks.user_after_tool is False:
            self._separate_results()
        self._begin_with_user()
        self._end_with_user()
        for turn in self.turns:
            if turn.has(DOCUMENT) and not turn.has(TEXT):
                self._report.drop("messages", "a text beside a document")
                turn.blocks.append(Block({TEXT: FILLER}))

    def append_instruction(self, text: str) -> None:
        """Add a line at the end of the system prompt. Call it after `encode`."""
        self.system.append(Block({TEXT: text}))

    @property
    def blocks(self) -> list[Block]:
        """All blocks of all turns, in order."""
        return [block for turn in self.turns for block in turn.blocks]

    @property
    def has_tools(self) -> bool:
        """Whether the conversation has tool calls or results."""
        return any(turn.has(CALL) or turn.has(RESULT) for turn in self.turns)

    @property
    def lacks_reasoning(self) -> bool:
        """Whether the model continues its own text, or after the result of a tool that it called, and its turns since
        the user's question do not begin with reasoning.
        """
        if self.turns[-1].role == ASSISTANT:
            return not self.turns[-1].blocks[0].has(REASONING)
        called = False
        for results, calls in zip(self.turns[::-2], self.turns[-2::-2], strict=False):
            if not results.has(RESULT):
                break
            if calls.blocks[0].has(REASONING):
                return False
            called = True
        return called

    # --- the system prompt

    def _append_instruction(self, part: pb.Part, at: str) -> None:
        if not part.HasField("text"):
            raise untranslatable(at, "a system prompt is text in this format")
        text = part.text.text if self.system else without_client_lines(part.text.text, self._quirks, self._report)
        if (block := encode_text(text)) is not None:
            block.take_mark(part, self._report)
            self.system.append(block)

    def _place_instructions(self, message: pb.Message, at: str) -> None:
        """Append instructions to the system prompt; those after the first turn become marked text of the user, so that
        the beginning of the conversation stays the same.
        """
        if not self.turns:
            for position, part in enumerate(message.parts):
                self._append_instruction(part, f"{at}.parts[{position}]")
            return
        self._report.drop("role", USER)
        for position, part in enumerate(message.parts):
            if not part.HasField("text"):
                raise untranslatable(f"{at}.parts[{position}]", "instructions are text in this format")
            if part.text.text.strip() and (block := encode_text(marked(part.text.text))) is not None:
                block.take_mark(part, self._report)
                self._blocks_of(USER).append(block)

    # --- turns

    def _message(self, message: pb.Message, index: int) -> None:
        at = f"messages[{index}]"
        for name in ("name", "phase"):
            if getattr(message, name):
                self._report.drop(name)
        if omits_turn(message, "converse", self._report):
            return
        if message.role in SYSTEM_ROLES:
            self._place_instructions(message, at)
            return
        if not message.role and not any(part.HasField("opaque") for part in message.parts):
            raise no_role(at)
        is_assistant = message.role == pb.ROLE_ASSISTANT
        if is_assistant:
            self._parts.begin_message()
        for position, part in join_reasoning(message) if is_assistant else enumerate(message.parts):
            path = f"{at}.parts[{position}]"
            block = (
                self._parts.encode_assistant_part(part, path, f"tooluse_{index}_{position}")
                if is_assistant
                else self._parts.encode_user_part(part, path, message)
            )
            if block is not None:
                block.take_mark(part, self._report)
                self._blocks_of(ASSISTANT if is_assistant else USER).extend([block, *self._parts.take_shown()])
            elif part.HasField("cache_control"):
                self._mark_before(part)

    def _blocks_of(self, role: str) -> list[Block]:
        """Return the list to which blocks of a role are appended: that of the last turn if it has this role, else that
        of a new one.
        """
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role))
        return self.turns[-1].blocks

    def _mark_before(self, part: pb.Part) -> None:
        """Set the cache mark of `part`, which is left out, on the last block; report the mark if there is none."""
        blocks = self.turns[-1].blocks if self.turns else self.system
        if blocks:
            blocks[-1].take_mark(part, self._report)
        else:
            self._report.drop("cache_control")

    def _answer_calls(self) -> None:
        """Move the results of tool calls to the beginning of their turn, in the order of the calls in the turn before.
        Add an error result for a call without one; turn a result without a call into text.
        """
        previous: list[str] = []
        for turn in self.turns:
            calls, previous = previous, []
            if turn.role == ASSISTANT:
                previous = [_id_of(block, CALL) for block in turn.blocks if block.has(CALL)]
            elif calls or turn.has(RESULT):
                turn.blocks[:] = self._pair_results(calls, turn.blocks)

    def _pair_results(self, calls: list[str], blocks: list[Block]) -> list[Block]:
        results: dict[str, Block | None] = dict.fromkeys(calls)
        rest = list[Block]()
        for block in blocks:
            if not block.has(RESULT):
                rest.append(block)
            elif (call_id := _id_of(block, RESULT)) in results:
                results[call_id] = block
            else:
                self._report.drop("tool_result", "text")
                rest += _as_user_blocks(block)
        paired = list[Block]()
        for call_id, result in results.items():
            if result is not None:
                paired.append(result)
                continue
            self._report.drop("tool_call", "no result")
            stub: JsonObject = {"toolUseId": call_id, "content": [{TEXT: NO_RESULT}], "status": "error"}
            paired.append(Block({RESULT: stub}))
        return [*paired, *rest]

    def _separate_results(self) -> None:
        """Move the other blocks of turns with tool results to a turn of their own, behind one of the model."""
        turns = list[Turn]()
        for turn in self.turns:
            results = [block for block in turn.blocks if block.has(RESULT)]
            rest = [block for block in turn.blocks if not block.has(RESULT)]
            turns.append(turn)
            if results and rest:
                self._report.drop("messages", "an assistant's turn between")
                turn.blocks[:] = results
                turns += [Turn(ASSISTANT, Block({TEXT: ACKNOWLEDGED})), Turn(USER, *rest)]
        self.turns = turns

    def _begin_with_user(self) -> None:
        if not self.turns:
            if not self.system:
                raise untranslatable("messages", "all of them are blank; send some text")
            self._report.drop("role", USER)  # only instructions: the service wants a question
            self._blocks_of(USER).extend(self.system)
            self.system = []
        elif self.turns[0].role == ASSISTANT:
            self._report.drop("messages", "a user's turn first")
            self.turns.insert(0, Turn(USER, Block({TEXT: FILLER})))

    def _end_with_user(self) -> None:
        """Add a turn of the user behind a last turn of the model that it does not continue; cut white space from the
        end of one that it continues, since the service refuses it.
        """
        last = self.turns[-1]
        if last.role != ASSISTANT:
            return
        continues = self._model.continues if self._quirks.prefill is None else self._quirks.prefill
        if last.has(CALL):
            self.turns.append(Turn(USER))
            self._answer_calls()
        elif not continues:
            self._report.drop("messages", "a user's turn last")
            self._blocks_of(USER).append(Block({TEXT: CONTINUE}))
        elif isinstance(text := last.blocks[-1].fields.get(TEXT), str) and text != text.rstrip():
            self._report.drop("messages", "no white space last")
            last.blocks[-1].fields[TEXT] = text.rstrip()


def _id_of(block: Block, member: str) -> str:
    fields = block.fields[member]
    return str(fields["toolUseId"]) if isinstance(fields, dict) else ""


def _as_user_blocks(block: Block) -> Iterator[Block]:
    """Yield the content of a tool result as blocks of the user's turn, for a result whose call is missing."""
    fields = block.fields[RESULT]
    content = fields["content"] if isinstance(fields, dict) else []
    for entry in content if isinstance(content, list) else []:
        yield Block({TEXT: bytes(entry["json"]).decode()} if "json" in entry else dict(entry))
