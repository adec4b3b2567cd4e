"""Encoding of canonical messages as the `messages` of a chat request to a provider."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.decode_messages import ROLE_NAMES
from umg_grpc.wire.chat.encode_parts import PartEncoder, without_empty
from umg_grpc.wire.chat.provider_reasoning_members import State, from_canonical, joined, put, text_member
from umg_grpc.wire.chat.provider_tool_names import nine_character_id, provider_id, tool_names
from umg_grpc.wire.chat.relayed_cache_marks import add_marks, marks_end
from umg_grpc.wire.chat.thought_signatures import encode_signature, is_signed
from umg_grpc.wire.chat.tool_calls import encode_call
from umg_grpc.wire.core.agent_prompt_lines import cut_first_turn, without_client_lines
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.prompt_cache_breakpoints import (
    RELAYED_MEMBER,
    can_end_prefix,
    has_marks,
    limit_breakpoints,
    with_breakpoint,
)
from umg_grpc.wire.core.reasoning_state_conversion import NO_SIGNATURE, is_placeholder
from umg_grpc.wire.core.tool_name_conversion import OpenCalls
from umg_grpc.wire.core.unknown_role_messages import omits_turn, opaque_turn
from umg_grpc.wire.dropped_fields_report import NOTHING_LEFT, Report, foreign, no_role, untranslatable

RESULT_IN_NEXT_MESSAGE = "The result is shown in the next message."
NO_RESULT = "No result."
BETWEEN_TEXTS = "\n\n"


class _Turn(NamedTuple):
    """Canonical message without its tool results: the message, its index, and (canonical path, part) of other parts."""

    message: pb.Message
    message_index: int
    parts: list[tuple[pb.Part, str]]


class MessageEncoder:
    """Encoder of one request's messages as chat messages, since tool calls and results are paired across messages."""

    def __init__(self, request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> None:
        self._request = request
        self._report = report
        self._quirks = quirks
        self._marks_end = marks_end(request, quirks)
        # marks move on with each request, in which a turn keeps its form
        self._keeps_parts = quirks.breakpoints is not None and (self._marks_end or has_marks(request))
        self._marks_results = self._keeps_parts and quirks.breakpoints == RELAYED_MEMBER
        self._takes_reasoning = quirks.reasoning_content is not False
        self._signatures = quirks.signatures
        self._takes_custom = quirks.custom_tools is not False
        self._sent_id = nine_character_id if quirks.call_ids == "nine" else provider_id
        self._part_encoder = PartEncoder(
            request, report, keeps_parts=self._keeps_parts, has_document_urls=quirks.file_form == "document_url"
        )
        self._names = tool_names(request)
        self._unanswered = OpenCalls()
        # images of tool results, and results without a call: content that only a user message can contain
        self._shown: list[object] = []
        # gRPC callers get the provider's own error for unanswered calls
        self._completes_pairs = request.HasField("source")
        self._open: dict[str, None] = {}  # ids of the calls that wait for a result

    def encode(self) -> list[object]:
        """Return the value of `messages`, with the system prompt first. Raise UmgError(UNTRANSLATABLE, INVALID_FIELD)
        for content whose loss would change the meaning.
        """
        messages = list[object]()
        if self._request.instructions:
            messages += self._instructions()
        # consecutive turns of the model, and of the others less their results
        run, others = list[_Turn](), list[_Turn]()
        for index, message in enumerate(self._request.messages):
            if (kept := opaque_turn(message, "chat", f"messages[{index}]")) is not None:
                messages += [
                    *self._encode_assistant_turns(run),
                    *self._encode_turns(others),
                    *self._end_results(),
                    kept,
                ]
                run, others = [], []
                continue
            if omits_turn(message, "chat", self._report):
                continue
            responses = any(part.HasField("tool_result") for part in message.parts)
            if message.role != pb.ROLE_ASSISTANT or responses:
                messages += self._encode_assistant_turns(run)
                run = []
            if responses and not self._open:
                messages += self._encode_turns(others)  # before the text of results without a call
                others = []
            turn, results = self._turn(message, index)
            if message.role == pb.ROLE_ASSISTANT or not self._completes_pairs:
                messages += self._encode_turns(others)
                others = []
            messages += results  # results come before the turns between them and their calls
            if turn.parts or not responses:
                (run if message.role == pb.ROLE_ASSISTANT else others).append(turn)
        messages += self._encode_assistant_turns(run) + self._encode_turns(others) + self._end_results()
        cut_first_turn(messages, self._quirks, self._report)
        if not messages and self._completes_pairs:
            raise untranslatable("messages", NOTHING_LEFT)
        if self._signatures:
            _add_placeholder_signatures(messages)
        if self._keeps_parts:
            if self._marks_end:
                add_marks(messages, self._request)
            contents = [message.get("content") for message in messages if isinstance(message, dict)]
            limit_breakpoints(contents, self._quirks, self._report)
        return messages

    def _instructions(self) -> list[JsonObject]:
        """Return the system prompt as a message: a text or, for breakpoints in it, one content part for each text."""
        parts = self._request.instructions
        texts = [self._part_encoder.text_of(part, f"instructions[{index}]") for index, part in enumerate(parts)]
        if not self._keeps_parts:
            text = without_client_lines(BETWEEN_TEXTS.join(texts), self._quirks, self._report)
            return [{"role": "system", "content": text}] if text else []
        texts[0] = without_client_lines(texts[0], self._quirks, self._report)
        content = list[object]()
        for index, (part, text) in enumerate(zip(parts, texts, strict=True)):
            if text:
                joined_text = text + BETWEEN_TEXTS if index < len(parts) - 1 else text
                content.append(self._marked({"type": "text", "text": joined_text}, part))
        return [{"role": "system", "content": content}] if content else []

    def _marked_part(self, part: pb.Part, at: str) -> object:
        return self._marked(self._part_encoder.encode(part, at), part)

    def _marked(self, encoded: object, part: pb.Part) -> object:
        return with_breakpoint(encoded, part, self._quirks, self._report)

    def _turn(self, message: pb.Message, index: int) -> tuple["_Turn", list[JsonObject]]:
        """Split a canonical message into the message without its tool results, and the results as chat messages."""
        at, turn, results = f"messages[{index}]", _Turn(message, index, []), list[JsonObject]()
        if message.phase:
            self._report.drop("phase")
        for position, part in enumerate(message.parts):
            if part.HasField("cache_control") and not (
                self._keeps_parts and can_end_prefix(message, part, self._quirks)
            ):
                self._report.drop("cache_control")
            if part.HasField("tool_result"):
                results += self._result(part, f"{at}.parts[{position}]")
            elif part.HasField("media") and part.thought:
                self._report.drop("thought")
            else:
                turn.parts.append((part, f"{at}.parts[{position}]"))
        return turn, results

    def _encode_turns(self, turns: list["_Turn"]) -> list[JsonObject]:
        return [encoded for turn in turns for encoded in self._encode_turn(turn)]

    def _encode_turn(self, turn: "_Turn") -> list[JsonObject]:
        at, before, shown = f"messages[{turn.message_index}]", self._placeholder_results(), list[object]()
        if turn.message.role == pb.ROLE_USER:
            shown, self._shown = self._shown, []
        else:
            before += self._end_results()
        role = ROLE_NAMES.get(turn.message.role)
        if role is None and not any(part.HasField("opaque") for part, _ in turn.parts):
            raise no_role(at)
        encode = self._marked_part if self._keeps_parts else self._part_encoder.encode
        content = shown + [encode(part, at) for part, at in turn.parts if self._part_encoder.is_encodable(part, at)]
        if role is None or role == "tool":
            opaque = next((part.opaque for part, _ in turn.parts if part.HasField("opaque")), None)
            raise foreign(opaque, at) if opaque else untranslatable(at, "only a user or system turn can hold this")
        compacted = content if self._keeps_parts and content else _compact(content)
        return [*before, without_empty({"role": role, "content": compacted, "name": turn.message.name})]

    def _encode_assistant_turns(self, run: list["_Turn"]) -> list[JsonObject]:
        """Return chat messages for a run of assistant ones: one if any has a call or only reasoning, else one each."""
        if not run:
            return []
        joined = any(part.HasField("tool_call") for turn in run for part, _ in turn.parts) or any(
            all(part.HasField("reasoning") for part, _ in turn.parts) for turn in run
        )
        before = self._end_results()
        encoded = [self._assistant(turns) for turns in ([run] if joined else [[turn] for turn in run])]
        return before + [message for message in encoded if message is not None]

    def _assistant(self, turns: list["_Turn"]) -> JsonObject | None:
        """Return one chat message for assistant messages; None if it would be empty, since providers reject that."""
        content, calls = list[object](), list[JsonObject]()
        thoughts, states = list[pb.ReasoningPart](), list[State]()
        encoded: JsonObject = {"role": "assistant", "content": None, "name": turns[0].message.name}
        for turn in turns:
            for position, (part, at) in enumerate(turn.parts):
                if part.HasField("reasoning"):
                    thoughts.append(part.reasoning)
                elif (
                    part.HasField("tool_call")
                    and self._request.face_hints.legacy_functions
                    and not part.tool_call.call_id
                ):
                    encoded["function_call"] = self._function_call(part.tool_call)
                elif part.HasField("tool_call"):
                    calls.append(self._call(part, f"call_{turn.message_index}_{position}"))
                elif part.HasField("media") and part.media.media_id:
                    encoded["audio"] = {"id": part.media.media_id}
                elif part.HasField("media"):
                    raise untranslatable(at, "a chat assistant turn cannot hold it")
                elif (part.text.text or not part.HasField("text")) and self._part_encoder.is_encodable(part, at):
                    content.append(self._part_encoder.encode(part, at))
                states.extend(self._state(part, encoded))
        state = joined(states)
        texts = self._reasoning(thoughts, state) if thoughts else {}
        if content:
            encoded["content"] = _compact(content)
        elif not (calls or "audio" in encoded or "function_call" in encoded):
            if any(texts.values()) or state:
                self._report.drop("reasoning")
            return None
        encoded |= texts
        put(state, encoded, "message")
        if calls:
            encoded["tool_calls"] = calls
        return without_empty(encoded)

    def _reasoning(self, thoughts: Sequence[pb.ReasoningPart], state: State) -> JsonObject:
        """Return reasoning as a member: the usual one if the provider accepts it, else the one that a state needs."""
        member, texts = text_member(state), list[str]()
        for part in thoughts:
            shown = part.texts or part.summaries
            if member or self._takes_reasoning:
                texts.extend(shown)
            elif shown and not state:  # a state has the text, too
                self._report.drop("reasoning")
        return {member or "reasoning_content": "\n\n".join(texts)}

    def _state(self, part: pb.Part, encoded: JsonObject) -> Iterator[State]:
        """Yield a part's state if a chat provider made it, add vendor G's to `encoded`, and report any other."""
        if not part.HasField("state"):
            return
        if not self._takes_state(part.state):
            self._report.drop("state")
        elif part.state.format == "chat":
            yield from_canonical(part.state)
        elif is_signed(part) and not part.HasField("tool_call"):
            encoded["extra_content"] = encode_signature(part.state)

    def _takes_state(self, state: pb.ReasoningState) -> bool:
        """Return whether the provider accepts a state: its own, or one for which chat has members."""
        if state.format == "chat":
            return bool(state.channel) or self._signatures is not False
        return state.format == "native" and (self._signatures is not False or is_placeholder(state.data))

    def _function_call(self, call: pb.ToolCall) -> JsonObject:
        arguments = call.arguments_json or "{}"
        if call.HasField("text"):
            arguments = msgspec.json.encode({"input": call.text}).decode()
        return {"name": self._names.of_call(call), "arguments": arguments}

    def _call(self, part: pb.Part, own_id: str) -> JsonObject:
        call = part.tool_call
        call_id = self._sent_id(call.call_id or own_id)
        if not call.call_id:
            self._unanswered.add(call.name, call_id)
        self._open[call_id] = None
        accepts = not part.HasField("state") or self._takes_state(part.state)
        sent = part if accepts else pb.Part(tool_call=call)
        encoded = encode_call(sent, call_id, self._names.of_call(call))
        if call.HasField("text") and not self._takes_custom:
            encoded = {"id": call_id, "type": "function", "function": self._function_call(call)}
        return encoded

    def _result(self, part: pb.Part, at: str) -> list[JsonObject]:
        """Return a tool result as chat messages. One without its call, which clients may cut off and providers reject,
        becomes text of the next user message.
        """
        result = part.tool_result
        legacy = self._request.face_hints.legacy_functions and not result.call_id
        call_id = "" if legacy else self._sent_id(result.call_id or self._unanswered_id(result.name))
        has_call = legacy or not self._completes_pairs or call_id in self._open
        self._open.pop(call_id, None)
        if result.is_error:
            self._report.drop("is_error")
        shown = len(self._shown)
        texts = self._result_texts(result, at)
        if not has_call:
            self._report.drop("tool_result", "text")
            if self._marks_results and part.HasField("cache_control"):
                self._report.drop("cache_control")
            self._shown[shown:shown] = texts or [{"type": "text", "text": NO_RESULT}]
            return []
        if not texts and len(self._shown) > shown:
            texts.append({"type": "text", "text": RESULT_IN_NEXT_MESSAGE})  # providers reject an empty result
        if self._marks_results and texts:
            texts[-1] = self._marked(texts[-1], part)
        content = texts if self._marks_results and texts else _compact(texts)
        name = self._names.of_choice(result.name) if result.name else ""
        if legacy:
            return [{"role": "function", "name": name, "content": content}]
        encoded: JsonObject = {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}
        if self._completes_pairs:
            del encoded["name"]  # only our document has a name here
        return [without_empty(encoded)]

    def _result_texts(self, result: pb.ToolResult, at: str) -> list[object]:
        texts = list[object]()
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            if part.HasField("media"):
                self._shown.append(self._part_encoder.encode(part, path))
            elif self._part_encoder.is_encodable(part, path):
                texts.append(self._part_encoder.encode(part, path))
        if not result.parts and result.result_json:
            texts.append({"type": "text", "text": result.result_json})
        return texts

    def _unanswered_id(self, name: str) -> str:
        return self._unanswered.answered(name) or f"call_{name or 'unknown'}"

    def _end_results(self) -> list[JsonObject]:
        """Return the messages before one of another role: empty results, and a user message with shown media."""
        results, shown = self._placeholder_results(), self._shown
        self._shown = []
        return [*results, {"role": "user", "content": _compact(shown)}] if shown else results

    def _placeholder_results(self) -> list[JsonObject]:
        """Return an empty result for each tool call without one, since providers reject unanswered calls."""
        waiting, self._open = self._open, {}
        if not waiting or not self._completes_pairs:
            return []
        self._report.drop("tool_call", "without a result")
        return [{"role": "tool", "tool_call_id": call_id, "content": NO_RESULT} for call_id in waiting]


def _add_placeholder_signatures(messages: list[object]) -> None:
    """Add a placeholder signature to each assistant message's first tool call if it has none. Vendor G rejects a
    missing one after the last user message; earlier messages get one too, so that prompt caches match.
    """
    for message in messages:
        if not isinstance(message, dict):
            continue  # raw message with a role that the gateway does not decode
        calls = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            calls[0].setdefault("extra_content", encode_signature(pb.ReasoningState(data=NO_SIGNATURE)))


def _compact(content: list[object]) -> object:
    """Return parts as `content`: one text as a string, which every provider accepts; none as ""; others unchanged."""
    match content:
        case []:
            return ""
        case [{"type": "text", "text": text}]:
            return text
        case _:  # several parts, or one that is no text
            return content
