"""Turns, both directions."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec import Raw

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject, invalid, json_text, missing
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.names import ToolNames
from umg_grpc.wire.native.parts import (
    ERROR,
    OUTPUT,
    RESOLUTION,
    decode_part,
    encode_call,
    encode_media,
    encode_server_tool,
    encode_thoughts,
)
from umg_grpc.wire.report import Report, foreign, untranslatable

ROLES = {
    None: pb.ROLE_USER,
    "user": pb.ROLE_USER,
    "model": pb.ROLE_ASSISTANT,
    "function": pb.ROLE_TOOL,
    "tool": pb.ROLE_TOOL,
}
USER, MODEL = "user", "model"
SYSTEM_ROLES = (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)
DETAILS = ("low", "medium", "high", "ultra_high")
SHOWN_BELOW = "The result is shown below."
UNKNOWN_TOOL = "unknown"  # name of a result that answers no call of the conversation

# A call of the running turn without its signature is a 400 from the third generation on; this stands for one that
# another vendor's model never had (reference, 6.4). It is base64 as it stands.
NO_SIGNATURE = "skip_thought_signature_validator"

_GENERATION = re.compile(r"(?:^|[/.])(?:gemini|famG)-(\d+)")


def generation(model: str) -> int:
    """Generation of the provider's model as its id tells it; 0 where it does not."""
    told = _GENERATION.search(model)
    return int(told[1]) if told else 0


# --- caller -> canonical


def decode_contents(contents: list[schema.Content], request: pb.GenerateRequest) -> None:
    """Fills `request.messages`: one message a turn. Raises UmgError naming the field.

    Only the model may have said nothing: its answers may lack parts, and clients send them back.
    """
    for index, content in enumerate(contents):
        if not content.parts and ROLES[content.role] != pb.ROLE_ASSISTANT:
            raise missing(f"contents[{index}].parts")
        message = request.messages.add(role=ROLES[content.role])
        for position, part in enumerate(content.parts or ()):
            _decode(part, message.parts.add(), f"contents[{index}].parts[{position}]", request)


def decode_instructions(content: schema.Content, request: pb.GenerateRequest) -> None:
    """Fills `request.instructions`."""
    for position, part in enumerate(content.parts or ()):
        _decode(part, request.instructions.add(), f"systemInstruction.parts[{position}]", request)


def _decode(part: schema.Part, target: pb.Part, at: str, request: pb.GenerateRequest) -> None:
    kinds = [name for name in schema.KINDS if _says(getattr(part, name))]
    if len(kinds) > 1:
        raise invalid(at, f"one part is one thing, this is {' and '.join(kinds)}; make them several parts")
    decode_part(part, target, at)
    if _says(part.video_metadata):
        _uncarried("videoMetadata", request)
    if part.function_response is not None:
        for name in ("will_continue", "scheduling"):
            if _says(getattr(part.function_response, name)):
                _uncarried(f"functionResponse.{'willContinue' if name == 'will_continue' else name}", request)


def _says(value: object) -> bool:
    return bytes(value) not in (b"", b"null") if isinstance(value, Raw) else value is not None


def _uncarried(name: str, request: pb.GenerateRequest) -> None:
    if name not in request.source.uncarried_fields:
        request.source.uncarried_fields.append(name)


# --- canonical -> provider


@dataclass(slots=True)
class _Turn:
    role: str
    results: list[tuple[str, JsonObject]] = field(default_factory=list)  # (call id, part)
    parts: list[object] = field(default_factory=list)
    signed: bool = True  # whether its first call has a signature


class ContentEncoder:
    """Canonical messages -> turns. One instance a request: results are paired with calls across messages.

    Neighbours of one role become one turn, the results of one turn its first parts in the order of their calls: the
    provider counts them.
    """

    def __init__(self, request: pb.GenerateRequest, model: str, names: ToolNames, report: Report) -> None:
        self._request = request
        self._generation = generation(model) or generation(request.model)
        self._names = names
        self._report = report
        self._called: dict[str, tuple[int, str]] = {}  # call id -> (place among all calls, name)
        self._unanswered: deque[str] = deque()  # names of the calls without an id
        self._turns: list[_Turn] = []

    def encode(self) -> JsonObject:
        """`contents` and `systemInstruction`. Raises UmgError for what would change the meaning."""
        system: list[JsonObject] = [
            {"text": text}
            for index, part in enumerate(self._request.instructions)
            if (text := self._text_of(part, f"instructions[{index}]"))
        ]
        for index, message in enumerate(self._request.messages):
            if message.role in SYSTEM_ROLES:
                system.extend(self._system(message, f"messages[{index}]"))
            else:
                self._message(message, f"messages[{index}]")
        if self._generation >= 3:
            self._sign()
        contents = [
            {"role": turn.role, "parts": [*self._in_order(turn.results), *turn.parts]}
            for turn in self._turns
            if turn.results or turn.parts
        ]
        if not contents and system:  # refused without a turn
            self._report.drop("instructions", "a user turn")
            return {"contents": [{"role": USER, "parts": system}]}
        return {"systemInstruction": {"parts": system}, "contents": contents} if system else {"contents": contents}

    def _system(self, message: pb.Message, at: str) -> Iterator[JsonObject]:
        if self._turns:
            self._report.drop("messages.role", "systemInstruction")  # its place is lost
        for position, part in enumerate(message.parts):
            if text := self._text_of(part, f"{at}.parts[{position}]"):
                yield {"text": text}

    def _text_of(self, part: pb.Part, at: str) -> str:
        if part.HasField("cache_control"):
            self._report.drop("cache_control")
        if not part.HasField("text"):
            raise untranslatable(at, "instructions are text in native")
        return part.text.text

    def _message(self, message: pb.Message, at: str) -> None:
        if message.phase:
            self._report.drop("phase")
        if message.name:
            self._report.drop("name")
        if message.role == pb.ROLE_UNSPECIFIED and not any(part.HasField("opaque") for part in message.parts):
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, f"{at}.role: say who speaks", field=f"{at}.role")
        role = MODEL if message.role == pb.ROLE_ASSISTANT else USER
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        turn = self._turns[-1]
        for position, part in enumerate(message.parts):
            place = f"{at}.parts[{position}]"
            if part.HasField("tool_result"):
                turn.results.append((part.tool_result.call_id, self._result(part.tool_result, place, turn)))
            else:
                self._part(part, place, turn)

    def _part(self, part: pb.Part, at: str, turn: _Turn) -> None:
        if part.HasField("cache_control"):
            self._report.drop("cache_control")
        state = part.state.data if part.state.format == "native" else ""
        if part.HasField("state") and not state:
            self._report.drop("state")
        said = [*self._said(part, at, signed=bool(state))]
        if not said:
            return
        marks: JsonObject = {"thought": True} if part.thought else {}
        if state:
            marks["thoughtSignature"] = state
        last = said[-1]
        if marks and isinstance(last, dict):
            said[-1] = {**last, **marks}
        if part.HasField("tool_call") and not any(_is_call(other) for other in turn.parts):
            turn.signed = bool(state)
        turn.parts += said

    def _said(self, part: pb.Part, at: str, *, signed: bool) -> Iterator[object]:  # noqa: PLR0912 - one case a kind
        match part.WhichOneof("kind"):
            case "text":
                if part.text.citations:
                    self._report.drop("citations")
                if part.text.text or signed:
                    yield {"text": part.text.text}
            case "reasoning":
                thought = encode_thoughts(part)
                if thought.get("text") or signed:
                    yield thought
            case "tool_call":
                yield self._call(part.tool_call)
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
            case "opaque":
                raise foreign(part.opaque, at)
            case _:
                message = f"{at}: this kind of part is not known here; leave it out"
                raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)

    def _call(self, call: pb.ToolCall) -> JsonObject:
        if call.call_id:
            self._called[call.call_id] = (len(self._called), call.name)
        else:
            self._unanswered.append(call.name)
        return encode_call(call, self._names.legal(call.name))

    def _result(self, result: pb.ToolResult, at: str, turn: _Turn) -> JsonObject:
        """`functionResponse`. What a result shows stands in it where the caller knows of that place, else in the turn:
        only the newest models look for it there.
        """
        texts, shown = list[str](), list[object]()
        for index, part in enumerate(result.parts):
            place = f"{at}.tool_result.parts[{index}]"
            match part.WhichOneof("kind"):
                case "text":
                    texts.append(part.text.text)
                case "media":
                    shown += self._media(part.media, place)
                case "opaque":
                    raise foreign(part.opaque, place)
                case _:
                    raise untranslatable(place, "a result is text, images and documents in native")
        fields: JsonObject = {"id": result.call_id} if result.call_id else {}
        fields["name"] = self._names.legal(self._name(result))
        if result.result_json:
            fields["response"] = _object(result.result_json, f"{at}.tool_result.result_json")
            if shown:
                fields["parts"] = shown
        else:
            turn.parts += shown
            fields["response"] = _response("\n".join(texts) or (SHOWN_BELOW if shown else ""), failed=result.is_error)
        return {"functionResponse": fields}

    def _in_order(self, results: list[tuple[str, JsonObject]]) -> list[JsonObject]:
        """The results in the order of their calls, where all of them say which that is."""
        if all(call_id in self._called for call_id, _ in results):
            results = sorted(results, key=lambda result: self._called[result[0]][0])
        return [part for _, part in results]

    def _name(self, result: pb.ToolResult) -> str:
        """Native needs the name of the tool: that of the call, where the result does not repeat it."""
        called = self._called.get(result.call_id, (0, ""))[1]
        waiting = self._unanswered.popleft() if self._unanswered and not called else ""
        return called or result.name or waiting or UNKNOWN_TOOL

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
            raise untranslatable(at, "the file lives at another provider; send its bytes or its address")
        if media.detail in ("", "auto"):
            pass
        elif media.detail not in DETAILS or 0 < self._generation < 3:  # older models refuse it
            self._report.drop("detail")
        else:
            encoded["mediaResolution"] = {"level": RESOLUTION + media.detail.upper()}
        yield encoded

    def _block(self, part: pb.Part, at: str) -> Iterator[JsonObject]:
        if part.HasField("text"):
            yield {"text": part.text.text}
        elif part.HasField("media") and not part.media.HasField("blocks"):
            yield from self._media(part.media, at)
        else:
            raise untranslatable(at, "a document is text and images in native")

    def _sign(self) -> None:
        """Gives the first call of each of the model's turns since the user last spoke what stands for a signature."""
        for turn in reversed(self._turns):
            if turn.role == USER and turn.parts:
                return
            call = next((part for part in turn.parts if _is_call(part)), None)
            if isinstance(call, dict) and not turn.signed:
                call["thoughtSignature"] = NO_SIGNATURE


def _is_call(part: object) -> bool:
    return isinstance(part, dict) and "functionCall" in part


def _object(text: str, at: str) -> Raw:
    """The JSON of a result. Raises UmgError(INVALID_FIELD) for anything but one object."""
    raw = json_text(text, at)
    if not bytes(raw).startswith(b"{"):
        raise invalid(at, "expected an object; send a JSON object")
    return raw


def _response(text: str, *, failed: bool) -> object:
    """A result as an object: one that is JSON is the object itself, any other is its `output` (reference, 6.3)."""
    if failed:
        return {ERROR: text}
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Raw])
        except (ValueError, RecursionError):
            pass
    return {OUTPUT: text}
