"""The conversation as messages of a body: canonical -> provider."""

import base64
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.content import AUDIO_FORMATS, DETAILS, ROLE_NAMES, encode_call, is_signed, signed
from umg_grpc.wire.chat.names import told_id, tool_names
from umg_grpc.wire.json import JsonObject, json_text
from umg_grpc.wire.media import data_url, sniff
from umg_grpc.wire.names import OpenCalls
from umg_grpc.wire.opaque import kept_turn, leaves_turn_out
from umg_grpc.wire.report import Report, foreign, no_role, unknown_part, untranslatable
from umg_grpc.wire.state import NO_SIGNATURE

SHOWN_BELOW = "The result is shown in the next message."
NO_RESULT = "No result."


class _Turn(NamedTuple):
    """A message less its tool results; its parts with their paths."""

    message: pb.Message
    place: int
    parts: list[tuple[pb.Part, str]]


class MessageEncoder:
    """Canonical messages -> chat messages. One instance a request: calls and results are paired across messages."""

    def __init__(self, request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> None:
        self._request = request
        self._report = report
        self._takes_thoughts = quirks.reasoning_content is not False
        self._wants_signatures = quirks.signatures is True
        self._takes_custom = quirks.custom_tools is not False
        self._names = tool_names(request)
        self._unanswered = OpenCalls()
        self._shown: list[object] = []  # images of tool results, which only a user message can show
        self._pairs = request.HasField("source")  # gRPC callers are told by the provider what they left open
        self._open: dict[str, None] = {}  # ids of the calls that wait for a result

    def encode(self) -> list[object]:
        """All messages, the instructions first. Raises UmgError for what would change the meaning."""
        messages = list[object]()
        if self._request.instructions:
            texts = [
                self._text_of(part, f"instructions[{index}]") for index, part in enumerate(self._request.instructions)
            ]
            messages.append({"role": "system", "content": "\n\n".join(texts)})
        run = list[_Turn]()
        for index, message in enumerate(self._request.messages):
            if (kept := kept_turn(message, "chat", f"messages[{index}]")) is not None:
                messages += [*self._answer(run), *self._end_results(), kept]
                run = []
                continue
            if leaves_turn_out(message, "chat", self._report):
                continue
            if message.role != pb.ROLE_ASSISTANT or any(part.HasField("tool_result") for part in message.parts):
                messages += self._answer(run)
                run = []
            turn, results = self._turn(message, index)
            messages += results
            if message.role == pb.ROLE_ASSISTANT:
                run += [turn] if turn.parts or not results else []
            elif turn.parts or not results:  # else more results may follow: what they show comes after the last of them
                messages += self._say(turn)
        messages += self._answer(run) + self._end_results()
        if self._wants_signatures:
            _sign(messages)
        return messages

    def _turn(self, message: pb.Message, index: int) -> tuple["_Turn", list[JsonObject]]:
        """The message less its tool results, and these as messages of their own."""
        at, turn, results = f"messages[{index}]", _Turn(message, index, []), list[JsonObject]()
        if message.phase:
            self._report.drop("phase")
        for position, part in enumerate(message.parts):
            if part.HasField("cache_control"):
                self._report.drop("cache_control")
            if part.HasField("tool_result"):
                results += self._result(part.tool_result, f"{at}.parts[{position}]")
            elif part.HasField("media") and part.thought:
                self._report.drop("thought")
            else:
                turn.parts.append((part, f"{at}.parts[{position}]"))
        return turn, results

    def _say(self, turn: "_Turn") -> list[JsonObject]:
        """A turn that is not the model's."""
        at, before, shown = f"messages[{turn.place}]", self._stubs(), list[object]()
        if turn.message.role == pb.ROLE_USER:
            shown, self._shown = self._shown, []
        else:
            before += self._end_results()
        role = ROLE_NAMES.get(turn.message.role)
        if role is None and not any(part.HasField("opaque") for part, _ in turn.parts):
            raise no_role(at)
        content = shown + [self._part(part, at) for part, at in turn.parts if self._can_say(part, at)]
        if role is None or role == "tool":
            opaque = next((part.opaque for part, _ in turn.parts if part.HasField("opaque")), None)
            raise foreign(opaque, at) if opaque else untranslatable(at, "only a user or system turn can hold this")
        return [*before, _without_empty({"role": role, "content": _compact(content), "name": turn.message.name})]

    def _answer(self, run: list["_Turn"]) -> list[JsonObject]:
        """The model's turns in a row: as one where they hold a call (results follow the message with all calls, in
        which providers look for the thoughts too) or thoughts alone.
        """
        if not run:
            return []
        joined = any(part.HasField("tool_call") for turn in run for part, _ in turn.parts) or any(
            all(part.HasField("reasoning") for part, _ in turn.parts) for turn in run
        )
        before = self._end_results()
        encoded = [self._assistant(turns) for turns in ([run] if joined else [[turn] for turn in run])]
        return before + [message for message in encoded if message is not None]

    def _assistant(self, turns: list["_Turn"]) -> JsonObject | None:
        """One message; None where nothing is said, which providers refuse."""
        content, calls, thoughts = list[object](), list[JsonObject](), list[str]()
        encoded: JsonObject = {"role": "assistant", "content": None, "name": turns[0].message.name}
        for turn in turns:
            for position, (part, at) in enumerate(turn.parts):
                if part.HasField("reasoning"):
                    thoughts.extend(self._thoughts(part.reasoning))
                elif part.HasField("tool_call") and self._request.legacy_functions and not part.tool_call.call_id:
                    encoded["function_call"] = self._function_call(part.tool_call)
                elif part.HasField("tool_call"):
                    calls.append(self._call(part, f"call_{turn.place}_{position}"))
                elif part.HasField("media") and part.media.media_id:
                    encoded["audio"] = {"id": part.media.media_id}
                elif part.HasField("media"):
                    raise untranslatable(at, "a chat assistant turn cannot hold it")
                elif part.text.text or not part.HasField("text"):
                    content += [self._part(part, at)] if self._can_say(part, at) else []
                self._state(part, encoded)
        if content:
            encoded["content"] = _compact(content)
        elif not (calls or "audio" in encoded or "function_call" in encoded):
            if thoughts:
                self._report.drop("reasoning")
            return None
        encoded["reasoning_content"] = "\n\n".join(thoughts)
        if calls:
            encoded["tool_calls"] = calls
        return _without_empty(encoded)

    def _thoughts(self, reasoning: pb.ReasoningPart) -> Sequence[str]:
        thoughts = reasoning.texts or reasoning.summaries
        if thoughts and not self._takes_thoughts:
            self._report.drop("reasoning")
            return ()
        return thoughts

    def _state(self, part: pb.Part, encoded: JsonObject) -> None:
        """Only vendor G's chat has a place for reasoning state: on calls and on the message."""
        if part.HasField("state") and part.state.format != "native":
            self._report.drop("state")
        elif is_signed(part) and not part.HasField("tool_call"):
            encoded["extra_content"] = signed(part.state)

    def _function_call(self, call: pb.ToolCall) -> JsonObject:
        """The older form of a call, which has no free text."""
        arguments = call.arguments_json or "{}"
        if call.HasField("text"):
            arguments = msgspec.json.encode({"input": call.text}).decode()
        return {"name": self._names.of_call(call), "arguments": arguments}

    def _call(self, part: pb.Part, own_id: str) -> JsonObject:
        call = part.tool_call
        if not call.call_id:
            self._unanswered.add(call.name, own_id)
        call_id = told_id(call.call_id) or own_id
        self._open[call_id] = None
        encoded = encode_call(part, call_id, self._names.of_call(call))
        if call.HasField("text") and not self._takes_custom:
            encoded = {"id": call_id, "type": "function", "function": self._function_call(call)}
        return encoded

    def _result(self, result: pb.ToolResult, at: str) -> list[JsonObject]:
        """A message; none for a result without its call, which providers refuse (clients cut off old turns)."""
        legacy = self._request.legacy_functions and not result.call_id
        call_id = "" if legacy else told_id(result.call_id) or self._answered(result.name)
        if self._pairs and not legacy and call_id not in self._open:
            self._report.drop("tool_result")
            return []
        self._open.pop(call_id, None)
        if result.is_error:
            self._report.drop("is_error")
        texts, shown = list[object](), len(self._shown)
        for index, part in enumerate(result.parts):
            place = f"{at}.tool_result.parts[{index}]"
            if part.HasField("media"):
                self._shown.append(self._part(part, place))
            elif self._can_say(part, place):
                texts.append(self._part(part, place))
        if not result.parts and result.result_json:
            texts.append({"type": "text", "text": result.result_json})
        if not texts and len(self._shown) > shown:
            texts.append({"type": "text", "text": SHOWN_BELOW})  # providers refuse an empty result
        content, name = _compact(texts), self._names.of_choice(result.name) if result.name else ""
        if legacy:
            return [{"role": "function", "name": name, "content": content}]
        told: JsonObject = {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}
        if self._pairs:
            del told["name"]  # only our document has one here
        return [_without_empty(told)]

    def _answered(self, name: str) -> str:
        """The id of the call that a result without one answers; of none where its call was cut off."""
        return self._unanswered.answered(name) or f"call_{name or 'unknown'}"

    def _end_results(self) -> list[JsonObject]:
        """What stands behind the last result of a turn: what they showed, as a user message."""
        stubs, shown = self._stubs(), self._shown
        self._shown = []
        return [*stubs, {"role": "user", "content": shown}] if shown else stubs

    def _stubs(self) -> list[JsonObject]:
        """A result for each call that has none, which providers refuse."""
        waiting, self._open = self._open, {}
        if not waiting or not self._pairs:
            return []
        self._report.drop("tool_call", "without a result")
        return [{"role": "tool", "tool_call_id": call_id, "content": NO_RESULT} for call_id in waiting]

    def _can_say(self, part: pb.Part, at: str) -> bool:
        """False for what is left out and reported. Raises UmgError for a kind newer than this build."""
        kind = part.WhichOneof("kind")
        if kind is None:
            raise unknown_part(at)
        if kind in ("server_tool_call", "server_tool_result", "reasoning") or part.thought:
            self._report.drop("thought" if part.thought else kind)
            return False
        return True

    def _text_of(self, part: pb.Part, at: str) -> str:
        if part.HasField("cache_control"):
            self._report.drop("cache_control")
        if not part.HasField("text"):
            raise untranslatable(at, "instructions are text in chat")
        return part.text.text

    def _part(self, part: pb.Part, at: str) -> object:
        match part.WhichOneof("kind"):
            case "text":
                if part.text.citations:
                    self._report.drop("citations")
                return {"type": "text", "text": part.text.text}
            case "refusal":
                return {"type": "refusal", "refusal": part.refusal.text}
            case "media":
                return self._media(part.media, at)
            case "opaque" if part.opaque.format == "chat":
                return json_text(part.opaque.json, f"{at}.opaque.json")
            case "opaque" if part.opaque.text:
                return {"type": "text", "text": part.opaque.text}
            case "opaque":
                raise foreign(part.opaque, at)
            case _:
                raise untranslatable(at, "a chat turn of this role cannot hold it")

    def _media(self, media: pb.MediaPart, at: str) -> JsonObject:
        source = media.WhichOneof("source")
        document = media.kind == pb.MEDIA_KIND_DOCUMENT
        titled = source == "blocks" or (document and source == "data" and not media.filename)
        for field in ("context", "citable", "origin") if titled else ("title", "context", "citable", "origin"):
            if getattr(media, field):
                self._report.drop(field)
        if media.detail and media.detail not in DETAILS:
            self._report.drop("detail")
        if media.kind == pb.MEDIA_KIND_IMAGE and source in ("data", "uri"):
            url = (
                media.uri
                if source == "uri"
                else data_url(media.mime_type or sniff(media.data) or "image/png", media.data)
            )
            detail = media.detail or self._request.media_detail
            shown = _without_empty({"url": url, "detail": detail if detail in DETAILS else ""})
            return {"type": "image_url", "image_url": shown}
        if media.kind == pb.MEDIA_KIND_AUDIO and source == "data" and media.mime_type in AUDIO_FORMATS:
            audio = {"data": base64.b64encode(media.data).decode(), "format": AUDIO_FORMATS[media.mime_type]}
            return {"type": "input_audio", "input_audio": audio}
        if document and source == "file_id":
            return {"type": "file", "file": {"file_id": media.file_id}}
        if document and source == "data":
            mime = media.mime_type or sniff(media.data) or "application/pdf"
            if mime.startswith("text/") and (text := _text_in(media.data)) is not None:
                named = media.title or media.filename
                return {"type": "text", "text": f"{named}\n\n{text}" if named else text}
            name = media.filename or media.title or f"document.{mime.rpartition('/')[2]}"
            return {"type": "file", "file": {"filename": name, "file_data": data_url(mime, media.data)}}
        if source == "blocks" and all(part.HasField("text") for part in media.blocks.parts):
            return {
                "type": "text",
                "text": "\n\n".join([media.title, *(part.text.text for part in media.blocks.parts)]).strip(),
            }
        kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
        raise untranslatable(
            at, f"chat cannot say this {kind} ({media.mime_type or source}); send its bytes in another form"
        )


def _sign(messages: list[object]) -> None:
    """Give the first call of each of the model's messages since the user last spoke what stands for a signature, where
    it has none: vendor G refuses such a call.
    """
    for message in reversed(messages):
        if not isinstance(message, dict):
            continue  # of a role that only its provider knows
        if message["role"] == "user":
            return
        calls = message.get("tool_calls")
        if isinstance(calls, list) and calls:
            calls[0].setdefault("extra_content", signed(pb.ReasoningState(data=NO_SIGNATURE)))


def _text_in(data: bytes) -> str | None:
    """The text of a document, which no provider takes as a file; None for what is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _compact(content: list[object]) -> object:
    """One text as a bare string, which every provider takes."""
    match content:
        case []:
            return ""
        case [{"type": "text", "text": text}]:
            return text
        case _:
            return content


def _without_empty(fields: JsonObject) -> JsonObject:
    """The object less its empty texts; an empty `content` stays, and so does null."""
    return {name: value for name, value in fields.items() if value != "" or name == "content"}
