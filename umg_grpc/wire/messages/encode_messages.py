"""Encoding of canonical messages as `system` and `messages` of a messages request to a provider."""

from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.added_turns import CONTINUE, marked
from umg_grpc.wire.core.client_lines import without_client_lines
from umg_grpc.wire.core.json import JsonObject, json_text
from umg_grpc.wire.core.tool_arguments import RAW_ARGUMENTS, call_arguments
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.core.unknown_role_messages import omits_turn, opaque_turn
from umg_grpc.wire.dropped_fields_report import Report, foreign, no_role, unknown_part, untranslatable
from umg_grpc.wire.messages.automatic_cache_marks import MAX_CACHE_MARKS
from umg_grpc.wire.messages.cache_control import encode_cache
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.content_blocks import encode_document, encode_image
from umg_grpc.wire.messages.provider_tool_names import CallIds
from umg_grpc.wire.messages.server_tools import encode_server_result
from umg_grpc.wire.messages.tool_calls import encode_call

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
        self._names = names
        self._report = report
        self._ids = CallIds()
        self._system: list[JsonObject] = []
        self._last_instructions: list[JsonObject] = []
        # role, blocks; an opaque turn has role "" and is its only block
        self._turns: list[tuple[str, list[object]]] = []
        self._server_call_ids: set[str] = set()  # ids of the provider's own calls that were encoded

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
        content_of = list if marked else _compact
        fields: JsonObject = {}
        if self._system:
            fields["system"] = _compact(list(self._system))
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
            if (block := _text(marked(part.text.text))) is not None and part.text.text.strip():
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
            self._ids.begin_message()
        blocks = self._turn_blocks("assistant" if assistant else "system" if system else "user")
        for position, part in _join_reasoning(message) if assistant else enumerate(message.parts):
            path = f"{at}.parts[{position}]"
            encoded = (
                self._assistant_part(part, path, f"toolu_{index}_{position}")
                if assistant
                else self._user_part(part, path, message)
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

    # --- parts

    def _assistant_part(self, part: pb.Part, at: str, own_id: str) -> object:
        """Return a part of an assistant's message as a block; None for a part that is left out and reported.
        Raise UmgError(UNTRANSLATABLE) for media. `at`: canonical path of the part. `own_id`: id for a tool call without
        one.
        """
        if part.HasField("state") and not (part.HasField("reasoning") and part.state.format == "messages"):
            self._report.drop("state")
        match part.WhichOneof("kind"):
            case _ if part.thought:
                self._report.drop("thought")
                return None
            case "reasoning":
                return self._encode_reasoning(part)
            case "tool_call":
                return self._call(part.tool_call, own_id)
            case "refusal":
                self._report.drop("refusal", "text")
                return _text(part.refusal.text)
            case "server_tool_call":
                return self._server_call(part.server_tool_call, at)
            case "server_tool_result":
                return self._server_result(part.server_tool_result)
            case "media":
                raise untranslatable(at, "an assistant's turn cannot hold it in this format")
            case "text" | "opaque" | "tool_result" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def _user_part(self, part: pb.Part, at: str, message: pb.Message) -> object:
        """Return a part of a user's message, or of a message with tool results, as a block; None for a part that is
        left out and reported.
        Raise UmgError(UNTRANSLATABLE) for a part that only other roles can have. `at`: canonical path of the part.
        """
        match part.WhichOneof("kind"):
            case "tool_result":
                return self._result(part.tool_result, at)
            case "media":
                return self._media(part.media, at)
            case "reasoning" | "server_tool_call" | "server_tool_result" as kind:
                self._report.drop(kind)
                return None
            case "tool_call" | "refusal":
                raise untranslatable(at, "only an assistant's turn can hold it")
            case "text" if message.role == pb.ROLE_TOOL:
                raise untranslatable(at, "only a user's turn can hold it")
            case "text" | "opaque" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def _text_or_opaque(self, part: pb.Part, at: str) -> object:
        match part.WhichOneof("kind"):
            case "text":
                return self._text_with_citations(part.text)
            case "opaque" if part.opaque.format == "messages":
                return json_text(part.opaque.json, f"{at}.opaque.json")
            case "opaque":
                raise foreign(part.opaque, at)
            case _:  # any other kind is not allowed here
                raise unknown_part(at)

    def _text_with_citations(self, text: pb.TextPart) -> JsonObject | None:
        """Return a text as a block with the citations that a provider of this format made, since it rejects others
        (they are reported); None for a blank text.
        """
        block = _text(text.text)
        if not text.citations or block is None:
            return block
        kept = [
            encoded
            for citation in text.citations
            if citation.web.encrypted_index or not citation.HasField("web")
            if (encoded := encode_citation(citation)) is not None
        ]
        if len(kept) < len(text.citations):
            self._report.drop("citations")
        if kept:
            block["citations"] = kept
        return block

    def _encode_reasoning(self, part: pb.Part) -> JsonObject | None:
        """Return reasoning that a provider of this format signed as a block; None for other reasoning, which is
        reported: providers reject it.
        """
        if part.state.format != "messages":
            self._report.drop("reasoning")
            return None
        if part.reasoning.redacted:
            return {"type": "redacted_thinking", "data": part.state.data}
        thoughts = "\n\n".join(part.reasoning.texts or part.reasoning.summaries)
        return {"type": "thinking", "thinking": thoughts, "signature": part.state.data}

    def _call(self, call: pb.ToolCall, own_id: str) -> JsonObject:
        arguments = call_arguments(call)
        if isinstance(arguments, dict) and RAW_ARGUMENTS in arguments:
            self._report.drop("arguments", RAW_ARGUMENTS)
        return encode_call(self._ids.of_call(call, own_id), self._names.of_call(call), arguments)

    def _result(self, result: pb.ToolResult, at: str) -> JsonObject:
        block: JsonObject = {"type": "tool_result", "tool_use_id": self._ids.of_result(result)}
        content = list[object]()
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            encoded = self._media(part.media, path) if part.HasField("media") else self._text_or_opaque(part, path)
            if encoded is not None:
                content.append(encoded)
            if part.HasField("cache_control"):
                block["cache_control"] = encode_cache(part.cache_control)  # providers reject marks inside a result
        if not result.parts and result.result_json:
            content.append({"type": "text", "text": result.result_json})
        if content:
            block["content"] = _compact(content)
        if result.HasField("is_error"):
            block["is_error"] = result.is_error
        return block

    def _server_call(self, call: pb.ServerToolCall, at: str) -> JsonObject | None:
        if call.format != "messages" or not call.input_json:
            self._report.drop("server_tool_call")
            return None
        self._server_call_ids.add(call.call_id)
        arguments = json_text(call.input_json, f"{at}.server_tool_call.input_json")
        return {"type": "server_tool_use", "id": call.call_id, "name": call.name, "input": arguments}

    def _server_result(self, result: pb.ServerToolResult) -> JsonObject | None:
        encoded = encode_server_result(result, result.call_id) if result.call_id in self._server_call_ids else None
        if encoded is None:
            self._report.drop("server_tool_result")
        return encoded

    def _media(self, media: pb.MediaPart, at: str) -> JsonObject:
        if media.detail not in ("", "auto"):
            self._report.drop("detail")
        if media.file_id and self._request.source.format not in {"", "messages"}:
            raise untranslatable(at, "a file of another provider's account cannot be read; send its bytes")
        if media.uri and not media.uri.startswith(("http://", "https://")):
            raise untranslatable(at, "this model's provider reads http(s) addresses only; send the bytes")
        encoded = encode_image(media) if media.kind == pb.MEDIA_KIND_IMAGE else encode_document(media, self._report, at)
        if encoded is None:
            kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
            form = media.mime_type or media.WhichOneof("source")
            raise untranslatable(at, f"this model's provider does not accept this {kind} ({form}); send another form")
        return encoded

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


def _join_reasoning(message: pb.Message) -> Iterator[tuple[int, pb.Part]]:
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


def _text(text: str) -> JsonObject | None:
    """Encode a text as a `text` block; return None for a blank text, which providers reject."""
    return {"type": "text", "text": text} if text.strip() else None


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


def _compact(blocks: list[object]) -> object:
    """Return the content of a message: a string if `blocks` is a single text block without further members, since every
    provider accepts that; else the blocks unchanged.
    """
    match blocks:
        case [{"type": "text", "text": text, **more}] if not more:
            return text
        case _:  # several blocks, or one with further members
            return blocks
