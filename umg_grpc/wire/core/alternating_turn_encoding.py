"""Encoding of canonical messages as turns of content blocks, for providers with rules about the order of turns."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import ClassVar, Generic, TypeVar

from msgspec import Struct

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.agent_prompt_lines import without_client_lines
from umg_grpc.wire.core.content_block_encoder import PartEncoder
from umg_grpc.wire.core.inserted_turn_texts import CONTINUE_TEXT, FILLER_TEXT, marked
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.unknown_role_messages import omits_turn
from umg_grpc.wire.dropped_fields_report import Report, no_role, untranslatable

BlockT = TypeVar("BlockT")

USER_ROLE, ASSISTANT_ROLE, SYSTEM_ROLE = "user", "assistant", "system"
ALTERNATING_ROLES = (USER_ROLE, ASSISTANT_ROLE)
"""Roles whose turns pair calls with results. Turns of other roles may occur between them."""
SYSTEM_ROLES = (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)


class Turn(Struct, Generic[BlockT]):
    """Turn of the conversation. A turn that only this format has has the role "" and one block, its raw JSON."""

    role: str
    blocks: list[BlockT]


class AlternatingTurns(ABC, Generic[BlockT]):
    """Encoder of the messages of a canonical request as a system prompt and turns. One instance per request, since tool
    calls and their results are paired across messages.

    Providers require that turns of the user and the assistant alternate, that the user's is first, and that the results
    of all calls of a turn are at the start of the next one. So consecutive messages of one role are merged, and a call
    without a result gets an error result. Blank texts are left out, because providers reject them.
    """

    format: ClassVar[str]
    id_prefix: ClassVar[str]
    """Beginning of the ids that are made for calls without an id."""

    def __init__(self, request: pb.GenerateRequest, parts: PartEncoder[BlockT], report: Report, quirks: Quirks) -> None:
        self._request = request
        self._parts = parts
        self._report = report
        self._quirks = quirks
        self.system: list[BlockT] = []
        self.turns: list[Turn[BlockT]] = []

    @property
    def lacks_reasoning(self) -> bool:
        """Whether required reasoning is missing. It is required if the model continues its own text that does not begin
        with reasoning, or a tool result. It is missing if no turn since the user's question begins with reasoning.
        """
        called = False
        turns = [turn for turn in self.turns if turn.role in ALTERNATING_ROLES]
        if turns and turns[-1].role == ASSISTANT_ROLE:
            return not self._is_reasoning(turns[-1].blocks[0])
        for results, calls in zip(turns[::-2], turns[-2::-2], strict=False):
            if calls.role != ASSISTANT_ROLE or not self._has_results(results.blocks):
                break
            if self._is_reasoning(calls.blocks[0]):
                return False
            called = True
        return called

    def _encode_messages(self) -> None:
        for index, part in enumerate(self._request.instructions):
            self._append_instruction(part, f"instructions[{index}]")
        for index, message in enumerate(self._request.messages):
            self._message(message, index)

    def _order_turns(self) -> None:
        self._answer_calls()
        self._begin_with_user()
        if self.turns and self.turns[-1].role == ASSISTANT_ROLE:
            self._end_with_user(self.turns[-1])

    # --- the system prompt

    def _append_instruction(self, part: pb.Part, at: str) -> None:
        if not part.HasField("text"):
            raise untranslatable(at, "a system prompt is text in this format")
        text = part.text.text if self.system else without_client_lines(part.text.text, self._quirks, self._report)
        self._append_text(self.system, text, part)

    def _place_instructions(self, message: pb.Message, at: str) -> None:
        """Append instructions that have no turn of their own to the system prompt. Instructions after the first turn
        become marked user text instead, so that the beginning of the conversation stays the same.
        """
        if not self.turns or self._extends_system:
            if self.turns:
                self._report.drop("role", "system prompt")
            for position, part in enumerate(message.parts):
                self._append_instruction(part, f"{at}.parts[{position}]")
            return
        self._report.drop("role", USER_ROLE)
        for position, part in enumerate(message.parts):
            if not part.HasField("text"):
                raise untranslatable(f"{at}.parts[{position}]", "instructions are text in this format")
            if part.text.text.strip():
                self._append_text(self._turn_blocks(USER_ROLE), marked(part.text.text), part)

    def _append_text(self, blocks: list[BlockT], text: str, part: pb.Part) -> None:
        if (block := self._parts.encode_text(text)) is not None:
            blocks.append(self._marked(block, part) if part.HasField("cache_control") else block)

    # --- turns

    def _message(self, message: pb.Message, index: int) -> None:
        at, role = f"messages[{index}]", message.role
        for name in ("name", "phase"):
            if getattr(message, name):
                self._report.drop(name)
        if not role:
            if (turn := self._own_turn(message, at)) is not None:
                self.turns.append(turn)
                return
            if omits_turn(message, self.format, self._report):
                return
            if not any(part.HasField("opaque") for part in message.parts):
                raise no_role(at)
        elif role in SYSTEM_ROLES and not self._keeps_place(message, index):
            self._place_instructions(message, at)
            return
        self._append_turn(message, at, index)

    def _append_turn(self, message: pb.Message, at: str, index: int) -> None:
        role = message.role
        is_assistant = role == pb.ROLE_ASSISTANT
        if is_assistant:
            self._parts.begin_message()
        blocks = self._turn_blocks(
            ASSISTANT_ROLE if is_assistant else SYSTEM_ROLE if role in SYSTEM_ROLES else USER_ROLE
        )
        for position, part in join_reasoning(message) if is_assistant else enumerate(message.parts):
            path = f"{at}.parts[{position}]"
            block = (
                self._parts.encode_assistant_part(part, path, f"{self.id_prefix}_{index}_{position}")
                if is_assistant
                else self._parts.encode_user_part(part, path, message)
            )
            if part.HasField("cache_control"):
                block = self._with_mark(block, part, blocks)
            if block is not None:
                blocks.append(block)
                if self._parts.shown:
                    blocks += self._parts.shown
                    self._parts.shown = []
        if not blocks:
            self.turns.pop()

    def _with_mark(self, block: BlockT | None, part: pb.Part, blocks: list[BlockT]) -> BlockT | None:
        """Return an encoded part with its cache mark. The mark of a part without a block moves to the block before."""
        if block is not None:
            return self._marked(block, part)
        if before := self._blocks_before(blocks):
            before[-1] = self._marked(before[-1], part)
        else:
            self._report.drop("cache_control")
        return None

    def _turn_blocks(self, role: str) -> list[BlockT]:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role, []))
        return self.turns[-1].blocks

    # --- the rules

    def _answer_calls(self) -> None:
        """Move the results of tool calls to the beginning of their turn, in the order of the preceding calls."""
        previous: list[str] = []
        for turn in self.turns:
            if turn.role == ASSISTANT_ROLE:
                previous = [call_id for block in turn.blocks if (call_id := self._call_id(block)) is not None]
            elif turn.role == USER_ROLE:
                calls, previous = previous, []
                if calls or self._has_results(turn.blocks):
                    turn.blocks = self._pair_results(calls, turn.blocks)

    def _pair_results(self, calls: list[str], blocks: list[BlockT]) -> list[BlockT]:
        results: dict[str, BlockT | None] = dict.fromkeys(calls)
        rest = list[BlockT]()
        for block in blocks:
            if (call_id := self._result_id(block)) is None:
                rest.append(block)
            elif call_id in results:
                results[call_id] = block
            else:
                self._report.drop("tool_result", "text")
                rest += self._result_content(block)
        if None in results.values():
            self._report.drop("tool_call", "no result")
        paired = [self._error_result(call_id) if block is None else block for call_id, block in results.items()]
        return [*paired, *rest]

    def _has_results(self, blocks: Iterable[BlockT]) -> bool:
        return any(self._result_id(block) is not None for block in blocks)

    def _begin_with_user(self) -> None:
        if self.turns:
            if self.turns[0].role == ASSISTANT_ROLE:
                self._report.drop("messages", "a user's turn first")
                self.turns.insert(0, Turn(USER_ROLE, [self._parts.text_block(FILLER_TEXT)]))
        elif not self._request.thread.previous_response_id:  # a thread has the turns
            if not self.system:
                raise untranslatable("messages", "all of them are blank; send some text")
            self._report.drop("role", USER_ROLE)  # only instructions: providers want a question
            self.turns.append(Turn(USER_ROLE, self.system))
            self.system = []

    def _append_continue(self) -> None:
        self._report.drop("messages", "a user's turn last")
        self._turn_blocks(USER_ROLE).append(self._parts.text_block(CONTINUE_TEXT))

    def _strip_end(self, last: Turn[BlockT]) -> None:
        """Cut white space from the end of the assistant's turn that the model continues, since providers refuse it."""
        members = self._members(last.blocks[-1])
        if isinstance(text := members.get("text"), str) and text != text.rstrip():
            self._report.drop("messages", "no white space last")
            members["text"] = text.rstrip()

    # --- the blocks and the rules of a format

    _extends_system = False
    """Whether instructions after the first turn go into the system prompt instead of becoming user text."""

    def _own_turn(self, message: pb.Message, at: str) -> Turn[BlockT] | None:
        return None

    def _keeps_place(self, message: pb.Message, index: int) -> bool:
        return False

    @abstractmethod
    def _blocks_before(self, blocks: list[BlockT]) -> list[BlockT]:
        """Return the blocks of the last turn. The last of them takes the cache mark of a part that is left out."""

    @abstractmethod
    def _end_with_user(self, last: Turn[BlockT]) -> None:
        """Change the end of a conversation whose last turn is the assistant's."""

    @abstractmethod
    def _marked(self, block: BlockT, part: pb.Part) -> BlockT:
        """Return a block with the cache mark of a part; report the mark if the block must not have any."""

    @abstractmethod
    def _members(self, block: BlockT) -> JsonObject:
        """Return the members of a block; {} for raw JSON."""

    @abstractmethod
    def _is_reasoning(self, block: BlockT) -> bool: ...

    @abstractmethod
    def _call_id(self, block: BlockT) -> str | None:
        """Return the id of the block's tool call; None for any other block."""

    @abstractmethod
    def _result_id(self, block: BlockT) -> str | None:
        """Return the id of the call to which a tool result belongs; None for any other block."""

    @abstractmethod
    def _error_result(self, call_id: str) -> BlockT:
        """Return an error result for a call that has no result."""

    @abstractmethod
    def _result_content(self, block: BlockT) -> Iterable[BlockT]:
        """Return the content of a tool result, whose call is missing, as blocks of the user's turn."""


def join_reasoning(message: pb.Message) -> Iterator[tuple[int, pb.Part]]:
    """Yield (index, part) for the parts of a message. Consecutive reasoning parts are joined if only the last is
    signed.

    Callers of other formats send reasoning back in its streamed pieces. The signature of all pieces is in the last one.
    """
    pieces = list[tuple[int, pb.Part]]()
    for position, part in enumerate(message.parts):
        if part.HasField("reasoning") and not part.HasField("state") and not part.HasField("cache_control"):
            pieces.append((position, part))
            continue
        if pieces and part.HasField("reasoning") and part.state.format == "messages" and not part.reasoning.redacted:
            whole = pb.Part()
            whole.CopyFrom(part)
            texts = [text for _, piece in [*pieces, (position, part)] for text in piece.reasoning.texts]
            whole.reasoning.texts[:] = ["".join(texts)]
            yield position, whole
        else:
            yield from pieces
            yield position, part
        pieces = []
    yield from pieces
