"""The request, both directions: a caller's body -> canonical, canonical -> a provider's body."""

from collections.abc import Collection, Mapping

import msgspec
from msgspec import Raw

from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.format import FaceRequest, UpstreamRequest
from umg_grpc.wire.json import JsonObject, check_utf8, given, invalid, json_object, parse, unknown_fields, whole
from umg_grpc.wire.messages import dialect, schema
from umg_grpc.wire.messages.body import encode_fields
from umg_grpc.wire.messages.content import decode_cache, decode_system, decode_turns
from umg_grpc.wire.messages.fields import HARMLESS
from umg_grpc.wire.messages.thinking import decode_thinking
from umg_grpc.wire.messages.threads import continues, decode_thread
from umg_grpc.wire.messages.tools import decode_choice, decode_tools
from umg_grpc.wire.report import Report
from umg_grpc.wire.unknown import note_top_level
from umg_grpc.wire.unsaid import note_unsaid, refuse_several_answers

PATH = "/messages"
VERSION_HEADER, VERSION = "anthropic-version", "2023-06-01"

KNOWN = frozenset(schema.MessagesRequest.__struct_encode_fields__)

# What no provider of the format can be told: without these the answer would be another.
INDISPENSABLE = ("previous_response_id", "conversation_id", "prompt_template", "cached_content", "thread")
UNSAYABLE = (
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "max_tool_calls",
    "verbosity",
    "image_output",
    "audio_output",
    "prediction",
    "include",
    "truncation",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options_json",
    "safety_settings",
    "metadata",
    "safety_identifier",
    "incremental_output",
    "speech_language",
    "media_detail",
    "moderation_json",
)


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str]) -> FaceRequest:
    """The request with its source. Raises UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD.

    Family rules are not applied here. Not shown: a lifetime beside `persistent`; one of 5 minutes is refused.
    """
    asked, unknown = _read(body)
    request = pb.GenerateRequest(model=asked.model)
    source = request.source
    source.format, source.body = "messages", body
    note_top_level(unknown, HARMLESS, source)
    if headers:
        source.headers.update(headers)
    _decode_prompt(asked, request)
    _decode_options(asked, request)
    _decode_reasoning(asked, request)
    _decode_uncarried(asked, source)
    decode_thread(asked, request)
    return FaceRequest(request, asked.stream is True)


def decode_count(body: bytes, headers: Mapping[str, str]) -> pb.GenerateRequest:
    """The prompt of a counting call, with its source. Raises UmgError as `decode_request`."""
    asked = parse(schema.CountRequest, check_utf8(body))
    request = pb.GenerateRequest(model=asked.model)
    request.source.format, request.source.body = "messages", body
    if headers:
        request.source.headers.update(headers)
    _decode_prompt(asked, request)
    return request


_KNOWN = msgspec.json.Decoder(schema.KnownMessagesRequest)


def _read(body: bytes) -> tuple[schema.MessagesRequest, Collection[str]]:
    """Return the body and the names of its unknown fields. Most bodies have none, which one pass finds out."""
    try:
        return _KNOWN.decode(check_utf8(body)), ()
    except (ValueError, RecursionError):
        asked = parse(schema.MessagesRequest, body)
        return asked, unknown_fields(body, KNOWN)


def _decode_prompt(asked: schema.CountRequest, request: pb.GenerateRequest) -> None:
    if asked.system is not None:
        decode_system(asked.system, request)
    if not asked.messages and not continues(asked):
        raise invalid("messages", "expected an array of length at least 1; correct its value")
    decode_turns(asked.messages, request)
    if asked.tools:
        decode_tools(asked.tools, request)


def _decode_options(asked: schema.MessagesRequest, request: pb.GenerateRequest) -> None:
    request.max_output_tokens = whole(asked.max_tokens, "max_tokens") or 0
    for name, value in (("temperature", asked.temperature), ("top_p", asked.top_p), ("top_k", asked.top_k)):
        if value is not None:
            setattr(request, name, value)
    request.stop_sequences.extend(asked.stop_sequences or ())
    request.service_tier = asked.service_tier or ""
    if asked.tool_choice is not None:
        decode_choice(asked.tool_choice, request)
    if asked.cache_control is not None:
        decode_cache(asked.cache_control, request.cache_control, "cache_control")
    if asked.metadata and given(user := asked.metadata.get("user_id", Raw(b"null"))):
        request.user = parse(str, user, "metadata.user_id")


def _decode_reasoning(asked: schema.MessagesRequest, request: pb.GenerateRequest) -> None:
    if asked.thinking is not None:
        decode_thinking(asked.thinking, request.reasoning)
    config = asked.output_config or schema.OutputConfig()
    if config.effort is not None:
        request.reasoning.effort = config.effort
    at, chosen = "output_config.format", config.format
    if chosen is None:
        at, chosen = "output_format", asked.output_format
    if chosen is not None:
        request.response_format.json_schema.schema_json = json_object(chosen.schema, f"{at}.schema")


def _decode_uncarried(asked: schema.MessagesRequest, source: pb.SourceDocument) -> None:
    """Notes what only a provider of the format can be told."""
    if given(asked.mcp_servers) and bytes(asked.mcp_servers) != b"[]":
        source.indispensable_fields.append("mcp_servers")
    if given(asked.container):
        source.indispensable_fields.append("container")
    if given(asked.context_management):
        json_object(asked.context_management, "context_management")
        source.uncarried_fields.append("context_management")
    if asked.metadata and asked.metadata.keys() - {"user_id"}:
        source.uncarried_fields.append("metadata")


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS
) -> UpstreamRequest:
    """The call of `POST /v1/messages`. Raises UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path in
    `field`.
    """
    report = Report()
    headers = {VERSION_HEADER: VERSION}
    if request.source.format == "messages":
        headers |= request.source.headers
        body = dialect.rebuild(request, model, stream, headers, report, quirks)
        return UpstreamRequest(PATH, body, headers, report)
    _refuse(request, report)
    fields: JsonObject = {"model": model, **encode_fields(request, report, quirks)}
    if stream:
        fields["stream"] = True
    return UpstreamRequest(PATH, msgspec.json.encode(fields), headers, report)


def _refuse(request: pb.GenerateRequest, report: Report) -> None:
    """Refuses or reports what no provider of the format can be told."""
    note_unsaid(request, report, indispensable=INDISPENSABLE, unsayable=UNSAYABLE)
    refuse_several_answers(request)
    if request.store and request.source.format != "responses":  # there the gateway keeps them
        report.drop("store")
    if set(request.output_modalities) - {"text"}:
        report.drop("output_modalities")
