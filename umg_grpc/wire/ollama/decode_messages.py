"""Decoding of the `messages` of a body of `POST /api/chat`."""

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import decode_base64, is_data_url, parse_data_url, sniff
from umg_grpc.wire.core.content_derived_call_ids import ContentIds
from umg_grpc.wire.core.json_decoding import echo, invalid, is_present, json_object
from umg_grpc.wire.core.tool_name_conversion import OpenCalls
from umg_grpc.wire.ollama.schema import Message, ToolCall

MESSAGE_ROLES = {
    "system": pb.ROLE_SYSTEM,
    "developer": pb.ROLE_DEVELOPER,
    "user": pb.ROLE_USER,
    "assistant": pb.ROLE_ASSISTANT,
    "tool": pb.ROLE_TOOL,
}
MEDIA_KINDS = {"image": pb.MEDIA_KIND_IMAGE, "audio": pb.MEDIA_KIND_AUDIO}
"""First part of a media type -> kind of media, for the media that `images` may contain."""


class MessageDecoder:
    """Decoder of a body's messages. It pairs tool results with calls, since clients omit ids, and older ones names."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._request = request
        self._open = OpenCalls()
        self._ids = ContentIds()

    def decode(self, messages: list[Message]) -> None:
        """Append the messages to the request. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the field's path."""
        for index, message in enumerate(messages):
            at, role = f"messages[{index}]", MESSAGE_ROLES.get(message.role.lower())
            if role is None:
                known = ", ".join(f"`{name}`" for name in MESSAGE_ROLES)
                raise invalid(f"{at}.role", f"`{echo(message.role)}` is no role; send one of {known}")
            target = self._request.messages.add(role=role)
            if role == pb.ROLE_TOOL:
                self._decode_result(message, target, at)
                continue
            if message.thinking and role == pb.ROLE_ASSISTANT:
                target.parts.add().reasoning.texts.append(message.thinking)
            decode_images(message.images, target, f"{at}.images")
            if message.content or (role != pb.ROLE_ASSISTANT and not target.parts):
                target.parts.add().text.text = message.content or ""
            if role == pb.ROLE_ASSISTANT:
                self._decode_calls(message.tool_calls or [], target, index)

    def _decode_calls(self, calls: list[ToolCall], target: pb.Message, index: int) -> None:
        if calls:
            self._open = OpenCalls()
        for position, call in enumerate(calls):
            decoded, at = target.parts.add().tool_call, f"messages[{index}].tool_calls[{position}]"
            decoded.name = call.function.name
            decoded.arguments_json = _arguments(call.function.arguments, f"{at}.function.arguments")
            made = self._ids.next(decoded)
            decoded.call_id = call.id or made
            self._open.add(decoded.name, decoded.call_id)

    def _decode_result(self, message: Message, target: pb.Message, at: str) -> None:
        result, name = target.parts.add().tool_result, message.tool_name or message.name or ""
        result.name = name
        result.call_id = message.tool_call_id or self._open.answered(name)
        decode_images(message.images, result, f"{at}.images")
        if message.content:
            result.parts.add().text.text = message.content


def _arguments(raw: Raw, at: str) -> str:
    return json_object(raw, at) if is_present(raw) else "{}"


def decode_images(images: list[str] | None, target: pb.Message | pb.ToolResult, at: str) -> None:
    """Append the files of `images` to a message or result; WAV, too: Ollama's audio models get it by this member. Raise
    UmgError(INVALID_FIELD) for other files.
    """
    for index, image in enumerate(images or ()):
        media, path = target.parts.add().media, f"{at}[{index}]"
        data = parse_data_url(image, path)[1] if is_data_url(image) else decode_base64(image, path)
        kind = MEDIA_KINDS.get((mime := sniff(data)).partition("/")[0])
        if kind is None:
            raise invalid(path, "expected the base64 of an image (PNG, JPEG, GIF, WebP) or of a WAV file; send one")
        media.kind, media.mime_type, media.data = kind, mime, data
