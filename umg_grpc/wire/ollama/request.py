"""Requests of Ollama's API for text, decoded into the canonical request."""

from collections.abc import Collection, Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.function_tool_encoding import FunctionDefinition, decode_function
from umg_grpc.wire.core.json_decoding import parse_open
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.ollama import schema
from umg_grpc.wire.ollama.decode_messages import MessageDecoder, decode_images
from umg_grpc.wire.ollama.model_options import decode_options
from umg_grpc.wire.text_format_interface import FaceRequest

CHAT_FACE, GENERATE_FACE = "ollama_chat", "ollama_generate"  # for conversations and for single prompts
DEBUG_FIELD = "_debug_render_only"
UNSUPPORTED_FIELDS = {
    "suffix": "the models of this gateway do not fill in text before a suffix; describe the gap in the prompt",
    "template": "templates are those of the provider; leave it out and write the prompt without one",
    "context": "the gateway makes no such tokens; send the conversation to /api/chat",
    "raw": "prompts get the template of the provider; send the plain prompt and `raw: false`",
}
"""Fields of `POST /api/generate` that cannot be left out without changing the response -> advice for the caller."""


def decode_chat(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `POST /api/chat`; one without messages loads the model. Raise UmgError: MALFORMED_BODY,
    MISSING_FIELD, INVALID_FIELD, UNSUPPORTED_FIELD.
    """
    chat, unknown = parse_open(_KNOWN_CHAT, schema.ChatBody, body, _CHAT_FIELDS)
    request, notes = _begin(CHAT_FACE, chat, body, unknown)
    MessageDecoder(request).decode(chat.messages or [])
    for index, tool in enumerate(chat.tools or ()):
        declared = tool.function
        function = FunctionDefinition(declared.name, declared.description, declared.parameters)
        decode_function(function, request.tools.add().function, f"tools[{index}].function")
    return FaceRequest(request, chat.stream is not False, notes)


def decode_generate(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `POST /api/generate`, as `decode_chat` does. A body without a prompt has no messages."""
    given, unknown = parse_open(_KNOWN_GENERATE, schema.GenerateBody, body, _GENERATE_FIELDS)
    request, notes = _begin(GENERATE_FACE, given, body, unknown)
    for field, advice in UNSUPPORTED_FIELDS.items():
        if getattr(given, field):
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, f"`{field}`: {advice}", field=field)
    if given.system:
        request.instructions.add().text.text = given.system
    if given.prompt:
        message = request.messages.add(role=pb.ROLE_USER)
        decode_images(given.images, message, "images")
        message.parts.add().text.text = given.prompt
    return FaceRequest(request, given.stream is not False, notes)


_KNOWN_CHAT: msgspec.json.Decoder[schema.ChatBody] = msgspec.json.Decoder(schema.KnownChatBody)
_KNOWN_GENERATE: msgspec.json.Decoder[schema.GenerateBody] = msgspec.json.Decoder(schema.KnownGenerateBody)
_CHAT_FIELDS = frozenset(schema.ChatBody.__struct_fields__)
_GENERATE_FIELDS = frozenset(schema.GenerateBody.__struct_fields__)


def _begin(
    face: str, body: schema.SharedBody, source: bytes, unknown: Collection[str]
) -> tuple[pb.GenerateRequest, RequestNotes]:
    if DEBUG_FIELD in unknown:
        message = f"`{DEBUG_FIELD}`: the gateway shows no rendered prompts; leave it out"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=DEBUG_FIELD)
    request, notes = pb.GenerateRequest(model=body.model), RequestNotes(uncarried=list(unknown))
    request.source.format, request.source.body = face, source
    decode_options(body, request, notes)
    return request, notes
