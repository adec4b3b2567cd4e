"""The request, both directions: a caller's body -> canonical, canonical -> a provider's body."""

from collections.abc import Mapping
from urllib.parse import quote

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.format import FaceRequest, UpstreamRequest
from umg_grpc.wire.json import JsonObject, check_utf8, given, parse
from umg_grpc.wire.native import dialect, schema
from umg_grpc.wire.native.canonical import encode_body
from umg_grpc.wire.native.config import decode_config
from umg_grpc.wire.native.content import decode_contents, decode_instructions
from umg_grpc.wire.native.spelling import Notes, read
from umg_grpc.wire.native.tools import decode_tools
from umg_grpc.wire.report import Report
from umg_grpc.wire.unknown import note_top_level

GENERATE, STREAM = ":generateContent", ":streamGenerateContent?alt=sse"
PREFIX = "models/"

HARMLESS = frozenset({"stream"})
"""Top-level fields without canonical form that change no answer: the path says whether to stream."""


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str]) -> FaceRequest:
    """The request with its source. Its model and whether it streams are in the path: it has the model that the body
    repeats, if it does. Raises UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD.
    """
    return FaceRequest(_decode(body, ""), stream=False)


def decode_count(body: bytes, headers: Mapping[str, str]) -> pb.GenerateRequest:
    """What `:countTokens` shall count: a request, or one inside `generateContentRequest`."""
    counted = parse(schema.CountBody, check_utf8(body))
    for raw, name in (
        (counted.generate_content_request, "generateContentRequest"),
        (counted.snake_request, "generate_content_request"),
    ):
        if given(raw):
            return _decode(bytes(raw), f".{name}")
    return _decode(body, "")


def _decode(body: bytes, at: str) -> pb.GenerateRequest:
    notes, request = Notes(base=1 if at else 0), pb.GenerateRequest()
    try:
        parsed = read(schema.GenerateBody, check_utf8(body), notes, at)
        request.model = (parsed.model or "").removeprefix(PREFIX)
        request.source.format, request.source.body = "native", body
        decode_contents(parsed.contents, request)
        _decode_options(parsed, request, notes)
    except UmgError as error:
        raise notes.spelled(error) from None
    request.source.uncarried_fields.extend(field.path for field in notes.unknown if field.nested)
    note_top_level([field.path for field in notes.unknown if not field.nested], HARMLESS, request.source)
    return request


def _decode_options(body: schema.GenerateBody, request: pb.GenerateRequest, notes: Notes) -> None:
    if body.system_instruction is not None:
        decode_instructions(body.system_instruction, request)
    if body.generation_config is not None:
        decode_config(body.generation_config, request, notes)
    decode_tools(body, request, notes)
    for setting in body.safety_settings or ():
        request.safety_settings.add(category=setting.category, threshold=setting.threshold)
        if given(setting.method) and "safetySettings.method" not in request.source.uncarried_fields:
            request.source.uncarried_fields.append("safetySettings.method")
    request.cached_content = body.cached_content or ""
    request.metadata.update(body.labels or {})
    tier = (body.service_tier or "").lower()
    request.service_tier = "" if tier == "unspecified" else tier
    if body.store is not None:
        request.store = body.store


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS
) -> UpstreamRequest:
    """The call of `POST /models/{model}:generateContent`, or of its stream. Raises UmgError(UNTRANSLATABLE,
    UNSUPPORTED_FIELD) with the canonical path in `field`.
    """
    report = Report()
    if request.source.format == "native":
        body = dialect.rebuild(request, model, report, quirks)
    else:
        fields: JsonObject = encode_body(request, model, report, quirks)
        body = msgspec.json.encode(fields)
    return UpstreamRequest(call_path(model, STREAM if stream else GENERATE), body, {}, report)


def call_path(model: str, action: str) -> str:
    """The path of an action (`:generateContent`) of a model; a slash in an id stays one, unless it would lead
    elsewhere.
    """
    name = model.removeprefix(PREFIX)
    keep = "" if {".", "..", ""} & set(name.split("/")) else "/"
    return f"/models/{quote(name, safe=keep)}{action}"
