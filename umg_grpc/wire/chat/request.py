"""Chat requests: a caller's body decoded into the canonical request, and that request encoded for a provider."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import compress
from operator import attrgetter, is_not
from typing import assert_never, get_args

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.text_model_rules import ANY_FIELDS, chat_words
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.chat import passthrough_request, schema
from umg_grpc.wire.chat.decode_messages import IMAGE_DETAILS, decode_messages
from umg_grpc.wire.chat.encode_messages import MessageEncoder
from umg_grpc.wire.chat.passthrough_reasoning import edit_reasoning
from umg_grpc.wire.chat.reasoning_options import decode_reasoning, encode_chat_reasoning, encode_reasoning
from umg_grpc.wire.chat.recognized_json_members import HARMLESS_MEMBERS
from umg_grpc.wire.chat.structured_output import add_instructions, encode_json_format
from umg_grpc.wire.chat.tool_call_id_positions import CALL_IDS
from umg_grpc.wire.chat.tools import decode_tools, encode_tools
from umg_grpc.wire.chat.vendor_message_rules import fit_encoded_messages
from umg_grpc.wire.chat.web_search_options import decode_search, encode_search
from umg_grpc.wire.core.json_decoding import (
    INT64_MAX,
    JsonObject,
    is_present,
    json_object,
    json_text,
    missing,
    parse_open,
    whole,
)
from umg_grpc.wire.core.local_stop_sequences import local_stops, with_stop_limit
from umg_grpc.wire.core.prompt_cache_breakpoints import RELAYED_MEMBER
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.unknown_field_detection import record_unknown_fields
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.model_quirks import (
    REASONING_PARTS,
    changed_fields,
    check_search,
    copied_fields,
    fit_request,
    supports_reasoning,
    with_state,
)
from umg_grpc.wire.protocol_choice import fit_effort_to_functions
from umg_grpc.wire.text_format_interface import FaceRequest, UpstreamRequest
from umg_grpc.wire.unsupported_field_detection import INDISPENSABLE_FIELDS, report_unsupported

CHAT_PATH = "/chat/completions"

# Fields of the same name and type on both sides.
COPIED_FIELDS = (
    *("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty", "logprobs", "parallel_tool_calls"),
    *("store", "verbosity", "user", "safety_identifier", "service_tier", "prompt_cache_key"),
)
_copied_fields = attrgetter(*COPIED_FIELDS)

# (name in the body, canonical name, maximum); of the two limits the newer one takes precedence, so it is last.
WHOLE_NUMBERS = (
    ("seed", "seed", INT64_MAX),
    ("n", "candidate_count", MAX_COUNT),
    ("top_logprobs", "top_logprobs", MAX_COUNT),
    ("max_tokens", "max_output_tokens", MAX_COUNT),
    ("max_completion_tokens", "max_output_tokens", MAX_COUNT),
)
_whole_numbers = attrgetter(*(name for name, _, _ in WHOLE_NUMBERS))

# Fields that few bodies have: they are compared with the defaults all at once.
RARE_FIELDS = (
    *("logit_bias", "metadata", "vendorn_thinking_to_content", "prompt_cache_retention", "prompt_cache_options"),
    *("moderation", "response_format", "modalities", "audio", "prediction", "thinking", "enable_thinking"),
    *("parameters", "extra_body", "vendorg", "google", "generation_config", "web_search_options"),
    "search_parameters",
)
_rare_fields = attrgetter(*RARE_FIELDS)
_tool_fields = attrgetter("tools", "functions", "tool_choice", "function_call")
_DEFAULTS = schema.ChatRequest(model="m", messages=[])
_RARE_DEFAULTS, _NO_TOOLS = _rare_fields(_DEFAULTS), _tool_fields(_DEFAULTS)

# Unknown at the top level of a body, except that family famQ has them inside `parameters` (text document, chat rule 2).
MISPLACED_MEMBERS = ("incremental_output", "enable_search", "search_options", "asr_options")

WIRE_NAMES = {name: name for name in (*COPIED_FIELDS, "seed", "top_logprobs", "prompt_cache_retention")}
WIRE_NAMES |= {"max_output_tokens": "max_tokens", "candidate_count": "n"}
del WIRE_NAMES["top_k"]  # the providers of the format itself reject it

# Models whose providers reject `max_tokens` in favour of its newer name; others may not know the newer name.
NEWER_LIMIT = re.compile(r"(?:.*/)?(?:famO-|gpt-[5-9]|o[1-9](?:-|$))")
MAX_STOPS = 4

DEFAULT_AUDIO_FORMAT = "wav"  # audio format where the request has none

SERVICE_TIERS = get_args(schema.ServiceTier)

# Fields that no chat provider supports, beside the indispensable ones.
UNSUPPORTED_FIELDS = ("top_k", "max_tool_calls", "include", "cache_control", "safety_settings", "image_output")
UNSUPPORTED_WITH_TOP_K = tuple(name for name in UNSUPPORTED_FIELDS if name != "top_k")


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `POST /v1/chat/completions`. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD,
    UNSUPPORTED_FIELD for a file part. An option at the top level wins over the same one in `parameters`; the
    specification leaves this open.
    """
    chat, unknown = parse_open(_KNOWN, schema.ChatRequest, body, passthrough_request.KNOWN_FIELDS)
    request, notes = pb.GenerateRequest(model=chat.model), RequestNotes()
    source = request.source
    source.format, source.body = "chat", body
    decode_messages(chat.messages, request, notes)
    if _tool_fields(chat) != _NO_TOOLS:
        decode_tools(chat, request)
    _decode_options(chat, request)
    if chat.temperature is not None:
        notes.family.append("temperature")
    if chat.top_p is not None:
        notes.family.append("top_p")
    if _rare_fields(chat) != _RARE_DEFAULTS:
        _decode_rare_fields(chat, request, notes)
    if unknown:
        record_unknown_fields(unknown, HARMLESS_MEMBERS, notes)
        notes.family.extend(name for name in MISPLACED_MEMBERS if name in unknown)
    if headers:
        source.headers.update(headers)
    return FaceRequest(request, chat.stream is True, notes)


_KNOWN: msgspec.json.Decoder[schema.ChatRequest] = msgspec.json.Decoder(schema.KnownChatRequest)
_is_set = partial(is_not, None)


def _decode_options(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    copied, numbers = _copied_fields(chat), _whole_numbers(chat)
    for name, value in compress(zip(COPIED_FIELDS, copied, strict=True), map(_is_set, copied)):
        setattr(request, name, value)
    for (name, target, maximum), number in compress(zip(WHOLE_NUMBERS, numbers, strict=True), map(_is_set, numbers)):
        setattr(request, target, whole(number, name, maximum))
    if chat.stop:
        request.stop_sequences.extend([chat.stop] if isinstance(chat.stop, str) else chat.stop)
    if options := chat.stream_options:
        if options.include_usage:
            request.face_hints.include_usage = True
        if options.include_obfuscation is not None:
            request.include_obfuscation = options.include_obfuscation
    if chat.reasoning_effort:
        request.reasoning.effort = chat.reasoning_effort


def _decode_rare_fields(chat: schema.ChatRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    if chat.logit_bias:
        request.logit_bias.update(chat.logit_bias)
    if chat.metadata:
        request.metadata.update(chat.metadata)
    if chat.vendorn_thinking_to_content:
        request.face_hints.thinking_to_content = True
    _decode_cache(chat, request)
    _decode_output(chat, request)
    decode_reasoning(chat, request, notes)
    decode_search(chat, request, notes)


def _decode_cache(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if chat.prompt_cache_retention:
        request.prompt_cache_retention = chat.prompt_cache_retention.replace("-", "_")
    if is_present(chat.prompt_cache_options):
        request.prompt_cache_options_json = json_object(chat.prompt_cache_options, "prompt_cache_options")
    if is_present(chat.moderation):
        request.moderation_json = json_object(chat.moderation, "moderation")


def _decode_format(chosen: schema.ResponseFormat, target: pb.ResponseFormat) -> None:
    if chosen.type == "text":
        target.text.SetInParent()
    elif chosen.type == "json_object":
        target.json.SetInParent()
    elif chosen.json_schema is None:
        raise missing("response_format.json_schema")
    else:
        described = chosen.json_schema
        target.json_schema.name = described.name
        target.json_schema.description = described.description or ""
        if is_present(described.schema):
            target.json_schema.schema_json = json_object(described.schema, "response_format.json_schema.schema")
        if described.strict is not None:
            target.json_schema.strict = described.strict


def _decode_output(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if chat.response_format:
        _decode_format(chat.response_format, request.response_format)
    if chat.modalities:
        request.output_modalities.extend(chat.modalities)
    if chat.audio:
        voice = chat.audio.voice
        request.audio_output.format = chat.audio.format
        request.audio_output.voice_json = voice if isinstance(voice, str) else msgspec.json.encode(voice).decode()
    if chat.prediction:
        content = chat.prediction.content
        for text in [content] if isinstance(content, str) else [part.text for part in content]:
            request.prediction.add().text.text = text


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of a provider's `POST /chat/completions`: the caller's own body of this format with only the
    necessary changes, else a new body. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path.
    """
    report, source, stops = Report(), request.source, tuple[str, ...]()
    is_own = source.format == "chat"
    if not is_own or quirks is not NO_QUIRKS:
        request, notes = fit_request(request, notes, quirks, report)
        quirks = with_state(request, quirks)
        quirks = with_stop_limit(request, quirks, "stop", None if is_own else MAX_STOPS)
        stops = local_stops(request, quirks, report)
        request, notes = fit_effort_to_functions(request, notes, quirks, report)
    if is_own:
        edits, headers = dict[str, JsonObject](), source.headers
        if changed := [*notes.edited, *changed_fields(request, quirks)]:
            edits = _encode_edits(changed, request, report, quirks)
        body = passthrough_request.rebuild(request, model, stream, edits, report, quirks)
        body = CALL_IDS.restored_body(body, request)
        return UpstreamRequest(CHAT_PATH, body, dict(headers) if headers else {}, report, local_stops=stops)
    body = _encode_body(request, model, stream, quirks, notes, report)
    return UpstreamRequest(CHAT_PATH, body, {}, report, local_stops=stops)


def _encode_body(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks, notes: RequestNotes, report: Report
) -> bytes:
    unsupported = UNSUPPORTED_WITH_TOP_K if quirks.top_k else UNSUPPORTED_FIELDS
    if quirks.breakpoints == RELAYED_MEMBER:
        unsupported = tuple(name for name in unsupported if name != "cache_control")
    report_unsupported(request, notes, report, indispensable=INDISPENSABLE_FIELDS, unsupported=unsupported)
    if request.media_detail and request.media_detail not in IMAGE_DETAILS:
        report.drop("media_detail")
    words = chat_words(model)
    fields: JsonObject = {"model": model}
    for encoder in (_encode_messages, encode_tools, _encode_sampling, _encode_output):
        fields |= encoder(request, report, quirks)
    for name in words.parameters:
        fields.pop(name, None)
    if supports_reasoning(request, quirks, report):
        fields |= encode_reasoning(request, words, stream, report, quirks)
    fields |= encode_search(request, words, report, quirks)
    alone = fields.keys().isdisjoint({"tools", "functions"})
    if alone and not words.searches_alone and fields.pop("web_search_options", None) is not None:
        check_search(request)
        report.drop("web_search")
    if notes.cache_key and quirks.takes_cache_key:
        fields.setdefault("prompt_cache_key", notes.cache_key)
    if NEWER_LIMIT.match(model) and "max_tokens" in fields:
        fields["max_completion_tokens"] = fields.pop("max_tokens")
    if request.HasField("source"):  # the format of the source document may not have these rules
        _apply_provider_rules(fields, report)
    add_instructions(fields, request, quirks)
    if request.tools and "tools" not in fields:
        fields.pop("parallel_tool_calls", None)  # rejected without tools
    if stream:
        options: JsonObject = {"include_usage": True}
        if request.HasField("include_obfuscation"):
            options["include_obfuscation"] = request.include_obfuscation
        fields |= {"stream": True, "stream_options": options}
    fit_encoded_messages(fields, quirks, report)
    fit_members(fields, quirks, "chat", report)
    return msgspec.json.encode(fields)


def _encode_edits(
    fields: Iterable[str], request: pb.GenerateRequest, report: Report, quirks: Quirks
) -> dict[str, JsonObject]:
    edited = dict.fromkeys(fields)
    if "messages" in edited:
        edited.pop(REASONING_PARTS, None)  # the messages are encoded anew, reasoning included
    encoders = dict.fromkeys(FIELD_ENCODERS[field] for field in edited)
    written = {encoder: encoder(request, report, quirks) for encoder in encoders}
    return {field: written[FIELD_ENCODERS[field]] for field in edited}


def _apply_provider_rules(fields: JsonObject, report: Report) -> None:
    """Change or remove members that only providers of this format reject, for example a tool choice without tools."""
    if "tools" not in fields:
        fields.pop("parallel_tool_calls", None)
        if fields.pop("tool_choice", "auto") not in ("auto", "none"):
            report.drop("tool_choice")
    # 0 alternatives alone, the default of other formats, request no log probabilities
    if "top_logprobs" in fields and not fields.setdefault("logprobs", fields["top_logprobs"] != 0):
        del fields["logprobs"], fields["top_logprobs"]


def _encode_messages(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    return {"messages": MessageEncoder(request, report, quirks).encode()}


def _encode_sampling(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    fields = copied_fields(request, WIRE_NAMES, SERVICE_TIERS, quirks, report)
    if stops := request.stop_sequences[: quirks.max_stop_sequences]:
        fields["stop"] = list(stops)
    if quirks.top_k and request.HasField("top_k"):
        fields["top_k"] = int(request.top_k) if request.top_k.is_integer() else request.top_k
    if request.logit_bias:
        fields["logit_bias"] = dict(request.logit_bias)
    if request.metadata:
        fields["metadata"] = dict(request.metadata)
    if request.prompt_cache_options_json:
        fields["prompt_cache_options"] = json_text(request.prompt_cache_options_json, "prompt_cache_options_json")
    if request.moderation_json:
        fields["moderation"] = json_text(request.moderation_json, "moderation_json")
    return fields


def _encode_output(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    fields = JsonObject()
    match request.response_format.WhichOneof("kind"):
        case "text":
            fields["response_format"] = {"type": "text"}
        case "json" | "json_schema":
            fields |= encode_json_format(request.response_format, report, quirks)
        case "enum_text":
            raise UmgError(
                pb.ERROR_REASON_UNTRANSLATABLE,
                "`response_format`: chat has no bare enum; request JSON",
                field="response_format",
            )
        case None:
            pass
        case unhandled:
            assert_never(unhandled)
    if request.output_modalities:
        fields["modalities"] = list(request.output_modalities)
    if request.HasField("audio_output"):
        voice = request.audio_output.voice_json
        named = json_text(voice, "audio_output.voice_json") if voice.startswith("{") else voice
        if not request.audio_output.format:  # required here
            report.drop("audio_output.format", DEFAULT_AUDIO_FORMAT)
        fields["audio"] = {"format": request.audio_output.format or DEFAULT_AUDIO_FORMAT, "voice": named}
    if request.prediction:
        for position, part in enumerate(request.prediction):
            if not part.HasField("text"):
                field = f"prediction[{position}]"
                raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, f"{field}: a prediction is text in chat", field=field)
        parts = [{"type": "text", "text": part.text.text} for part in request.prediction]
        fields["prediction"] = {"type": "content", "content": parts if len(parts) > 1 else parts[0]["text"]}
    return fields


def _encode_chat_reasoning(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    return encode_chat_reasoning(request, report, quirks) if supports_reasoning(request, quirks, report) else {}


# Encoder of each canonical field that the rules of a family changed after decoding, or that the provider rejects.
FIELD_ENCODERS: dict[str, Callable[[pb.GenerateRequest, Report, Quirks], JsonObject]] = {
    **dict.fromkeys(("messages", "instructions"), _encode_messages),
    **dict.fromkeys(("tools", "tool_choice"), encode_tools),
    **dict.fromkeys(
        (
            *("temperature", "top_p", "top_k", "max_output_tokens", "stop_sequences"),
            *("parallel_tool_calls", "user", "service_tier"),
        ),
        _encode_sampling,
    ),
    "response_format": _encode_output,
    REASONING_PARTS: edit_reasoning,
    "reasoning": _encode_chat_reasoning,
    "search": lambda request, report, quirks: encode_search(request, ANY_FIELDS, report, quirks),
}
