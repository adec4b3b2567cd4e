"""Encoding of canonical messages as `contents` and `systemInstruction` of a native request to a provider."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.agent_prompt_lines import without_client_lines
from umg_grpc.wire.core.inserted_turn_texts import FILLER_TEXT, NO_RESULT, marked
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, json_text
from umg_grpc.wire.core.prompt_cache_marks import PromptMark, lasts_an_hour
from umg_grpc.wire.core.reasoning_state_conversion import NO_SIGNATURE, is_placeholder
from umg_grpc.wire.core.tool_call_id_pairing import original_id
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.core.unknown_role_messages import omits_turn, opaque_turn
from umg_grpc.wire.dropped_fields_report import Report, foreign, no_role, unknown_part, untranslatable
from umg_grpc.wire.native.content_parts import ERROR_KEY, OUTPUT_KEY, RESOLUTION_PREFIX, encode_media, encode_reasoning
from umg_grpc.wire.native.server_tools import encode_server_tool
from umg_grpc.wire.native.tool_calls import encode_call
from umg_grpc.wire.native.tool_result_pairing import Result, UnansweredCalls

USER_ROLE, MODEL_ROLE = "user", "model"
SYSTEM_ROLES = (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)
MEDIA_DETAILS = ("low", "medium", "high", "ultra_high")
RESULT_IN_NEXT_MESSAGE = "The result is shown below."

_GENERATION = re.compile(r"(?:^|[/.])(?:gemini|famG)-(\d+)")
_ALIAS = re.compile(r"(?:^|[/.])gemini-[a-z-]+-latest$")
_NEWEST_FORMS = 3


def generation(model: str) -> int:
    """Return the generation in a model id (2 for 2.5); 0 if it states none, the newest for `gemini-flash-latest`.
    Generation 3 changed signatures, media and reasoning options.
    """
    found = _GENERATION.search(model)
    return int(found[1]) if found else _NEWEST_FORMS if _ALIAS.search(model) else 0


@dataclass(slots=True)
class _Turn:
    role: str  # "" for an opaque turn, which is its only part
    parts: list[object] = field(default_factory=list)
    calls: list[pb.ToolCall] = field(default_factory=list)
    results: list[JsonObject] = field(default_factory=list)  # encoded before the parts
    signed: bool = True  # whether its first call has a signature
    # parts in front of each mark, whether it is for an hour
    marks: list[tuple[int, bool]] = field(default_factory=list)


class ContentEncoder:
    """Encoder of one request's messages as `contents`. One instance per request, since results and calls are paired.

    Consecutive messages of one role become one. It begins with its results, in the order of the calls before, because
    the provider counts them. A call without a result gets an error result; a result without a call becomes text.
    """

    def __init__(
        self, request: pb.GenerateRequest, model: str, names: ToolNames, report: Report, *, marks_instructions: bool
    ) -> None:
        """Create the encoder. `marks_instructions`: later instructions become marked user text, so that the beginning
        of the conversation stays; if false, they become a part of `systemInstruction`.
        """
        self._request = request
        self._marks_instructions = marks_instructions
        self._generation = generation(model) or generation(request.model)
        self._names = names
        self._report = report
        self._turns: list[_Turn] = []
        self.marks: list[PromptMark] = []  # caller's cache marks in the encoded messages; set by `encode`

    def encode(self) -> JsonObject:
        """Return `contents` and any `systemInstruction`. Raise UmgError(UNTRANSLATABLE, INVALID_FIELD) for content
        whose loss would change the meaning.
        """
        system: list[JsonObject] = [
            {"text": text}
            for index, part in enumerate(self._request.instructions)
            if (text := self._text_of(part, f"instructions[{index}]"))
        ]
        for index, message in enumerate(self._request.messages):
            if message.role in SYSTEM_ROLES and self._marks_instructions and self._turns:
                self._marked_instructions(message, f"messages[{index}]")
            elif message.role in SYSTEM_ROLES:
                system.extend(self._system(message, f"messages[{index}]"))
            else:
                self._message(message, f"messages[{index}]")
        system = self._without_client_lines(system)
        self._answer_calls()
        if self._generation >= 3:
            self._add_signatures()
        if self._turns and self._turns[0].calls:  # agents shorten a conversation to a summary and the turns behind it
            self._report.drop("messages", "a user's turn first")
            self._turns.insert(0, _Turn(USER_ROLE, [{"text": FILLER_TEXT}]))
        contents: list[object] = [
            {"role": turn.role, "parts": [*turn.results, *turn.parts]} if turn.role else turn.parts[0]
            for turn in self._turns
        ]
        self._place_marks()
        if not contents:
            if not system:
                raise untranslatable("messages", "all of them are blank; send some text")
            self._report.drop("instructions", "a user turn")  # rejected without one
            return {"contents": [{"role": USER_ROLE, "parts": system}]}
        return {"systemInstruction": {"parts": system}, "contents": contents} if system else {"contents": contents}

    def _place_marks(self) -> None:
        for index, turn in enumerate(self._turns):
            whole = len(turn.results) + len(turn.parts)
            for count, is_long in turn.marks:
                # results have the order of their calls, so that only the end of their turn is a place
                self.marks.append(PromptMark(index, whole if turn.results else min(count, whole), is_long))

    def _without_client_lines(self, system: list[JsonObject]) -> list[JsonObject]:
        if not system or not isinstance(text := system[0]["text"], str):
            return system
        rest = without_client_lines(text, NO_QUIRKS, self._report)
        return system if rest is text else [{"text": rest}, *system[1:]] if rest else system[1:]

    def _system(self, message: pb.Message, at: str) -> Iterator[JsonObject]:
        if self._turns:
            self._report.drop("messages.role", "systemInstruction")  # its position among the messages is lost
        for position, part in enumerate(message.parts):
            if text := self._text_of(part, f"{at}.parts[{position}]"):
                yield {"text": text}

    def _marked_instructions(self, message: pb.Message, at: str) -> None:
        self._report.drop("messages.role", "user")
        texts = [self._text_of(part, f"{at}.parts[{position}]") for position, part in enumerate(message.parts)]
        if self._turns[-1].role != USER_ROLE:
            self._turns.append(_Turn(USER_ROLE))
        self._turns[-1].parts += [{"text": marked(text)} for text in texts if text]

    def _text_of(self, part: pb.Part, at: str) -> str:
        if part.HasField("cache_control"):
            self._report.drop("cache_control")
            self.marks.append(PromptMark(0, 0, lasts_an_hour(part.cache_control)))
        if not part.HasField("text"):
            raise untranslatable(at, "instructions are text in native")
        return part.text.text

    def _message(self, message: pb.Message, at: str) -> None:
        if (kept := opaque_turn(message, "native", at)) is not None:
            self._turns.append(_Turn("", [kept]))
            return
        if omits_turn(message, "native", self._report):
            return
        if message.phase:
            self._report.drop("phase")
        if message.name:
            self._report.drop("name")
        if message.role == pb.ROLE_UNSPECIFIED and not any(part.HasField("opaque") for part in message.parts):
            raise no_role(at)
        role = MODEL_ROLE if message.role == pb.ROLE_ASSISTANT else USER_ROLE
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        turn = self._turns[-1]
        for position, part in enumerate(message.parts):
            path = f"{at}.parts[{position}]"
            if part.HasField("tool_result"):
                turn.parts += self._result(part.tool_result, path)
            else:
                self._part(part, path, turn)
            if part.HasField("cache_control") and role == USER_ROLE:
                turn.marks.append((len(turn.parts), lasts_an_hour(part.cache_control)))
        if not turn.parts:
            self._turns.pop()

    def _part(self, part: pb.Part, at: str, turn: _Turn) -> None:
        if part.HasField("cache_control"):
            self._report.drop("cache_control")
        state = part.state.data if part.state.format == "native" and not is_placeholder(part.state.data) else ""
        if part.HasField("state") and part.state.format != "native":
            self._report.drop("state")
        encoded_parts = [*self._encode_part(part, at, signed=bool(state))]
        if not encoded_parts:
            return
        marks: JsonObject = {"thought": True} if part.thought else {}
        if state:
            marks["thoughtSignature"] = state
        last = encoded_parts[-1]
        if marks and isinstance(last, dict):
            encoded_parts[-1] = {**last, **marks}
        if part.HasField("tool_call"):
            if not turn.calls:
                turn.signed = bool(state)
            turn.calls.append(part.tool_call)
        turn.parts += encoded_parts

    def _encode_part(self, part: pb.Part, at: str, *, signed: bool) -> Iterator[object]:  # noqa: PLR0912 - one case a kind
        match part.WhichOneof("kind"):
            case "text":
                if part.text.citations:
                    self._report.drop("citations")
                if part.text.text or signed:
                    yield {"text": part.text.text}
            case "reasoning":
                thought = encode_reasoning(part)
                if thought.get("text") or signed:
                    yield thought
            case "tool_call":
                call_id = original_id(part.tool_call.call_id)
                yield encode_call(part.tool_call, call_id, self._names.of_call(part.tool_call))
            case "media":
                yield from self._media(part.media, at)
            case "refusal":
                self._report.drop("refusal", "text")
                yield {"text": part.refusal.text}
            case "server_tool_call" | "server_tool_result" as kind:
                if (used := encode_server_tool(part, at)) is not None:
                    yield used
                else:
                    self._report.drop(kind)
            case "opaque" if part.opaque.format == "native":
                yield json_text(part.opaque.json, f"{at}.opaque.json")
            case "opaque" if part.opaque.text:
                yield {"text": part.opaque.text}
            case "opaque":
                raise foreign(part.opaque, at)
            case "tool_result" | "compaction" | None:
                raise unknown_part(at)  # results are encoded by `_result`
            case unhandled:
                assert_never(unhandled)

    def _result(self, result: pb.ToolResult, at: str) -> Iterator[object]:
        texts, shown = list[str](), list[object]()
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            match part.WhichOneof("kind"):
                case "text":
                    texts.append(part.text.text)
                case "media":
                    shown += self._media(part.media, path)
                case "opaque" if part.opaque.text:
                    texts.append(part.opaque.text)
                case "opaque":
                    raise foreign(part.opaque, path)
                case _:  # no other kind is allowed in a result
                    raise untranslatable(path, "a result is text, images and documents in native")
        text = "\n".join(texts)
        fallback_text = text or result.result_json or ("" if shown else NO_RESULT)
        encoded_parts: list[object] = [{"text": fallback_text}] if fallback_text else []
        if not result.result_json:
            response = _response(text or (RESULT_IN_NEXT_MESSAGE if shown else ""), failed=result.is_error)
            yield Result(result.call_id, result.name, {"response": response}, encoded_parts)
            yield from shown
            return
        fields: JsonObject = {"response": _object(result.result_json, f"{at}.tool_result.result_json")}
        if shown:
            fields["parts"] = shown
        yield Result(result.call_id, result.name, fields, encoded_parts + shown)

    def _answer_calls(self) -> None:
        """Order results like the calls before them, answer open calls by errors, and make other results text."""
        calls = list[pb.ToolCall]()
        for turn in self._turns:
            if not turn.role:
                continue
            if calls or any(isinstance(part, Result) for part in turn.parts):
                self._answer(calls, turn)
            calls = turn.calls

    def _answer(self, calls: list[pb.ToolCall], turn: _Turn) -> None:
        waiting, rest = UnansweredCalls(calls), list[object]()
        for part in turn.parts:
            if not isinstance(part, Result):
                rest.append(part)
            elif not waiting.answer(part):
                self._report.drop("tool_result", "text")
                rest += part.fallback
        for call, fields in zip(calls, waiting.answers, strict=True):
            if fields is None:
                self._report.drop("tool_call", "no result")
            response: JsonObject = {"id": original_id(call.call_id)} if call.call_id else {}
            response["name"] = self._names.of_call(call)
            turn.results.append({"functionResponse": response | (fields or {"response": {ERROR_KEY: NO_RESULT}})})
        turn.parts = rest

    def _media(self, media: pb.MediaPart, at: str) -> Iterator[JsonObject]:
        for name in ("filename", "context", "citable", "origin") + (() if media.HasField("blocks") else ("title",)):
            if getattr(media, name):
                self._report.drop(name)
        if media.HasField("blocks"):
            if media.title:
                yield {"text": media.title}
            for index, part in enumerate(media.blocks.parts):
                yield from self._block(part, f"{at}.media.blocks.parts[{index}]")
            return
        encoded = encode_media(media)
        if encoded is None:
            raise untranslatable(at, "the file is stored at another provider; send its bytes or its address")
        if media.detail in ("", "auto"):
            pass
        elif media.detail not in MEDIA_DETAILS or 0 < self._generation < 3:  # older models reject it
            self._report.drop("detail")
        else:
            encoded["mediaResolution"] = {"level": RESOLUTION_PREFIX + media.detail.upper()}
        yield encoded

    def _block(self, part: pb.Part, at: str) -> Iterator[JsonObject]:
        if part.HasField("text"):
            yield {"text": part.text.text}
        elif part.HasField("media") and not part.media.HasField("blocks"):
            yield from self._media(part.media, at)
        else:
            raise untranslatable(at, "a document is text and images in native")

    def _add_signatures(self) -> None:
        """Add a placeholder to the first call of each model message without a signature: the provider requires one
        since the user's last message; earlier messages keep theirs for prompt caches.
        """
        for turn in self._turns:
            call = next((part for part in turn.parts if _is_call(part)), None)
            if isinstance(call, dict) and not turn.signed:
                call["thoughtSignature"] = NO_SIGNATURE


def _is_call(part: object) -> bool:
    return isinstance(part, dict) and "functionCall" in part


def _object(text: str, at: str) -> Raw:
    raw = json_text(text, at)
    if not bytes(raw).startswith(b"{"):
        raise invalid(at, "expected an object; send a JSON object")
    return raw


def _response(text: str, *, failed: bool) -> object:
    if failed:
        return {ERROR_KEY: text}
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Raw])
        except (ValueError, RecursionError):
            pass
    return {OUTPUT_KEY: text}
