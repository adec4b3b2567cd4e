"""Messages and their parts, both directions."""

import base64
from collections import deque
from collections.abc import Iterator

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.json import JsonObject, invalid, json_text, missing, parse
from umg_grpc.wire.media import data_url, decode_base64, is_data_url, parse_data_url, sniff
from umg_grpc.wire.report import Report, foreign, untranslatable

ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
    "tool": pb.ROLE_TOOL,
    "function": pb.ROLE_TOOL,
}
ROLE_NAMES = {value: name for name, value in ROLES.items() if name != "function"}
SHOWN_BELOW = "The result is shown in the next message."
DETAILS = ("auto", "low", "high", "original")
AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS = {mime: name for name, mime in AUDIO_TYPES.items()}


# --- caller -> canonical


def decode_messages(messages: list[schema.ChatMessage], request: pb.GenerateRequest) -> None:
    """Fills `request.messages`. Raises UmgError naming the field."""
    for index, message in enumerate(messages):
        target = request.messages.add(role=ROLES[message.role])
        if message.role == "assistant":
            _decode_assistant(message, target, f"messages[{index}]")
        elif message.role in ("tool", "function"):
            _decode_result(message, target, f"messages[{index}]")
        else:
            if message.content is None:
                raise missing(f"messages[{index}].content")
            _decode_content(message.content, target, f"messages[{index}].content")
            if message.name is not None:
                target.name = message.name


def _decode_assistant(message: schema.ChatMessage, target: pb.Message, at: str) -> None:
    if message.name is not None:
        target.name = message.name
    if message.reasoning_content:
        target.parts.add().reasoning.texts.append(message.reasoning_content)
    if message.content:  # "" says nothing, and other formats refuse an empty text
        _decode_content(message.content, target, f"{at}.content")
    if message.refusal:
        target.parts.add().refusal.text = message.refusal
    if message.audio:
        media = target.parts.add().media
        media.kind, media.file_id, media.media_id = pb.MEDIA_KIND_AUDIO, message.audio.id, message.audio.id
    spoken = len(target.parts)
    for index, raw in enumerate(message.tool_calls or ()):
        _decode_call(raw, target, f"{at}.tool_calls[{index}]")
    if message.function_call and not message.tool_calls:
        call = target.parts.add().tool_call
        call.name, call.arguments_json = message.function_call.name, message.function_call.arguments or ""
    if (signature := thought_signature(message.extra_content)) and target.parts:
        target.parts[max(spoken - 1, 0)].state.MergeFrom(signature)


def thought_signature(extra: schema.ExtraContent | None) -> pb.ReasoningState | None:
    """Vendor G's reasoning state, which is the native format's."""
    if extra and extra.google and extra.google.thought_signature:
        return pb.ReasoningState(data=extra.google.thought_signature, format="native")
    return None


def _decode_call(raw: msgspec.Raw, target: pb.Message, at: str) -> None:
    kind = parse(schema.Kind, raw, at).type or "function"
    if kind == "function":
        function = parse(schema.FunctionToolCall, raw, at)
        part = target.parts.add()
        part.tool_call.call_id = function.id
        part.tool_call.name, part.tool_call.arguments_json = function.function.name, function.function.arguments or ""
        if signature := thought_signature(function.extra_content):
            part.state.MergeFrom(signature)
    elif kind == "custom":
        custom = parse(schema.CustomToolCall, raw, at)
        call = target.parts.add().tool_call
        call.call_id, call.name, call.text = custom.id, custom.custom.name, custom.custom.input or ""
    else:
        _keep(raw, kind, target)


def _decode_result(message: schema.ChatMessage, target: pb.Message, at: str) -> None:
    result = target.parts.add().tool_result
    if message.role == "tool":
        if message.tool_call_id is None:
            raise missing(f"{at}.tool_call_id")
        result.call_id = message.tool_call_id
        if message.content is None:
            raise missing(f"{at}.content")
    elif message.name is None:
        raise missing(f"{at}.name")
    result.name = message.name or ""
    if message.content:
        _decode_content(message.content, result, f"{at}.content")


def _decode_content(content: str | list[msgspec.Raw], target: pb.Message | pb.ToolResult, at: str) -> None:
    if isinstance(content, str):
        target.parts.add().text.text = content
        return
    for index, raw in enumerate(content):
        _decode_part(raw, target, f"{at}[{index}]")


def _decode_part(raw: msgspec.Raw, target: pb.Message | pb.ToolResult, at: str) -> None:
    match parse(schema.Kind, raw, at).type:
        case "text":
            target.parts.add().text.text = parse(schema.TextPart, raw, at).text
        case "image_url":
            _decode_image(parse(schema.ImagePart, raw, at).image_url, target.parts.add().media, f"{at}.image_url")
        case "input_audio":
            audio = parse(schema.AudioPart, raw, at).input_audio
            media, field = target.parts.add().media, f"{at}.input_audio.data"
            media.kind, media.mime_type = pb.MEDIA_KIND_AUDIO, AUDIO_TYPES[audio.format]
            media.data = (
                parse_data_url(audio.data, field)[1] if is_data_url(audio.data) else decode_base64(audio.data, field)
            )
        case "refusal":
            target.parts.add().refusal.text = parse(schema.RefusalPart, raw, at).refusal
        case "file":
            message = f"`{at}`: files are not taken here; send them to /v1/responses as `input_file`"
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)
        case None:
            raise missing(f"{at}.type")
        case unknown:
            _keep(raw, unknown, target)


def _decode_image(image: schema.ImageUrl | str, media: pb.MediaPart, at: str) -> None:
    url, field = (image, at) if isinstance(image, str) else (image.url, f"{at}.url")
    media.kind = pb.MEDIA_KIND_IMAGE
    if is_data_url(url):
        media.mime_type, media.data = parse_data_url(url, field)
        if not media.data:
            raise invalid(field, "the data URL is empty; add the image")
        if not media.mime_type.startswith("image/"):
            media.mime_type = sniff(media.data) or media.mime_type
    elif "://" in url:
        media.uri = url
    else:
        raise invalid(field, "expected an http(s) or data URL; bytes go into `data:image/png;base64,...`")
    if not isinstance(image, str) and image.detail:
        media.detail = image.detail


def _keep(raw: msgspec.Raw, kind: str, target: pb.Message | pb.ToolResult) -> None:
    opaque = target.parts.add().opaque
    opaque.format, opaque.type, opaque.json = "chat", kind, str(raw, "utf-8")


# --- canonical -> provider


class MessageEncoder:
    """Canonical messages -> chat messages. One instance a request: calls and results are paired across messages."""

    def __init__(self, request: pb.GenerateRequest, report: Report) -> None:
        self._request = request
        self._report = report
        self._unanswered: dict[str, deque[str]] = {}  # name -> ids of the calls whose id is ours
        self._shown: list[object] = []  # images of tool results, which only a user message can show

    def encode(self) -> list[JsonObject]:
        """All messages, the instructions first. Raises UmgError for what would change the meaning."""
        messages = list[JsonObject]()
        if self._request.instructions:
            texts = [
                self._text_of(part, f"instructions[{index}]") for index, part in enumerate(self._request.instructions)
            ]
            messages.append({"role": "system", "content": "\n\n".join(texts)})
        for index, message in enumerate(self._request.messages):
            messages += self._message(message, f"messages[{index}]", index)
        return messages + self._flush()

    def _message(self, message: pb.Message, at: str, index: int) -> Iterator[JsonObject]:
        if message.phase:
            self._report.drop("phase")
        rest = list[tuple[pb.Part, str]]()
        for position, part in enumerate(message.parts):
            if part.HasField("cache_control"):
                self._report.drop("cache_control")
            if part.HasField("tool_result"):
                yield self._result(part.tool_result, f"{at}.parts[{position}]")
            else:
                rest.append((part, f"{at}.parts[{position}]"))
        if not rest and len(message.parts) > 0:
            return  # more results may follow: the images they show come after the last of them
        if message.role == pb.ROLE_ASSISTANT:
            yield from self._flush()
            yield self._assistant(message, rest, index)
            return
        shown: list[object] = []
        if message.role == pb.ROLE_USER:
            shown, self._shown = self._shown, []
        else:
            yield from self._flush()
        role = ROLE_NAMES.get(message.role)
        if role is None and not any(part.HasField("opaque") for part, _ in rest):
            field = f"messages[{index}].role"
            raise UmgError(pb.ERROR_REASON_MISSING_FIELD, f"{field}: say who speaks", field=field)
        content = shown + [self._part(part, at) for part, at in rest if self._can_say(part, at)]
        if role is None or role == "tool":
            opaque = next((part.opaque for part, _ in rest if part.HasField("opaque")), None)
            raise foreign(opaque, at) if opaque else untranslatable(at, "only a user or system turn can hold this")
        yield _without_empty({"role": role, "content": _compact(content), "name": message.name})

    def _assistant(self, message: pb.Message, rest: list[tuple[pb.Part, str]], index: int) -> JsonObject:
        content, calls, thoughts = list[object](), list[JsonObject](), list[str]()
        encoded: JsonObject = {"role": "assistant", "content": None, "name": message.name}
        for position, (part, at) in enumerate(rest):
            if part.HasField("reasoning"):
                thoughts.extend(part.reasoning.texts or part.reasoning.summaries)
            elif part.HasField("tool_call") and self._request.legacy_functions and not part.tool_call.call_id:
                encoded["function_call"] = {
                    "name": part.tool_call.name,
                    "arguments": part.tool_call.arguments_json or "{}",
                }
            elif part.HasField("tool_call"):
                calls.append(self._call(part, f"call_{index}_{position}"))
            elif part.HasField("media") and part.media.media_id:
                encoded["audio"] = {"id": part.media.media_id}
            elif part.HasField("media"):
                raise untranslatable(at, "a chat assistant turn cannot hold it")
            elif self._can_say(part, at):
                content.append(self._part(part, at))
            self._state(part, encoded)
        if content or not (calls or "audio" in encoded or "function_call" in encoded):
            encoded["content"] = _compact(content)
        encoded["reasoning_content"] = "\n\n".join(thoughts)
        if calls:
            encoded["tool_calls"] = calls
        return _without_empty(encoded)

    def _state(self, part: pb.Part, encoded: JsonObject) -> None:
        """Only vendor G's chat has a place for reasoning state: on calls and on the message."""
        if part.HasField("state") and part.state.format != "native":
            self._report.drop("state")
        elif part.HasField("state") and not part.HasField("tool_call"):
            encoded["extra_content"] = signed(part.state)

    def _call(self, part: pb.Part, own_id: str) -> JsonObject:
        call = part.tool_call
        call_id = call.call_id or own_id
        if not call.call_id:
            self._unanswered.setdefault(call.name, deque()).append(call_id)
        return encode_call(part, call_id)

    def _result(self, result: pb.ToolResult, at: str) -> JsonObject:
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
        if self._request.legacy_functions and not result.call_id:
            return {"role": "function", "name": result.name, "content": _compact(texts)}
        call_id = result.call_id or self._own_id(result.name)
        return _without_empty(
            {"role": "tool", "tool_call_id": call_id, "name": result.name, "content": _compact(texts)}
        )

    def _own_id(self, name: str) -> str:
        """The id that we gave to the call that this answers: the first open one of that name, else of any."""
        called = name if name in self._unanswered else next(iter(self._unanswered), None)
        if called is None:
            return f"call_{name or 'unknown'}"
        ids = self._unanswered[called]
        call_id = ids.popleft()
        if not ids:
            del self._unanswered[called]
        return call_id

    def _flush(self) -> list[JsonObject]:
        """What tool results showed, as a user message behind the last of them."""
        shown, self._shown = self._shown, []
        return [{"role": "user", "content": shown}] if shown else []

    def _can_say(self, part: pb.Part, at: str) -> bool:
        """False for what is left out and reported. Raises UmgError for a kind newer than this build."""
        kind = part.WhichOneof("kind")
        if kind is None:
            message = f"{at}: this kind of part is not known here; leave it out"
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)
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


def encode_call(part: pb.Part, call_id: str) -> JsonObject:
    """A tool call of a message."""
    call = part.tool_call
    if call.HasField("text"):
        return {"id": call_id, "type": "custom", "custom": {"name": call.name, "input": call.text}}
    encoded: JsonObject = {
        "id": call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_json or "{}"},
    }
    if part.HasField("state") and part.state.format == "native":
        encoded["extra_content"] = signed(part.state)
    return encoded


def signed(state: pb.ReasoningState) -> JsonObject:
    """`extra_content` with the reasoning state of vendor G."""
    return {"google": {"thought_signature": state.data}}


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
