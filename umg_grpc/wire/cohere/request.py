"""Decoding of the body of Cohere's `POST /v2/chat`."""

from collections.abc import Mapping
from itertools import islice

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.cohere import schema
from umg_grpc.wire.cohere.decode_messages import decode_messages
from umg_grpc.wire.cohere.documents import decode_documents
from umg_grpc.wire.core.function_tool_encoding import decode_function
from umg_grpc.wire.core.json_decoding import INT64_MAX, invalid, is_present, json_object, parse_open, whole
from umg_grpc.wire.core.unknown_field_detection import Fields, by_type, record_unknown_fields
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.text_format_interface import FaceRequest

FACE_NAME = "cohere"

COPIED_MEMBERS = {
    "temperature": "temperature",
    "p": "top_p",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "logprobs": "logprobs",
}  # member of a body -> canonical field that takes its value unchanged
UNCARRIED_MEMBERS = ("safety_mode", "priority")  # members without a canonical form, which are reported
CHOICE_MODES = {"REQUIRED": pb.TOOL_CHOICE_MODE_REQUIRED, "NONE": pb.TOOL_CHOICE_MODE_NONE}
THINKING_MODES = {"enabled": pb.REASONING_MODE_ENABLED, "disabled": pb.REASONING_MODE_DISABLED}
NOT_CITED = frozenset({"DISABLED", "OFF"})
CITATION_QUALITIES = frozenset({"FAST", "ACCURATE"})
"""Modes of citations that differ in quality alone, for which other formats have no option."""

RAW_FIELDS = Fields(
    schema.ChatRequest,
    {
        (schema.ChatMessage, "content"): by_type(
            {
                "text": schema.TextContent,
                "thinking": schema.ThinkingContent,
                "image_url": schema.ImageContent,
                "document": schema.DocumentContent,
            }
        ),
        (schema.ChatRequest, "documents"): lambda _: schema.Document,
    },
    {},
)
_KNOWN: msgspec.json.Decoder[schema.ChatRequest] = msgspec.json.Decoder(schema.KnownChatRequest)
_NAMES = frozenset(schema.ChatRequest.__struct_encode_fields__)


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `POST /v2/chat`. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD."""
    chat, unknown = parse_open(_KNOWN, schema.ChatRequest, body, _NAMES)
    request, notes = pb.GenerateRequest(model=chat.model), RequestNotes()
    request.source.format, request.source.body = FACE_NAME, body
    request.source.headers.update(headers)
    decode_messages(chat.messages, request)
    cited = (
        f"messages[{index}].citations" for index, message in enumerate(chat.messages) if is_present(message.citations)
    )
    notes.uncarried.extend(islice(cited, 1))  # the first is enough: each response of a conversation may have some
    _decode_tools(chat, request)
    _decode_format(chat, request)
    _decode_documents(chat, request, notes)
    _decode_options(chat, request)
    notes.uncarried.extend(name for name in UNCARRIED_MEMBERS if getattr(chat, name) is not None)
    if unknown:
        record_unknown_fields(unknown, (), notes)
    return FaceRequest(request, chat.stream is True, notes)


def _decode_tools(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    for index, tool in enumerate(chat.tools or ()):
        function = request.tools.add().function
        decode_function(tool.function, function, f"tools[{index}].function")
        if chat.strict_tools is not None:
            function.strict = chat.strict_tools
    if chat.tool_choice is not None:
        if chat.tool_choice == "REQUIRED" and not chat.tools:
            raise invalid("tool_choice", "`REQUIRED` needs a tool; add one to `tools`, or leave it out")
        request.tool_choice.mode = CHOICE_MODES[chat.tool_choice]


def _decode_format(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if (wanted := chat.response_format) is None:
        return
    name = "json_schema" if is_present(wanted.json_schema) else "schema"
    if is_present(schema_of := getattr(wanted, name)):
        if wanted.type == "text":
            raise invalid(f"response_format.{name}", "`text` takes none; send the type `json_object`")
        text = json_object(schema_of, f"response_format.{name}")
        request.response_format.json_schema.schema_json = text
    elif wanted.type == "text":
        request.response_format.text.SetInParent()
    else:
        request.response_format.json.SetInParent()


def _decode_documents(chat: schema.ChatRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode the documents. The model may not cite them in a JSON response (docs.cohere.com, Structured Outputs)."""
    mode = chat.citation_options.mode if chat.citation_options is not None else None
    if mode in CITATION_QUALITIES:
        notes.uncarried.append("citation_options.mode")
    if chat.documents:
        has_json = chat.response_format is not None and chat.response_format.type != "text"
        decode_documents(chat.documents, request, citable=not has_json and mode not in NOT_CITED)


def _decode_options(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    for name, canonical in COPIED_MEMBERS.items():
        if (value := getattr(chat, name)) is not None:
            setattr(request, canonical, value)
    if (limit := whole(chat.max_tokens, "max_tokens")) is not None:
        request.max_output_tokens = limit
    if (seed := whole(chat.seed, "seed", INT64_MAX)) is not None:
        request.seed = seed
    if most_likely := whole(chat.k, "k"):  # 0 is the default
        request.top_k = most_likely
    request.stop_sequences.extend(chat.stop_sequences or ())
    if (thinking := chat.thinking) is None:
        return
    request.reasoning.mode = THINKING_MODES[thinking.type]
    if (budget := whole(thinking.token_budget, "thinking.token_budget")) is not None:
        if thinking.type == "disabled":
            raise invalid("thinking.token_budget", "`disabled` takes none; leave it out, or send `enabled`")
        request.reasoning.budget_tokens = budget
