"""Native requests: decoding of a caller's body, and encoding of the canonical request for a provider."""

from collections.abc import Mapping

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, check_utf8, is_present, parse
from umg_grpc.wire.core.local_stop_sequences import local_stops, with_stop_limit
from umg_grpc.wire.core.prompt_cache_marks import PromptMark
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.core.unknown_field_detection import record_unknown_fields
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.model_quirks import fit_request
from umg_grpc.wire.native import passthrough_request, schema
from umg_grpc.wire.native.decode_messages import decode_contents, decode_instructions
from umg_grpc.wire.native.encode_body import encode_body
from umg_grpc.wire.native.generation_config import decode_config
from umg_grpc.wire.native.model_paths import GENERATE_VERB, MODEL_PREFIX, call_path, path_model
from umg_grpc.wire.native.proto_json_normalization import Notes, read
from umg_grpc.wire.native.tool_call_id_positions import CALL_IDS
from umg_grpc.wire.native.tools import decode_tools
from umg_grpc.wire.text_format_interface import FaceRequest, UpstreamRequest

STREAM_VERB = ":streamGenerateContent?alt=sse"
STOPS_MEMBER, MAX_STOPS = "generationConfig.stopSequences", 5

HARMLESS_FIELDS = frozenset({"stream"})  # without effect: the path determines whether the response is streamed


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    """Decode the body of `:generateContent` or its stream. `model`: id in the path, "" if there is none; the body may
    repeat it. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD.
    """
    decoded = _decode(body, "", model)
    return FaceRequest(decoded.canonical, stream=False, notes=decoded.notes)


def decode_count(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.GenerateRequest]:
    """Decode a request for `:countTokens`: the body itself, or its member `generateContentRequest`. `model`: in the
    path, "" if there is none. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD.
    """
    counted = parse(schema.CountBody, check_utf8(body))
    for raw, name in (
        (counted.generate_content_request, "generateContentRequest"),
        (counted.snake_request, "generate_content_request"),
    ):
        if is_present(raw):
            return _decode(bytes(raw), f".{name}", model)
    return _decode(body, "", model)


def _decode(body: bytes, at: str, model: str) -> DecodedRequest[pb.GenerateRequest]:
    notes, request = Notes(base=1 if at else 0), pb.GenerateRequest()
    try:
        parsed = read(schema.GenerateBody, check_utf8(body), notes, at)
        request.source.format, request.source.body = "native", body
        decode_contents(parsed.contents, request, notes)
        _decode_options(parsed, request, notes)
    except UmgError as error:
        raise notes.with_caller_path(error) from None
    notes.request.uncarried.extend(field.path for field in notes.unknown if field.nested)
    request.model = path_model(model, (parsed.model or "").removeprefix(MODEL_PREFIX))
    record_unknown_fields([field.path for field in notes.unknown if not field.nested], HARMLESS_FIELDS, notes.request)
    return DecodedRequest(request, notes.request)


def _decode_options(body: schema.GenerateBody, request: pb.GenerateRequest, notes: Notes) -> None:
    if body.system_instruction is not None:
        decode_instructions(body.system_instruction, request, notes)
    if body.generation_config is not None:
        decode_config(body.generation_config, request, notes)
    decode_tools(body, request, notes)
    for setting in body.safety_settings or ():
        request.safety_settings.add(category=setting.category, threshold=setting.threshold)
        if is_present(setting.method):
            notes.record_uncarried("safetySettings.method")
    request.cached_content = body.cached_content or ""
    request.metadata.update(body.labels or {})
    tier = (body.service_tier or "").lower()
    request.service_tier = "" if tier == "unspecified" else tier
    if body.store is not None:
        request.store = body.store


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of `POST /models/{model}:generateContent`, or of its stream: the caller's own body of this format
    with only the necessary changes, else a new body. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the
    canonical path.
    """
    report = Report()
    request, notes = fit_request(request, notes, quirks, report)
    is_same_format = request.source.format == "native"
    quirks = with_stop_limit(request, quirks, STOPS_MEMBER, None if is_same_format else MAX_STOPS)
    marks = list[PromptMark]()
    if is_same_format:
        body = passthrough_request.rebuild(request, notes, model, report, quirks)
        body = CALL_IDS.restored_body(body, request)
    else:
        fields: JsonObject = encode_body(request, notes, model, report, quirks, marks)
        fit_members(fields, quirks, "native", report)
        body = msgspec.json.encode(fields)
    path, stops = call_path(model, STREAM_VERB if stream else GENERATE_VERB), local_stops(request, quirks, report)
    return UpstreamRequest(path, body, {}, report, local_stops=stops, marks=marks)
