"""Messages requests: a caller's body decoded to the canonical request, and that request encoded for a provider."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD
from umg_grpc.wire.core.json_decoding import (
    JsonObject,
    check_utf8,
    invalid,
    is_present,
    json_object,
    parse,
    parse_open,
    whole,
)
from umg_grpc.wire.core.local_stop_sequences import local_stops, with_stop_limit
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.unknown_field_detection import record_unknown_fields
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.messages import passthrough_request, schema
from umg_grpc.wire.messages.api_version import API_VERSION, VERSION_HEADER, check_version, provider_version
from umg_grpc.wire.messages.cache_control import decode_cache
from umg_grpc.wire.messages.context_management import decode_edits
from umg_grpc.wire.messages.decode_messages import decode_messages, decode_system
from umg_grpc.wire.messages.encode_body import encode_fields
from umg_grpc.wire.messages.message_threads import continues, decode_thread
from umg_grpc.wire.messages.reasoning_options import decode_thinking
from umg_grpc.wire.messages.recognized_json_members import HARMLESS_MEMBERS
from umg_grpc.wire.messages.tools import decode_choice, decode_tools
from umg_grpc.wire.model_quirks import fit_request, with_state
from umg_grpc.wire.text_format_interface import FaceRequest, UpstreamRequest
from umg_grpc.wire.unsupported_field_detection import TEXT_UNSUPPORTED, check_text_request

MESSAGES_PATH = "/messages"

KNOWN_FIELDS = frozenset(schema.MessagesRequest.__struct_encode_fields__)
UNSUPPORTED_FIELDS = tuple(name for name in TEXT_UNSUPPORTED if name != "user")


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `POST /v1/messages`. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD. 5 minutes
    beside `persistent`, which the specifications leave open, are rejected.
    """
    check_version(headers)
    parsed, unknown = parse_open(_KNOWN, schema.MessagesRequest, body, KNOWN_FIELDS)
    request, notes = pb.GenerateRequest(model=parsed.model), RequestNotes()
    source = request.source
    source.format, source.body = "messages", body
    record_unknown_fields(unknown, HARMLESS_MEMBERS, notes)
    if headers:
        source.headers.update(headers)
    _decode_prompt(parsed, request, notes)
    _decode_options(parsed, request)
    _decode_reasoning(parsed, request)
    _decode_uncarried(parsed, notes)
    decode_thread(parsed, request, notes)
    return FaceRequest(request, parsed.stream is True, notes)


def decode_count(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.GenerateRequest]:
    """Decode the body of a token counting call. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD."""
    check_version(headers)
    parsed = parse(schema.CountRequest, check_utf8(body))
    request, notes = pb.GenerateRequest(model=parsed.model), RequestNotes()
    request.source.format, request.source.body = "messages", body
    if headers:
        request.source.headers.update(headers)
    _decode_prompt(parsed, request, notes)
    _decode_edits(parsed, notes)
    return DecodedRequest(request, notes)


_KNOWN: msgspec.json.Decoder[schema.MessagesRequest] = msgspec.json.Decoder(schema.KnownMessagesRequest)


def _decode_prompt(parsed: schema.CountRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    if parsed.system is not None:
        decode_system(parsed.system, request)
    if not parsed.messages and not continues(parsed):
        raise invalid("messages", "expected an array of length at least 1; correct its value")
    decode_messages(parsed.messages, request, notes)
    if parsed.tools:
        decode_tools(parsed.tools, request, notes)


def _decode_options(parsed: schema.MessagesRequest, request: pb.GenerateRequest) -> None:
    request.max_output_tokens = whole(parsed.max_tokens, "max_tokens") or 0
    for name, value in (("temperature", parsed.temperature), ("top_p", parsed.top_p), ("top_k", parsed.top_k)):
        if value is not None:
            setattr(request, name, value)
    request.stop_sequences.extend(parsed.stop_sequences or ())
    request.service_tier = parsed.service_tier or ""
    if parsed.tool_choice is not None:
        decode_choice(parsed.tool_choice, request)
    if parsed.cache_control is not None:
        decode_cache(parsed.cache_control, request.cache_control, "cache_control")
    if parsed.metadata and is_present(user := parsed.metadata.get("user_id", Raw(b"null"))):
        request.user = parse(str, user, "metadata.user_id")


def _decode_reasoning(parsed: schema.MessagesRequest, request: pb.GenerateRequest) -> None:
    if parsed.thinking is not None:
        decode_thinking(parsed.thinking, request.reasoning)
    config = parsed.output_config or schema.OutputConfig()
    if config.effort is not None:
        request.reasoning.effort = config.effort
    at, chosen = "output_config.format", config.format
    if chosen is None:
        at, chosen = "output_format", parsed.output_format
    if chosen is not None:
        request.response_format.json_schema.schema_json = json_object(chosen.schema, f"{at}.schema")


def _decode_uncarried(parsed: schema.MessagesRequest, notes: RequestNotes) -> None:
    """Record in `notes` the fields without a canonical form. `mcp_servers` and `container` change the meaning and
    exclude providers of other formats.
    """
    if is_present(parsed.mcp_servers) and bytes(parsed.mcp_servers) != b"[]":
        notes.indispensable.append("mcp_servers")
    if is_present(parsed.container):
        notes.indispensable.append("container")
    _decode_edits(parsed, notes)
    if parsed.metadata and parsed.metadata.keys() - {"user_id"}:
        notes.uncarried.append("metadata")


def _decode_edits(parsed: schema.CountRequest, notes: RequestNotes) -> None:
    if is_present(parsed.context_management) and (edits := decode_edits(parsed.context_management)):
        notes.context_edits = edits
        notes.uncarried.append(EDITS_FIELD)


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of a provider's `POST /v1/messages`: the caller's own body of this format with only the necessary
    changes, else a new body. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path.
    """
    report = Report()
    headers = {VERSION_HEADER: API_VERSION}
    request, notes = fit_request(request, notes, quirks, report)
    quirks = with_state(request, quirks)
    request, sendable = _without_blank_stops(request)
    quirks = with_stop_limit(request, quirks, "stop_sequences", sendable)
    stops = local_stops(request, quirks, report)
    if request.source.format == "messages":
        headers |= request.source.headers
        headers[VERSION_HEADER] = provider_version(request.source.headers, quirks, report)
        body = passthrough_request.rebuild(request, notes, model, stream, headers, report, quirks)
        return UpstreamRequest(MESSAGES_PATH, body, headers, report, local_stops=stops)
    check_text_request(request, notes, report, unsupported=UNSUPPORTED_FIELDS)
    fields: JsonObject = {"model": model, **encode_fields(request, report, quirks)}
    if stream:
        fields["stream"] = True
    fit_members(fields, quirks, "messages", report)
    return UpstreamRequest(MESSAGES_PATH, msgspec.json.encode(fields), headers, report, local_stops=stops)


def _without_blank_stops(request: pb.GenerateRequest) -> tuple[pb.GenerateRequest, int | None]:
    """Return (a request with its blank stop sequences, which providers reject, after the others; the number of the
    others), or (the request itself, None) without blank ones.
    """
    blank = [sequence for sequence in request.stop_sequences if not sequence.strip()]
    if not blank or request.source.format == "messages":
        return request, None
    others = [sequence for sequence in request.stop_sequences if sequence.strip()]
    sorted_request = pb.GenerateRequest()
    sorted_request.CopyFrom(request)
    sorted_request.stop_sequences[:] = others + blank
    return sorted_request, len(others)
