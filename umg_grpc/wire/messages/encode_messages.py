"""Encoding of canonical messages as `system` and `messages` of a messages request to a provider."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.added_turns import CONTINUE, marked
from umg_grpc.wire.core.client_lines import without_client_lines
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.core.unknown_role_messages import omits_turn, opaque_turn
from umg_grpc.wire.dropped_fields_report import Report, no_role, untranslatable
from umg_grpc.wire.messages.automatic_cache_marks import MAX_CACHE_MARKS
from umg_grpc.wire.messages.cache_control import encode_cache
from umg_grpc.wire.messages.encode_parts import PartEncoder, compact_content, encode_text

SYSTEM_ROLES = (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)
ALTERNATING = ("user", "assistant")  # roles whose turns pair calls with results; other turns may be between them

REASONING = ("thinking", "redacted_thinking")
"""Types of blocks with reasoning."""
BLANK_REASONING: JsonObject = {"type": "thinking", "thinking": "", "signature": ""}
"""Block in front of tool calls whose reasoning is missing, for providers that require some."""
NO_RESULT = "(no result)"
FILLER = "."  # text of a user's turn that is added because providers want one first; they reject blank text


class MessageEncoder:
    """Encoder of the messages of a canonical request as the members `system` and `messages`. One instance per request,
    since tool calls and their results are paired across messages.

    Providers require messages of the user and the assistant to alternate, and the results of all calls at the start of
    the next message. So consecutive messages of one role are merged, and a call without a result gets an error result.
    Blank texts are left out, because providers reject them.
    """

    def __init__(
        self, request: pb.GenerateRequest, names: ToolNames, report: Report, quirks: Quirks = NO_QUIRKS
    ) -> None:
        self._request = request
        self._quirks = quirks
        self._report = report
        self._parts = PartEncoder(request, names, report)
        self._system: list[JsonObject] = []
        self._last_instructions: list[JsonObject] = []
        # role, blocks; an opaque turn has role "" and is its only block
        self._turns: list[tuple[str, list[object]]] = []

    def encode(self, tools: list[object]) -> JsonObject:
        """Return the members `system` (if there is a system prompt) and `messages`.
        Remove cache marks beyond the four that a provider accepts, first from `tools`, the encoded tools of the
        request.
        """
        for index, part in enumerate(self._request.instructions):
            self._append_instruction(part, f"instructions[{index}]")
        for index, message in enumerate(self._request.messages):
            self._message(message, index)
        self._system += self._last_instructions
        self._answer_calls()
        self._begin_with_user()
        self._end_with_user()
        if self._quirks.reasoning_required:
            self._complete_reasoning()
        marked = _marked_blocks(block for _, blocks in self._turns for block in blocks)
        self._limit_marks([*_marked_blocks([*tools, *self._system]), *marked])
        # a mark moves on with the next request, in which its turn keeps its form
        content_of = list if marked else compact_content
        fields: JsonObject = {}
        if self._system:
            fields["system"] = compact_content(list(self._system))
        fields["messages"] = [
            {"role": role, "content": content_of(blocks)} if role else blocks[0] for role, blocks in self._turns
        ]
        return fields

    @property
    def lacks_reasoning(self) -> bool:
        """Whether the model continues its own text that does not begin with reasoning, or continues after the result of
        a tool that it called, and none of its messages since the user's question contains reasoning.
        """
        calls = False
        turns = [turn for turn in self._turns if turn[0] in ALTERNATING]
        if turns and turns[-1][0] == "assistant":
            first = turns[-1][1][0]
            return not (_has_type(first, "thinking") or _has_type(first, "redacted_thinking"))
        for (_, results), (role, blocks) in zip(turns[::-2], turns[-2::-2], strict=False):
            if role != "assistant" or not any(_has_type(block, "tool_result") for block in results):
                break
            if _has_type(blocks[0], "thinking") or _has_type(blocks[0], "redacted_thinking"):
                return False
            calls = True
        return calls

    def append_instruction(self, text: str) -> None:
        """Add a line at the end of the system prompt. Call it before `encode`."""
        self._last_instructions.append({"type": "text", "text": text})

    # --- the system prompt

    def _append_instruction(self, part: pb.Part, at: str) -> None:
        if not part.HasField("text"):
            raise untranslatable(at, "a system prompt is text in this format")
        text = part.text.text if self._system else without_client_lines(part.text.text, self._quirks, self._report)
        if not text.strip():
            return
        block: JsonObject = {"type": "text", "text": text}
        if part.HasField("cache_control"):
            block["cache_control"] = encode_cache(part.cache_control)
        self._system.append(block)

    def _keeps_place(self, message: pb.Message, index: int) -> bool:
        """Return whether instructions are a turn of their own: those of a caller of this format, and those between a
        turn of the user and the model's response to it, where newer models take them. `index`: of the message.
        """
        if self._quirks.system_place is None:
            return message.role == pb.ROLE_SYSTEM and self._request.source.format == "messages"
        if self._quirks.system_place == "first" or not self._turns or self._turns[-1][0] not in {"user", "system"}:
            return False
        later = (other.role for other in self._request.messages[index + 1 :])
        return next((role for role in later if role not in SYSTEM_ROLES), pb.ROLE_ASSISTANT) == pb.ROLE_ASSISTANT

    def _place_instructions(self, message: pb.Message, at: str) -> None:
        """Append instructions that are no turn of their own to the system prompt. After the first turn they become
        marked text of the user, so that the beginning of the conversation stays the same; for a model of unknown rules
        they go into the system prompt there too.
        """
        if not self._turns or self._quirks.system_place is None:
            if self._turns:
                self._report.drop("role", "system prompt")
            for position, part in enumerate(message.parts):
                self._append_instruction(part, f"{at}.parts[{position}]")
            return
        self._report.drop("role", "user")
        for position, part in enumerate(message.parts):
            if not part.HasField("text"):
                raise untranslatable(f"{at}.parts[{position}]", "instructions are text in this format")
            if (block := encode_text(marked(part.text.text))) is not None and part.text.text.strip():
                self._turn_blocks("user").append(self._marked(block, part) if part.HasField("cache_control") else block)

    # --- turns

    def _message(self, message: pb.Message, index: int) -> None:
        at = f"messages[{index}]"
        for name in ("name", "phase"):
            if getattr(message, name):
                self._report.drop(name)
        if (kept := opaque_turn(message, "messages", at)) is not None:
            self._turns.append(("", [kept]))
            return
        if omits_turn(message, "messages", self._report):
            return
        if message.role in SYSTEM_ROLES and not self._keeps_place(message, index):
            self._place_instructions(message, at)
            return
        assistant = message.role == pb.ROLE_ASSISTANT
        if not message.role and not any(part.HasField("opaque") for part in message.parts):
            raise no_role(at)
        system = message.role in SYSTEM_ROLES
        if assistant:
            self._parts.begin_message()
        blocks = self._turn_blocks("assistant" if assistant else "system" if system else "user")
        for position, part in join_reasoning(message) if assistant else enumerate(message.parts):
            path = f"{at}.parts[{position}]"
            encoded = (
                self._parts.encode_assistant_part(part, path, f"toolu_{index}_{position}")
                if assistant
                else self._parts.encode_user_part(part, path, message)
            )
            if encoded is None:
                if part.HasField("cache_control"):
                    self._mark_before(part, blocks)
                continue
            if part.HasField("cache_control"):
                encoded = self._marked(encoded, part)
            blocks.append(encoded)
        if not blocks:
            self._turns.pop()

    def _turn_blocks(self, role: str) -> list[object]:
        """Return the list to which content blocks of a role are appended: the content of the last encoded message if it
        has this role, else that of a new message.
        """
        if not self._turns or self._turns[-1][0] != role:
            self._turns.append((role, []))
        return self._turns[-1][1]

    def _answer_calls(self) -> None:
        """Move the results of tool calls to the beginning of their message, in the order of the calls in the message
        before. Add an error result for a call without one; turn a result without a call into text.
        """
        previous: list[object] = []
        for role, blocks in self._turns:
            if role not in ALTERNATING:
                continue
            calls = [block["id"] for block in previous if isinstance(block, dict) and block.get("type") == "tool_use"]
            previous = blocks if role == "assistant" else []
            if role == "user" and (calls or any(_has_type(block, "tool_result") for block in blocks)):
                blocks[:] = self._pair_results(calls, blocks)

    def _pair_results(self, calls: list[object], blocks: list[object]) -> list[object]:
        results: dict[object, object] = dict.fromkeys(calls)
        rest = list[object]()
        for block in blocks:
            if not isinstance(block, dict) or not _has_type(block, "tool_result"):
                rest.append(block)
            elif block["tool_use_id"] in results:
                results[block["tool_use_id"]] = block
            else:
                self._report.drop("tool_result", "text")
                rest += _result_blocks(block)
        for call_id, result in results.items():
            if result is None:
                self._report.drop("tool_call", "no result")
                stub = {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT, "is_error": True}
                results[call_id] = stub
        return [*results.values(), *rest]

    def _begin_with_user(self) -> None:
        if not self._turns and self._request.thread.previous_response_id:
            return  # the thread has the turns
        if not self._turns:
            if not self._system:
                raise untranslatable("messages", "all of them are blank; send some text")
            self._report.drop("role", "user")  # only instructions: providers want a question
            self._turns.append(("user", [dict(block) for block in self._system]))
            self._system.clear()
        elif self._turns[0][0] == "assistant":
            self._report.drop("messages", "a user's turn first")
            self._turns.insert(0, ("user", [{"type": "text", "text": FILLER}]))

    def _end_with_user(self) -> None:
        """Add a turn of the user behind an assistant's last turn that the model does not continue; cut white space from
        the end of one that it continues, since the provider refuses it.
        """
        if not self._turns or self._turns[-1][0] != "assistant":
            return
        if self._quirks.prefill is not False:
            last = self._turns[-1][1][-1]
            if isinstance(last, dict) and (text := last.get("text")) and text != text.rstrip():
                self._report.drop("messages", "no white space last")
                last["text"] = text.rstrip()
            return
        if not any(_has_type(block, "tool_use") for block in self._turns[-1][1]):
            self._report.drop("messages", "a user's turn last")
            self._turns.append(("user", [{"type": "text", "text": CONTINUE}]))

    def _complete_reasoning(self) -> None:
        """Add blank reasoning in front of the calls of each turn without any."""
        for role, blocks in self._turns:
            has_calls = role == "assistant" and any(_has_type(block, "tool_use") for block in blocks)
            if has_calls and not any(_has_type(block, kind) for block in blocks for kind in REASONING):
                blocks.insert(0, dict(BLANK_REASONING))

    # --- cache marks

    def _marked(self, block: object, part: pb.Part) -> object:
        if isinstance(block, dict) and block.get("type") in {"thinking", "redacted_thinking"}:
            self._report.drop("cache_control")
            return block
        if isinstance(block, Raw):
            block = msgspec.json.decode(block, type=dict[str, Raw])
        return {**block, "cache_control": encode_cache(part.cache_control)} if isinstance(block, dict) else block

    def _mark_before(self, part: pb.Part, blocks: list[object]) -> None:
        """Set the cache mark of `part`, which itself is left out, on the last of `blocks`; report the mark if there is
        no block.
        """
        if blocks:
            blocks[-1] = self._marked(blocks[-1], part)
        else:
            self._report.drop("cache_control")

    def _shorten_marks(self, marked: list[JsonObject]) -> None:
        """Shorten a lifetime that follows a shorter one, in place: providers refuse it, and callers of formats without
        this rule do not have it in mind.
        """
        is_short = False
        for block in marked:
            mark = block["cache_control"]
            is_long = isinstance(mark, dict) and mark.get("ttl") == "1h"
            if is_short and is_long:
                block["cache_control"] = {"type": "ephemeral"}
                self._report.drop("cache_control", "5m")
            is_short = is_short or not is_long

    def _limit_marks(self, marked: list[JsonObject]) -> None:
        """Remove all but the last four cache marks, the number that a provider accepts, from `marked`: all blocks and
        tools with a mark, in order. A mark on the whole request counts as one of the four.
        """
        room = MAX_CACHE_MARKS - self._request.HasField("cache_control")
        removed = max(0, len(marked) - room)
        for block in marked[:removed]:
            del block["cache_control"]
            self._report.drop("cache_control")
        if self._request.source.format not in {"", "messages"}:
            self._shorten_marks(marked[removed:])


def join_reasoning(message: pb.Message) -> Iterator[tuple[int, pb.Part]]:
    """Yield (index, part) for the parts of a message, with consecutive reasoning parts joined if only the last is
    signed.

    Callers of other formats send reasoning back in the pieces that were streamed to them, of which only the last has
    the signature, while the signature covers all of them.
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


def _result_blocks(block: JsonObject) -> list[object]:
    """Return the content of an encoded `tool_result` block as blocks that can be part of the message itself, for a
    result whose tool call is missing.
    """
    content = block.get("content", "")
    return list(content) if isinstance(content, list) else [{"type": "text", "text": content or NO_RESULT}]


def _marked_blocks(blocks: Iterable[object]) -> list[JsonObject]:
    return [block for block in blocks if isinstance(block, dict) and "cache_control" in block]


def _has_type(block: object, kind: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind
