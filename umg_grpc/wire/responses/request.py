"""Responses requests: decoding of a caller's body, and encoding of the canonical request for a provider."""

from collections.abc import Collection, Mapping
from operator import attrgetter

import msgspec
from msgspec import Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD, Compact, ContextEdit
from umg_grpc.wire.core.json_decoding import (
    JsonObject,
    check_utf8,
    decode_or_none,
    invalid,
    is_present,
    json_object,
    missing,
    parse,
    parse_open,
    unknown_fields,
    whole,
)
from umg_grpc.wire.core.local_stop_sequences import local_stops, with_stop_limit
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.unknown_field_detection import record_unknown_fields
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.model_quirks import changed_fields, fit_request, with_state
from umg_grpc.wire.responses import passthrough_request, schema
from umg_grpc.wire.responses.decode_messages import InputDecoder
from umg_grpc.wire.responses.encode_messages import InputEncoder
from umg_grpc.wire.responses.encode_options import (
    LOGPROBS_INCLUDE,
    TRUNCATION_MODES,
    encode_options,
    report_unsupported_fields,
)
from umg_grpc.wire.responses.recognized_json_members import HARMLESS_MEMBERS
from umg_grpc.wire.responses.structured_output import add_instructions
from umg_grpc.wire.responses.tool_call_id_positions import CALL_IDS
from umg_grpc.wire.responses.tool_choice import decode_choice
from umg_grpc.wire.responses.tools import add_tools, decode_tools
from umg_grpc.wire.text_format_interface import FaceRequest, UpstreamRequest


class _Entry(Struct):
    """Entry of `context_management`."""

    type: str
    compact_threshold: int | None = None


_ENTRIES = msgspec.json.Decoder(list[_Entry])
RESPONSES_PATH, COMPACT_PATH = "/responses", "/responses/compact"

# Fields of the same name and type on both sides.
COPIED_FIELDS = ("temperature", "top_p", "store", "user", "safety_identifier", "service_tier", "prompt_cache_key")
_copied_fields = attrgetter(*COPIED_FIELDS)

WHOLE_NUMBERS = ("max_output_tokens", "top_logprobs", "max_tool_calls")
_whole_numbers = attrgetter(*WHOLE_NUMBERS)


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `POST /v1/responses`. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD, or
    UNSUPPORTED_FIELD for a background response.
    """
    parsed, unknown = parse_open(_KNOWN, schema.ResponsesRequest, body, passthrough_request.KNOWN_FIELDS)
    if parsed.background:
        message = "`background` is not served: the response would not be waited for; leave it out"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="background")
    request, notes = _new_request(body, headers, unknown)
    _decode_prompting(parsed, request, notes)
    _decode_options(parsed, request, notes)
    if parsed.prompt:
        _decode_prompt(parsed.prompt, request.prompt_template)
    _require_input(parsed.input, request)
    return FaceRequest(request, parsed.stream is True, notes)


def decode_count(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.GenerateRequest]:
    """Decode the body of `POST /v1/responses/input_tokens`. It must contain the model, unlike in the SDK types: the
    count depends on it. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD.
    """
    parsed = parse(schema.Prompting, check_utf8(body))
    request, notes = _new_request(body, headers, unknown_fields(body, passthrough_request.KNOWN_FIELDS))
    _decode_prompting(parsed, request, notes)
    _require_input(parsed.input, request)
    return DecodedRequest(request, notes)


def decode_compaction(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.GenerateRequest]:
    """Decode the body of `POST /v1/responses/compact` as `decode_request` does."""
    request, _, notes = decode_request(body, headers)
    request.compaction.standalone = True
    return DecodedRequest(request, notes)


_KNOWN: msgspec.json.Decoder[schema.ResponsesRequest] = msgspec.json.Decoder(schema.KnownResponsesRequest)


def _new_request(
    body: bytes, headers: Mapping[str, str], unknown: Collection[str]
) -> DecodedRequest[pb.GenerateRequest]:
    request, notes = pb.GenerateRequest(), RequestNotes()
    source = request.source
    source.format, source.body = "responses", body
    record_unknown_fields(unknown, HARMLESS_MEMBERS, notes)
    if headers:
        source.headers.update(headers)
    return DecodedRequest(request, notes)


def _require_input(items: str | list[Raw] | None, request: pb.GenerateRequest) -> None:
    if items or items == "" or request.instructions or request.previous_response_id or request.conversation_id:
        return
    if not request.HasField("prompt_template"):
        raise missing("input")


def _decode_prompting(parsed: schema.Prompting, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    request.model = parsed.model
    added = list[tuple[Raw, str]]()
    if parsed.input is not None:
        items = InputDecoder(request, notes)
        items.decode(parsed.input)
        added = items.added
    if parsed.instructions:
        request.instructions.add().text.text = parsed.instructions
    if parsed.tools or is_present(parsed.tool_choice):
        decode_tools(parsed, request, notes)
        decode_choice(parsed, request)
    if added:
        add_tools(added, request, notes)
    if parsed.parallel_tool_calls is not None:
        request.parallel_tool_calls = parsed.parallel_tool_calls
    if parsed.reasoning is not None:
        _decode_reasoning(parsed.reasoning, request, notes)
    if parsed.text:
        _decode_text(parsed.text, request)
    if parsed.truncation:
        request.truncation = TRUNCATION_MODES[parsed.truncation]
    if parsed.previous_response_id:
        request.previous_response_id = parsed.previous_response_id
    if parsed.conversation:
        if parsed.previous_response_id:
            raise invalid("conversation", "`previous_response_id` is given as well; send one of the two")
        named = parsed.conversation
        request.conversation_id = named if isinstance(named, str) else named.id


def _decode_options(parsed: schema.ResponsesRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    for name, value in zip(COPIED_FIELDS, _copied_fields(parsed), strict=True):
        if value is not None:
            setattr(request, name, value)
    for name, number in zip(WHOLE_NUMBERS, _whole_numbers(parsed), strict=True):
        if number is not None:
            setattr(request, name, whole(number, name))
    if parsed.include:
        request.include.extend(parsed.include)
        if LOGPROBS_INCLUDE in parsed.include:
            request.logprobs = True
    if parsed.metadata:
        request.metadata.update(parsed.metadata)
    if parsed.stream_options and parsed.stream_options.include_obfuscation is not None:
        request.include_obfuscation = parsed.stream_options.include_obfuscation
    if parsed.prompt_cache_retention:
        request.prompt_cache_retention = parsed.prompt_cache_retention.replace("-", "_")
    if is_present(parsed.prompt_cache_options):
        request.prompt_cache_options_json = json_object(parsed.prompt_cache_options, "prompt_cache_options")
    if is_present(parsed.moderation):
        request.moderation_json = json_object(parsed.moderation, "moderation")
    if is_present(parsed.context_management):
        notes.uncarried.append(EDITS_FIELD)
        notes.context_edits = _decode_compaction_entry(parsed.context_management)


def _decode_compaction_entry(raw: Raw) -> tuple[ContextEdit, ...] | None:
    match decode_or_none(_ENTRIES, raw):
        case [_Entry(type="compaction", compact_threshold=int(threshold))]:
            return (Compact(type="compaction", field=EDITS_FIELD, trigger_tokens=threshold, is_sealed=True),)
        case _:  # an entry of another type, or several
            return None


def _decode_prompt(prompt: schema.Prompt, target: pb.PromptTemplate) -> None:
    target.prompt_id, target.version = prompt.id, prompt.version or ""
    if is_present(prompt.variables):
        target.variables_json = json_object(prompt.variables, "prompt.variables")


def _decode_reasoning(options: schema.Reasoning, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    request.reasoning.effort = options.effort or "medium"
    request.reasoning.summary = options.summary or options.generate_summary or ""
    for name in ("context", "mode"):
        if getattr(options, name) is not None:
            notes.uncarried.append(f"reasoning.{name}")


def _decode_text(text: schema.TextOptions, request: pb.GenerateRequest) -> None:
    request.verbosity = text.verbosity or ""
    if text.format is None:
        return
    target = request.response_format
    match text.format.type:
        case "text":
            target.text.SetInParent()
        case "json_object":
            target.json.SetInParent()
        case "json_schema":
            if text.format.name is None:
                raise missing("text.format.name")
            if not is_present(text.format.schema):
                raise missing("text.format.schema")
            described = target.json_schema
            described.name, described.description = text.format.name, text.format.description or ""
            described.schema_json = json_object(text.format.schema, "text.format.schema")
            if text.format.strict is not None:
                described.strict = text.format.strict


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of a provider's `POST /responses`: the caller's own body of this format with only the necessary
    changes, else a new body. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path.
    """
    report = Report()
    request, notes = fit_request(request, notes, quirks, report)
    quirks = with_state(request, quirks)
    quirks = with_stop_limit(request, quirks, "stop", 0)  # the format has no stop sequences
    if request.source.format == "responses":
        changed = changed_fields(request, quirks)
        edited = dict.fromkeys([*notes.edited, *changed])
        new_values = _edited(request, edited, report, quirks, changed) if edited else {}
        body = passthrough_request.rebuild(request, model, stream, new_values, report, edited, quirks)
        path = COMPACT_PATH if request.compaction.standalone else RESPONSES_PATH
        return UpstreamRequest(path, CALL_IDS.restored_body(body, request), dict(request.source.headers), report)
    report_unsupported_fields(request, notes, report)
    fields: JsonObject = {"model": model, "input": InputEncoder(request, report, quirks).encode()}
    fields |= encode_options(request, report, quirks)
    add_instructions(fields, request, quirks)
    if notes.cache_key and quirks.takes_cache_key:
        fields.setdefault("prompt_cache_key", notes.cache_key)
    if stream:
        fields["stream"] = True
    else:
        fields.pop("stream_options", None)  # rejected without a stream
    fit_members(fields, quirks, "responses", report)
    stops = local_stops(request, quirks, report)
    return UpstreamRequest(RESPONSES_PATH, msgspec.json.encode(fields), {}, report, local_stops=stops)


def _edited(
    request: pb.GenerateRequest, edited: Collection[str], report: Report, quirks: Quirks, changed: Collection[str]
) -> JsonObject:
    names, own = {name for field in edited for name in passthrough_request.wire_names(field)}, Report()
    fields = encode_options(request, own, quirks)
    for name, instead in own.dropped.items():
        if name.partition(".")[0] in {*changed, *(("web_search",) if "search" in changed else ())}:
            report.drop(name, instead)
    if "input" in names:
        fields["input"] = InputEncoder(request, report, quirks).encode()
    return fields
