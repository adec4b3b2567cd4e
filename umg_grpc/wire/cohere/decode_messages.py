"""Decoding of the `messages` of a Cohere chat request."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.cohere import schema
from umg_grpc.wire.core.base64_media import decode_image
from umg_grpc.wire.core.json_decoding import echo, invalid, missing, parse

MESSAGE_ROLES = {"system": pb.ROLE_SYSTEM, "user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT, "tool": pb.ROLE_TOOL}
MAX_PARTS = 5000  # parts of one message: the schema's limit

Target: TypeAlias = pb.Message | pb.ToolResult
Decode: TypeAlias = Callable[[Raw, Target, str], None]


def decode_messages(messages: Sequence[schema.ChatMessage], request: pb.GenerateRequest) -> None:
    """Decode the messages of a body. Raise UmgError(MISSING_FIELD, INVALID_FIELD) with the path of the field."""
    for index, message in enumerate(messages):
        at, target = f"messages[{index}]", request.messages.add(role=MESSAGE_ROLES[message.role])
        if message.role == "assistant":
            _decode_assistant(message, target, at)
        elif message.role == "tool":
            _decode_result(message, target, at)
        elif message.content is None:
            raise missing(f"{at}.content")
        else:
            _decode_content(message.content, target, f"{at}.content", ROLE_PARTS[message.role])


def _decode_assistant(message: schema.ChatMessage, target: pb.Message, at: str) -> None:
    """Decode an assistant's message. Its `tool_plan` becomes a text before the calls, as in other formats."""
    if message.content:
        _decode_content(message.content, target, f"{at}.content", ROLE_PARTS["assistant"])
    if message.tool_plan:
        target.parts.add().text.text = message.tool_plan
    if not (message.content or message.tool_plan or message.tool_calls):
        raise missing(f"{at}.content")
    if len(target.parts) + len(message.tool_calls or ()) > MAX_PARTS:
        raise invalid(f"{at}.tool_calls", f"the message has more than {MAX_PARTS} parts with them; split it")
    for called in message.tool_calls or ():
        call = target.parts.add().tool_call
        call.call_id, call.name, call.arguments_json = called.id, called.function.name, called.function.arguments


def _decode_result(message: schema.ChatMessage, target: pb.Message, at: str) -> None:
    if message.tool_call_id is None:
        raise missing(f"{at}.tool_call_id")
    if message.content is None:
        raise missing(f"{at}.content")
    result = target.parts.add().tool_result
    result.call_id = message.tool_call_id
    if message.content:
        _decode_content(message.content, result, f"{at}.content", ROLE_PARTS["tool"])


def _decode_content(content: str | Sequence[Raw], target: Target, at: str, kinds: Mapping[str, Decode]) -> None:
    if isinstance(content, str):
        target.parts.add().text.text = content
        return
    if len(content) > MAX_PARTS:
        raise invalid(at, f"the message has more than {MAX_PARTS} parts; split it")
    for index, raw in enumerate(content):
        place = f"{at}[{index}]"
        kind = parse(schema.Kind, raw, place).type
        if kind is None:
            raise missing(f"{place}.type")
        if kind not in kinds:
            expected = ", ".join(f"`{name}`" for name in kinds)
            raise invalid(f"{place}.type", f"expected {expected}, got `{echo(kind)}`; send one of these")
        kinds[kind](raw, target, place)


def _text(raw: Raw, target: Target, at: str) -> None:
    target.parts.add().text.text = parse(schema.TextContent, raw, at).text


def _image(raw: Raw, target: Target, at: str) -> None:
    image, media = parse(schema.ImageContent, raw, at).image_url, target.parts.add().media
    decode_image(image.url, media, f"{at}.image_url.url")
    media.detail = image.detail or ""


def _thinking(raw: Raw, target: Target, at: str) -> None:
    if thoughts := parse(schema.ThinkingContent, raw, at).thinking:
        target.parts.add().reasoning.texts.append(thoughts)


def _document(raw: Raw, target: Target, at: str) -> None:
    document = parse(schema.DocumentContent, raw, at).document
    parse(schema.Document, document, f"{at}.document")
    # the text of its JSON, with its id, since results of other formats are texts
    target.parts.add().text.text = str(document, "utf-8")


ROLE_PARTS: Mapping[str, Mapping[str, Decode]] = {
    "system": {"text": _text},
    "user": {"text": _text, "image_url": _image},
    "assistant": {"text": _text, "thinking": _thinking},
    "tool": {"text": _text, "document": _document},
}
"""Role of a message -> decoders of its parts, by type."""
