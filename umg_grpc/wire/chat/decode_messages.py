"""Messages and their parts as callers write them, and what stands in a request and an answer alike."""

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.json import JsonObject, invalid, missing, parse
from umg_grpc.wire.media import check_address, decode_base64, is_data_url, parse_data_url, sniff
from umg_grpc.wire.opaque import keep_turn, raw_turns
from umg_grpc.wire.state import is_placeholder

ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
    "tool": pb.ROLE_TOOL,
    "function": pb.ROLE_TOOL,
}
ROLE_NAMES = {value: name for name, value in ROLES.items() if name != "function"}
MOST_PARTS = 5000  # of a message, in the schema
DETAILS = ("auto", "low", "high", "original")
AUDIO_TYPES = {"wav": "audio/wav", "mp3": "audio/mpeg"}
AUDIO_FORMATS = {mime: name for name, mime in AUDIO_TYPES.items()}


# --- caller -> canonical


def decode_messages(messages: list[schema.ChatMessage], request: pb.GenerateRequest) -> None:
    """Fill `request.messages`. Raises UmgError naming the field."""
    for index, message in enumerate(messages):
        if message.role not in ROLES:
            raw = raw_turns(request.source.body, "messages")[index]
            keep_turn(request, raw, message.role, f"messages[{index}].role")
            continue
        target = request.messages.add(role=ROLES[message.role])
        if message.role == "assistant":
            _decode_assistant(message, target, f"messages[{index}]", request.source)
        elif message.role in ("tool", "function"):
            _decode_result(message, target, f"messages[{index}]")
        else:
            if message.content is None:
                raise missing(f"messages[{index}].content")
            _decode_content(message.content, target, f"messages[{index}].content")
            if message.name is not None:
                target.name = message.name


def _decode_assistant(message: schema.ChatMessage, target: pb.Message, at: str, source: pb.SourceDocument) -> None:
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
        place = f"{at}.tool_calls[{index}]"
        _decode_call(raw, target, place)
        if target.parts[-1].HasField("opaque"):
            source.opaque_paths[f"{at}.parts[{len(target.parts) - 1}]"] = place
    if len(target.parts) > MOST_PARTS:
        raise invalid(f"{at}.tool_calls", f"the message has more than {MOST_PARTS} parts with them; split it")
    if message.function_call and not message.tool_calls:
        call = target.parts.add().tool_call
        call.name, call.arguments_json = message.function_call.name, message.function_call.arguments or ""
    if (signature := thought_signature(message.extra_content)) and target.parts:
        target.parts[max(spoken - 1, 0)].state.MergeFrom(signature)


def thought_signature(extra: schema.ExtraContent | None) -> pb.ReasoningState | None:
    """Vendor G's reasoning state, which is the native format's."""
    signature = extra.google.thought_signature if extra and extra.google else None
    if not signature or is_placeholder(signature):
        return None
    return pb.ReasoningState(data=signature, format="native")


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
    else:
        media.uri = check_address(url, field, "bytes go into a data URL, `data:image/png;base64,...`")
    if not isinstance(image, str) and image.detail:
        media.detail = image.detail


def _keep(raw: msgspec.Raw, kind: str, target: pb.Message | pb.ToolResult) -> None:
    opaque = target.parts.add().opaque
    opaque.format, opaque.type, opaque.json = "chat", kind, str(raw, "utf-8")


# --- canonical -> either side


def encode_call(part: pb.Part, call_id: str, name: str) -> JsonObject:
    """A tool call of a message, under the id and the name that its reader knows."""
    call = part.tool_call
    if call.HasField("text"):
        return {"id": call_id, "type": "custom", "custom": {"name": name, "input": call.text}}
    encoded: JsonObject = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": call.arguments_json or "{}"},
    }
    if is_signed(part):
        encoded["extra_content"] = signed(part.state)
    return encoded


def is_signed(part: pb.Part) -> bool:
    """Whether the part has reasoning state of vendor G."""
    return part.HasField("state") and part.state.format == "native" and not is_placeholder(part.state.data)


def signed(state: pb.ReasoningState) -> JsonObject:
    """`extra_content` with the reasoning state of vendor G."""
    return {"google": {"thought_signature": state.data}}
