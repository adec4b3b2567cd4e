"""Decoding of the `messages` of a chat request and of their parts. Their tool calls are in `tool_calls.py`."""

from operator import attrgetter

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.provider_reasoning_members import MESSAGE_MEMBERS, State, place_state, read_message
from umg_grpc.wire.chat.thought_signatures import thought_signature
from umg_grpc.wire.chat.tool_calls import CALL_DECODERS
from umg_grpc.wire.core.base64_media import decode_file, decode_image, decode_input_audio
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, invalid, missing, parse
from umg_grpc.wire.core.prompt_cache_breakpoints import decode_breakpoint
from umg_grpc.wire.core.unknown_role_messages import RawTurns, append_opaque_turn
from umg_grpc.wire.facts_beside_request import RequestNotes

MESSAGE_ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
    "tool": pb.ROLE_TOOL,
    "function": pb.ROLE_TOOL,
}
RESULT_ROLES = frozenset({"tool", "function"})
ROLE_NAMES = {value: name for name, value in MESSAGE_ROLES.items() if name != "function"}
MAX_PARTS = 5000  # parts of one message: the schema's limit
_RETURNED = ("reasoning", "reasoning_text", *MESSAGE_MEMBERS)
_returned_members = attrgetter(*_RETURNED)  # members with reasoning and its state, which few messages have
_NONE_RETURNED = (ABSENT_MEMBER,) * len(_RETURNED)
IMAGE_DETAILS = ("auto", "low", "high", "original")


def decode_messages(messages: list[schema.ChatMessage], request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode the messages; one with an unknown role stays raw JSON. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with
    the path. `notes`: receives the paths of raw messages, and of files, which some families do not accept.
    """
    raw_turns: RawTurns | None = None
    targets = request.messages
    for index, message in enumerate(messages):
        role, content = message.role, message.content
        if role not in MESSAGE_ROLES:
            raw_turns = raw_turns or RawTurns(request.source, "messages")
            append_opaque_turn(request, notes, raw_turns[index], role, f"messages[{index}].role")
            continue
        target = targets.add(role=MESSAGE_ROLES[role])
        if role == "assistant":
            _decode_assistant(message, target, f"messages[{index}]", notes)
        elif role in RESULT_ROLES:
            _decode_result(message, target, f"messages[{index}]", notes)
        else:
            if isinstance(content, str):
                target.parts.add().text.text = content
            elif content is None:
                raise missing(f"messages[{index}].content")
            else:
                _decode_content(content, target, f"messages[{index}].content", notes)
            if message.name is not None:
                target.name = message.name
        if (mark := message.cache_control) is not ABSENT_MEMBER and target.parts:
            decode_breakpoint(mark, target.parts[-1])


def _decode_assistant(message: schema.ChatMessage, target: pb.Message, at: str, notes: RequestNotes) -> None:
    if message.name is not None:
        target.name = message.name
    thoughts, state = message.reasoning_content, State()
    if _returned_members(message) != _NONE_RETURNED:
        thoughts = thoughts or _text(message.reasoning, at) or _text(message.reasoning_text, at)
        state = _state(message)
    if thoughts:
        target.parts.add().reasoning.texts.append(thoughts)
    if message.content:  # "" has no content, and other formats reject an empty text
        _decode_content(message.content, target, f"{at}.content", notes)
    if message.refusal:
        target.parts.add().refusal.text = message.refusal
    if message.audio:
        media = target.parts.add().media
        media.kind, media.file_id, media.media_id = pb.MEDIA_KIND_AUDIO, message.audio.id, message.audio.id
    count = len(target.parts)
    for index, raw in enumerate(message.tool_calls or ()):
        path = f"{at}.tool_calls[{index}]"
        kind = parse(schema.Kind, raw, path).type or "function"
        if decode := CALL_DECODERS.get(kind):
            decode(raw, target.parts.add(), path)
        else:  # types grow with the format: an unknown one is kept as raw JSON
            notes.opaque_paths[f"{at}.parts[{len(target.parts)}]"] = path
            _add_opaque(raw, kind, target)
    if len(target.parts) > MAX_PARTS:
        raise invalid(f"{at}.tool_calls", f"the message has more than {MAX_PARTS} parts with them; split it")
    if message.function_call and not message.tool_calls:
        call = target.parts.add().tool_call
        call.name, call.arguments_json = message.function_call.name, message.function_call.arguments or ""
    if (signature := thought_signature(message.extra_content)) and target.parts:
        target.parts[max(count - 1, 0)].state.MergeFrom(signature)
    place_state(state, target)


def _text(raw: msgspec.Raw, at: str) -> str:
    return parse(str, raw, at) if bytes(raw).startswith(b'"') else ""


def _state(message: schema.ChatMessage) -> State:
    """Return the reasoning state that the caller sends back in a message; {} if it cannot be decoded."""
    try:
        return read_message(message)
    except (ValueError, RecursionError):
        return {}


def _decode_result(message: schema.ChatMessage, target: pb.Message, at: str, notes: RequestNotes) -> None:
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
        _decode_content(message.content, result, f"{at}.content", notes)


def _decode_content(
    content: str | list[msgspec.Raw], target: pb.Message | pb.ToolResult, at: str, notes: RequestNotes
) -> None:
    if isinstance(content, str):
        target.parts.add().text.text = content
        return
    for index, raw in enumerate(content):
        _decode_part(raw, target, f"{at}[{index}]", notes)


def _decode_part(raw: msgspec.Raw, target: pb.Message | pb.ToolResult, at: str, notes: RequestNotes) -> None:
    match parse(schema.Kind, raw, at).type:
        case "text":
            text, part = parse(schema.TextPart, raw, at), target.parts.add()
            part.text.text = text.text
            _decode_marks(text, part)
        case "image_url":
            image, part = parse(schema.ImagePart, raw, at), target.parts.add()
            _decode_image(image.image_url, part.media, f"{at}.image_url")
            _decode_marks(image, part)
        case "input_audio":
            sound, part = parse(schema.AudioPart, raw, at), target.parts.add()
            audio = sound.input_audio
            decode_input_audio(audio.data, audio.format, part.media, f"{at}.input_audio.data")
            _decode_marks(sound, part)
        case "refusal":
            target.parts.add().refusal.text = parse(schema.RefusalPart, raw, at).refusal
        case "file":
            notes.family.append(at)
            file, part = parse(schema.FilePart, raw, at), target.parts.add()
            _decode_file(file.file, part.media, f"{at}.file")
            _decode_marks(file, part)
        case None:
            raise missing(f"{at}.type")
        case unknown:  # types grow with the format: an unknown one is kept as raw JSON
            _add_opaque(raw, unknown, target)


def _decode_marks(marked: schema.Marked, part: pb.Part) -> None:
    if (mark := marked.prompt_cache_breakpoint) is not ABSENT_MEMBER:
        decode_breakpoint(mark, part)
    if (mark := marked.cache_control) is not ABSENT_MEMBER:
        decode_breakpoint(mark, part)


def _decode_file(file: schema.FileSource, media: pb.MediaPart, at: str) -> None:
    media.kind, media.filename = pb.MEDIA_KIND_DOCUMENT, file.filename or ""
    if file.file_data is None:
        if file.file_id is None:
            raise missing(f"{at}.file_data")
        media.file_id = file.file_id
    elif file.file_id is not None:
        raise invalid(f"{at}.file_id", "`file_data` is present, too; send one of them")
    else:
        decode_file(file.file_data, media, f"{at}.file_data")


def _decode_image(image: schema.ImageUrl | str, media: pb.MediaPart, at: str) -> None:
    if isinstance(image, str):
        decode_image(image, media, at)
    else:
        decode_image(image.url, media, f"{at}.url")
        media.detail = image.detail or ""


def _add_opaque(raw: msgspec.Raw, kind: str, target: pb.Message | pb.ToolResult) -> None:
    opaque = target.parts.add().opaque
    opaque.format, opaque.type, opaque.json = "chat", kind, str(raw, "utf-8")
